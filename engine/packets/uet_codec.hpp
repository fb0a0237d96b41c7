// Reads and builds UET packets from their first header on: what UDP carries to port 4793. UDP and IP are not
// looked at, and there is no CRC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "packets/uet_formats.hpp"

namespace weft::uet {

enum class ParseError : uint8_t {
  kNone,
  kTruncated,  // the packet ends within a header
  kEncrypted,
  kUnknownType,
  kUnknownNextHeader,
  kUnknownOpcode,  // of a request: which headers follow it is not known
  kBadVersion,     // of the semantic header
};

// Snake-case name, as used for drop counters ("truncated").
const char* parse_error_name(ParseError error);

// A parsed packet: its headers in wire order, and the payload as a view.
struct Packet {
  std::vector<Header> headers;
  const uint8_t* payload = nullptr;
  size_t payload_bytes = 0;
};

// Reads a packet into `out`, a new one: complete only if the result is kNone; after other results it holds
// the headers up to the fault. Reserved bits are not looked at.
ParseError parse_packet(const uint8_t* at, size_t bytes, Packet& out);

// Headers and payload as bytes. `payload` null stands for zeros. Throws std::invalid_argument for values that
// do not fit their field, and unless parse_packet() reads the same headers from the result.
std::vector<uint8_t> build_packet(const std::vector<Header>& headers, const uint8_t* payload,
                                  size_t payload_bytes);

}  // namespace weft::uet
