// Where the payload of a packet of a WRITE goes.
#pragma once

#include <cstdint>

#include "hosts/memory_region.hpp"
#include "packets/roce_codec.hpp"
#include "packets/uet_frame.hpp"

namespace weft::uet {

// Writes the payload where the packet says, and returns kReturnOk; otherwise writes nothing, and returns why.
// The region is looked up for each packet, because it may have been deregistered meanwhile.
uint8_t place_write(const roce::ParsedPacket& packet, const WriteHeader& write, uint32_t path_mtu_bytes,
                    const MemoryRegistry& memory);

}  // namespace weft::uet
