// The ones' complement checksum of IP and UDP (RFC 1071).
#pragma once

#include <cstddef>
#include <cstdint>

#include "packets/byte_order.hpp"

namespace weft {

// Sum of big-endian 16-bit words, an odd last byte padded with zero; not yet folded.
inline uint64_t internet_sum(const uint8_t* data, size_t size_bytes) {
  uint64_t sum = 0;
  for (; size_bytes >= 4; data += 4, size_bytes -= 4) sum += load_big_endian<uint32_t>(data);
  if (size_bytes >= 2) {
    sum += load_big_endian<uint16_t>(data);
    data += 2;
    size_bytes -= 2;
  }
  if (size_bytes != 0) sum += static_cast<uint64_t>(*data) << 8;
  return sum;
}

// The checksum of a sum: 0 if the sum covered a right checksum.
inline uint16_t fold_internet_sum(uint64_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

inline uint16_t internet_checksum(const uint8_t* data, size_t size_bytes) {
  return fold_internet_sum(internet_sum(data, size_bytes));
}

}  // namespace weft
