// TCP's header as bytes (RFC 9293, section 3.1; options: RFC 9293, section 3.2, RFC 2018, RFC 7323).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tcp/segment.hpp"

namespace weft::tcp {

constexpr size_t kLeastHeaderBytes = 20;
constexpr size_t kMostHeaderBytes = 60;
constexpr size_t kTimestampsBytes = 12;  // with the two bytes of padding before it
constexpr size_t kChecksumOffset = 16;
constexpr uint8_t kMostWindowScale = 14;  // RFC 7323, section 2.3

// Of the options with their padding, as write_header() lays them out.
size_t options_bytes(const Options& options);

// Writes the header, with a checksum of 0, and returns its size. `to` has room for kMostHeaderBytes. SACK
// blocks that do not fit are left out.
size_t write_header(const Segment& segment, uint8_t* to);

// Reads the header of a segment of so many bytes, header and payload. Returns null, or what is wrong. Options
// that are not known are passed over. The segment's payload are its last payload_bytes.
const char* read_header(std::span<const uint8_t> bytes, Segment& segment);

}  // namespace weft::tcp
