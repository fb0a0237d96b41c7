// The parts of a frame as the codec and header templates write them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "packets/roce_formats.hpp"

namespace weft::roce::writing {

// What the opcode and the payload make of a frame's length.
struct Layout {
  uint16_t extensions;
  size_t udp_bytes;  // from UDP header to iCRC
  size_t frame_bytes;
};

// Throws std::invalid_argument if the opcode is unknown.
Layout layout_of(const RoceHeaders& headers, size_t payload_bytes);
// Throws std::invalid_argument for what write_frame() refuses.
void check_values(const RoceHeaders& headers, uint16_t extensions, size_t payload_bytes,
                  size_t udp_length_bytes);

inline size_t pad_bytes(size_t payload_bytes) { return (4 - payload_bytes % 4) % 4; }

// Each writes at `at` and returns where it has stopped.
uint8_t* write_ethernet(const RoceHeaders& headers, uint8_t* at);
uint8_t* write_int_shim(const IntStack& stack, uint16_t ip_type, uint8_t* at);
uint8_t* write_ip(const RoceHeaders& headers, size_t udp_length_bytes, uint8_t* at);
uint8_t* write_udp(const RoceHeaders& headers, size_t udp_length_bytes, uint8_t* at);
uint8_t* write_bth(const Bth& bth, size_t pad, uint8_t* at);
uint8_t* write_extensions(const RoceHeaders& headers, uint16_t extensions, uint8_t* at);
uint8_t* write_aggregation(const AggregationHeader& header, uint8_t* at);
// Payload (null: zeros), pad and the iCRC of all that stands from `ip` on.
uint8_t* write_payload(const uint8_t* payload, size_t payload_bytes, const uint8_t* ip, uint8_t* at);

}  // namespace weft::roce::writing
