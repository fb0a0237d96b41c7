// CRC-32 of IEEE 802.3 (polynomial 0x04C11DB7, reflected), as used by Ethernet, zlib and RoCEv2's iCRC.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

// State to start a CRC-32 from.
constexpr uint32_t kCrc32Initial = 0xFFFFFFFFu;

// Feeds `size_bytes` bytes into a running CRC-32. `state` starts as kCrc32Initial; the CRC is the bitwise
// complement of the last state. Uses carry-less multiplication where the CPU has it, slicing by 16 elsewhere.
uint32_t crc32_update(uint32_t state, const uint8_t* data, size_t size_bytes);

// The table-driven path alone, whatever the CPU has; the two are tested against each other.
uint32_t crc32_update_portable(uint32_t state, const uint8_t* data, size_t size_bytes);

// CRC-32 of one buffer.
inline uint32_t crc32(const uint8_t* data, size_t size_bytes) {
  return ~crc32_update(kCrc32Initial, data, size_bytes);
}

}  // namespace weft
