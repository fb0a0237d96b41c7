#include "switch/hash.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "packets/crc32.hpp"

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

constexpr std::array<uint8_t, 256> make_crc8_table() {
  std::array<uint8_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    uint8_t crc = static_cast<uint8_t>(i);
    for (int bit = 0; bit < 8; ++bit) crc = static_cast<uint8_t>((crc << 1) ^ ((crc & 0x80) != 0 ? 0x07 : 0));
    table[i] = crc;
  }
  return table;
}

constexpr std::array<uint64_t, 256> make_crc64_table() {
  std::array<uint64_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    uint64_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xD800000000000000u : 0);  // 0x1B reflected
    table[i] = crc;
  }
  return table;
}

constexpr auto kCrc8Table = make_crc8_table();
constexpr auto kCrc64Table = make_crc64_table();
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

uint64_t hash_xor32(const uint8_t* data, size_t size_bytes) {
  uint32_t result = 0;
  for (size_t i = 0; i < size_bytes; ++i) result ^= uint32_t{data[i]} << (24 - 8 * (i & 3));
  return result;
}

uint64_t hash_crc8(const uint8_t* data, size_t size_bytes) {
  uint8_t crc = 0;
  for (size_t i = 0; i < size_bytes; ++i) crc = kCrc8Table[crc ^ data[i]];
  return crc;
}

uint64_t hash_crc64(const uint8_t* data, size_t size_bytes) {
  uint64_t crc = 0;
  for (size_t i = 0; i < size_bytes; ++i) crc = (crc >> 8) ^ kCrc64Table[(crc ^ data[i]) & 0xff];
  return crc;
}

namespace {

constexpr uint64_t kXxPrime1 = 0x9E3779B185EBCA87;
constexpr uint64_t kXxPrime2 = 0xC2B2AE3D27D4EB4F;
constexpr uint64_t kXxPrime3 = 0x165667B19E3779F9;
constexpr uint64_t kXxPrime4 = 0x85EBCA77C2B2AE63;
constexpr uint64_t kXxPrime5 = 0x27D4EB2F165667C5;

template <class Word>
uint64_t little_endian(const uint8_t* data) {
  Word word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

uint64_t xx_round(uint64_t accumulator, uint64_t lane) {
  return std::rotl(accumulator + lane * kXxPrime2, 31) * kXxPrime1;
}

}  // namespace

uint64_t hash_xxh64(const uint8_t* data, size_t size_bytes) {
  const uint8_t* const end = data + size_bytes;
  uint64_t hash = kXxPrime5;
  if (size_bytes >= 32) {
    std::array<uint64_t, 4> lanes = {kXxPrime1 + kXxPrime2, kXxPrime2, 0, 0 - kXxPrime1};
    for (; end - data >= 32; data += 32)
      for (size_t i = 0; i < 4; ++i) lanes[i] = xx_round(lanes[i], little_endian<uint64_t>(data + 8 * i));
    hash =
        std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (const uint64_t lane : lanes) hash = (hash ^ xx_round(0, lane)) * kXxPrime1 + kXxPrime4;
  }
  hash += size_bytes;
  for (; end - data >= 8; data += 8)
    hash = std::rotl(hash ^ xx_round(0, little_endian<uint64_t>(data)), 27) * kXxPrime1 + kXxPrime4;
  if (end - data >= 4) {
    hash = std::rotl(hash ^ little_endian<uint32_t>(data) * kXxPrime1, 23) * kXxPrime2 + kXxPrime3;
    data += 4;
  }
  for (; data < end; ++data) hash = std::rotl(hash ^ *data * kXxPrime5, 11) * kXxPrime1;
  hash = (hash ^ hash >> 33) * kXxPrime2;
  hash = (hash ^ hash >> 29) * kXxPrime3;
  return hash ^ hash >> 32;
}

uint64_t hash_identity(const uint8_t* data, size_t size_bytes) {
  uint64_t result = 0;
  for (size_t i = 0; i < size_bytes && i < 8; ++i) result = (result << 8) | data[i];
  return result;
}

}  // namespace weft
