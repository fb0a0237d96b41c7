// Where the payload of a packet of a message goes, and where that of a READ's answer comes from.
#pragma once

#include <cstdint>
#include <optional>

#include "hosts/memory_region.hpp"
#include "packets/roce_codec.hpp"
#include "packets/uet_frame.hpp"

namespace weft::uet {

// Whether a packet carries as much as its place in its message requires.
bool has_right_size(const roce::ParsedPacket& packet, const WriteHeader& request, uint32_t path_mtu_bytes);

// Writes the payload of a packet of a WRITE, which has the right size, where it says, and returns kReturnOk;
// otherwise writes nothing, and returns why. The region is looked up for each packet, because it may have
// been deregistered meanwhile.
uint8_t place_write(const roce::ParsedPacket& packet, const WriteHeader& write, const MemoryRegistry& memory);

// What one packet of a READ asks for.
struct ReadPart {
  uint64_t address = 0;
  uint32_t rkey = 0;
  uint32_t message_offset = 0;
  uint16_t message_id = 0;
  uint16_t bytes = 0;
  bool as_length = false;
  uint8_t traffic_kind = 0;
};

// Sets what a packet of a READ asks for, and returns kReturnOk if the peer may have it; otherwise returns why
// not. Each packet asks for what one packet can carry, so each is granted on its own.
uint8_t grant_read(const roce::ParsedPacket& packet, const WriteHeader& request, uint32_t path_mtu_bytes,
                   const MemoryRegistry& memory, ReadPart& part);

// The payload of the answer; nothing if the peer may not have it any more. The region is looked up for each
// packet, because it may have been deregistered meanwhile.
std::optional<Body> body_of(const ReadPart& part, const MemoryRegistry& memory);

// What says in the answer which part of which READ it is.
ResponseData response_with(const ReadPart& part);

// Writes the answer's payload to its place in the READ's `target` (null: nowhere), which has room for
// `length_bytes` of the READ in all. Returns false, and writes nothing, if it is no part of it.
bool place_read_data(const roce::ParsedPacket& packet, const ResponseData& response, uint8_t* target,
                     uint64_t length_bytes, uint32_t path_mtu_bytes);

}  // namespace weft::uet
