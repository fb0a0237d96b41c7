// Where the payload of a packet of a message goes.
#pragma once

#include <cstdint>

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

}  // namespace weft::uet
