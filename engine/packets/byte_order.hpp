// Big-endian integers in packet bytes, at any alignment.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace weft {

template <class Integer>
constexpr Integer swap_to_big_endian(Integer value) {
  static_assert(std::is_unsigned_v<Integer> && std::endian::native == std::endian::little);
  if constexpr (sizeof(Integer) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(Integer) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(Integer) == 8) return __builtin_bswap64(value);
}

template <class Integer>
Integer load_big_endian(const uint8_t* from) {
  Integer value;
  std::memcpy(&value, from, sizeof value);
  return swap_to_big_endian(value);
}

template <class Integer>
void store_big_endian(uint8_t* to, Integer value) {
  value = swap_to_big_endian(value);
  std::memcpy(to, &value, sizeof value);
}

inline uint32_t load_big_endian_24(const uint8_t* from) {
  return static_cast<uint32_t>(from[0]) << 16 | static_cast<uint32_t>(from[1]) << 8 | from[2];
}

inline void store_big_endian_24(uint8_t* to, uint32_t value) {
  to[0] = static_cast<uint8_t>(value >> 16);
  to[1] = static_cast<uint8_t>(value >> 8);
  to[2] = static_cast<uint8_t>(value);
}

}  // namespace weft
