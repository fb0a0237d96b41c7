// The hash algorithms of v1model as BMv2 defines them. All take bytes and give at most 64 bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

// CRC-16/ARC: polynomial 0x8005, reflected, initial value 0.
uint64_t hash_crc16(const uint8_t* data, size_t size_bytes);
// CRC-32 of IEEE 802.3.
uint64_t hash_crc32(const uint8_t* data, size_t size_bytes);
// CRC-16/CCITT-FALSE: polynomial 0x1021, initial value 0xFFFF.
uint64_t hash_crc_ccitt(const uint8_t* data, size_t size_bytes);
// The Internet checksum (RFC 1071), the last odd byte padded with zero.
uint64_t hash_csum16(const uint8_t* data, size_t size_bytes);
// Exclusive or of 16-bit big-endian words.
uint64_t hash_xor16(const uint8_t* data, size_t size_bytes);
// Exclusive or of 32-bit big-endian words, the last one padded with zero.
uint64_t hash_xor32(const uint8_t* data, size_t size_bytes);
// CRC-8: polynomial 0x07, initial value 0.
uint64_t hash_crc8(const uint8_t* data, size_t size_bytes);
// CRC-64: polynomial 0x1B, reflected, initial value 0.
uint64_t hash_crc64(const uint8_t* data, size_t size_bytes);
// XXH64 with seed 0 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md).
uint64_t hash_xxh64(const uint8_t* data, size_t size_bytes);
// The first eight bytes as a big-endian number.
uint64_t hash_identity(const uint8_t* data, size_t size_bytes);

}  // namespace weft
