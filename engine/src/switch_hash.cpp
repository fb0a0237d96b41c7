#include "switch_hash.hpp"

#include <array>
#include <cstring>

#include "crc32.hpp"

namespace weft {

namespace {

constexpr std::array<uint16_t, 256> make_crc16_table() {
  std::array<uint16_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    uint16_t crc = static_cast<uint16_t>(i);
    for (int bit = 0; bit < 8; ++bit)
      crc = static_cast<uint16_t>((crc >> 1) ^ ((crc & 1) != 0 ? 0xA001 : 0));  // 0x8005 reflected
    table[i] = crc;
  }
  return table;
}

constexpr std::array<uint16_t, 256> make_ccitt_table() {
  std::array<uint16_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    uint16_t crc = static_cast<uint16_t>(i << 8);
    for (int bit = 0; bit < 8; ++bit)
      crc = static_cast<uint16_t>((crc << 1) ^ ((crc & 0x8000) != 0 ? 0x1021 : 0));
    table[i] = crc;
  }
  return table;
}

constexpr auto kCrc16Table = make_crc16_table();
constexpr auto kCcittTable = make_ccitt_table();

}  // namespace

uint64_t hash_crc16(const uint8_t* data, size_t size_bytes) {
  uint16_t crc = 0;
  for (size_t i = 0; i < size_bytes; ++i)
    crc = static_cast<uint16_t>((crc >> 8) ^ kCrc16Table[(crc ^ data[i]) & 0xff]);
  return crc;
}

uint64_t hash_crc32(const uint8_t* data, size_t size_bytes) { return crc32(data, size_bytes); }

uint64_t hash_crc_ccitt(const uint8_t* data, size_t size_bytes) {
  uint16_t crc = 0xffff;
  for (size_t i = 0; i < size_bytes; ++i)
    crc = static_cast<uint16_t>((crc << 8) ^ kCcittTable[(crc >> 8) ^ data[i]]);
  return crc;
}

uint64_t hash_csum16(const uint8_t* data, size_t size_bytes) {
  // One's complement sums do not depend on byte order (RFC 1071, section 2), so add native words and swap
  // once.
  // 32-bit words leave room for 2^32 carries in 64 bits.
  uint64_t total = 0;
  size_t at = 0;
  for (; at + 4 <= size_bytes; at += 4) {
    uint32_t word;
    std::memcpy(&word, data + at, 4);
    total += word;
  }
  if (at < size_bytes) {
    uint32_t word = 0;
    std::memcpy(&word, data + at, size_bytes - at);
    total += word;
  }
  total = (total >> 32) + (total & 0xffffffff);
  total = (total >> 32) + (total & 0xffffffff);
  total = (total >> 16) + (total & 0xffff);
  total = (total >> 16) + (total & 0xffff);
  return static_cast<uint16_t>(~__builtin_bswap16(static_cast<uint16_t>(total)));
}

uint64_t hash_xor16(const uint8_t* data, size_t size_bytes) {
  uint16_t result = 0;
  for (size_t i = 0; i < size_bytes; ++i)
    result = static_cast<uint16_t>(result ^ (data[i] << ((i & 1) != 0 ? 0 : 8)));
  return result;
}

uint64_t hash_identity(const uint8_t* data, size_t size_bytes) {
  uint64_t result = 0;
  for (size_t i = 0; i < size_bytes && i < 8; ++i) result = (result << 8) | data[i];
  return result;
}

}  // namespace weft
