#include "packets/crc32.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft {
namespace {

constexpr uint32_t kPolynomial = 0x04C11DB7u;
constexpr uint32_t kReflectedPolynomial = 0xEDB88320u;

using Tables = std::array<std::array<uint32_t, 256>, 16>;

// tables[k][b]: what byte b, followed by k zero bytes, adds to the CRC.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? kReflectedPolynomial : 0);
    tables[0][byte] = state;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t previous = tables[k - 1][byte];
      tables[k][byte] = (previous >> 8) ^ tables[0][previous & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

uint32_t load32(const uint8_t* from) {
  uint32_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

uint32_t four_bytes(uint32_t word, size_t zeros_behind) {
  return kTables[zeros_behind + 3][word & 0xFF] ^ kTables[zeros_behind + 2][(word >> 8) & 0xFF] ^
         kTables[zeros_behind + 1][(word >> 16) & 0xFF] ^ kTables[zeros_behind][word >> 24];
}

#if defined(__x86_64__)

// x^exponent modulo the polynomial, in the bit order and alignment that folding a reflected CRC multiplies by
// (Gopal et al., "Fast CRC computation for generic polynomials using PCLMULQDQ", Intel, 2009).
constexpr uint64_t fold_factor(int exponent) {
  uint32_t remainder = 1;
  for (int i = 0; i < exponent; ++i) {
    remainder = (remainder << 1) ^ ((remainder >> 31) != 0 ? kPolynomial : 0);
  }
  uint64_t reflected = 0;
  for (int bit = 0; bit < 32; ++bit) reflected |= static_cast<uint64_t>((remainder >> bit) & 1) << (31 - bit);
  return reflected << 1;
}

constexpr uint64_t kFold512Low = fold_factor(512 + 32);
constexpr uint64_t kFold512High = fold_factor(512 - 32);
constexpr uint64_t kFold128Low = fold_factor(128 + 32);
constexpr uint64_t kFold128High = fold_factor(128 - 32);
constexpr uint64_t kFold64 = fold_factor(64);
constexpr uint64_t kReflectedPolynomial33 = (uint64_t{kReflectedPolynomial} << 1) | 1;

// x^64 divided by the polynomial, reflected (33 bits).
constexpr uint64_t barrett_factor() {
  uint64_t remainder = uint64_t{1} << 32;
  uint64_t reflected = 0;
  for (int bit = 0; bit <= 32; ++bit) {
    const bool divides = (remainder >> 32) != 0;
    if (divides) reflected |= uint64_t{1} << bit;
    remainder = (remainder ^ (divides ? (uint64_t{1} << 32) | kPolynomial : 0)) << 1;
  }
  return reflected;
}
constexpr uint64_t kBarrett = barrett_factor();
static_assert(kFold64 == 0x163CD6124 && kBarrett == 0x1F7011641, "factors as published");
static_assert(kFold512Low == 0x154442BD4 && kFold128High == 0x0CCAA009E, "factors as published");

#define WEFT_CLMUL __attribute__((target("pclmul,sse4.1")))

WEFT_CLMUL inline __m128i load128(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// Moves `block` as far ahead as the factors say and adds `next`, which stands there.
WEFT_CLMUL inline __m128i fold(__m128i block, __m128i factors, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(block, factors, 0x00);
  const __m128i high = _mm_clmulepi64_si128(block, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// The state that a block of 16 bytes leaves behind, by Barrett's reduction (same source).
WEFT_CLMUL inline uint32_t reduce(__m128i block) {
  const __m128i low_32 = _mm_set_epi32(0, 0, 0, -1);
  const __m128i by_128 = _mm_cvtsi64_si128(static_cast<int64_t>(kFold128High));
  const __m128i by_64 = _mm_cvtsi64_si128(static_cast<int64_t>(kFold64));
  const __m128i barrett =
      _mm_set_epi64x(static_cast<int64_t>(kBarrett), static_cast<int64_t>(kReflectedPolynomial33));
  block = _mm_xor_si128(_mm_srli_si128(block, 8), _mm_clmulepi64_si128(block, by_128, 0x00));
  block = _mm_xor_si128(_mm_srli_si128(block, 4),
                        _mm_clmulepi64_si128(_mm_and_si128(block, low_32), by_64, 0x00));
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(block, low_32), barrett, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_32), barrett, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(block, quotient), 1));
}

// At least 64 bytes. Folds all whole 16-byte blocks into one and leaves the tail to the tables.
WEFT_CLMUL uint32_t update_with_clmul(uint32_t state, const uint8_t* data, size_t size_bytes) {
  const __m128i by_512 =
      _mm_set_epi64x(static_cast<int64_t>(kFold512High), static_cast<int64_t>(kFold512Low));
  const __m128i by_128 =
      _mm_set_epi64x(static_cast<int64_t>(kFold128High), static_cast<int64_t>(kFold128Low));
  __m128i lanes[4];
  for (int lane = 0; lane < 4; ++lane) lanes[lane] = load128(data + 16 * lane);
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(state)));
  data += 64;
  size_bytes -= 64;
  for (; size_bytes >= 64; data += 64, size_bytes -= 64) {
    for (int lane = 0; lane < 4; ++lane) lanes[lane] = fold(lanes[lane], by_512, load128(data + 16 * lane));
  }
  __m128i block = lanes[0];
  for (int lane = 1; lane < 4; ++lane) block = fold(block, by_128, lanes[lane]);
  for (; size_bytes >= 16; data += 16, size_bytes -= 16) block = fold(block, by_128, load128(data));
  return crc32_update_portable(reduce(block), data, size_bytes);
}

// At least 16 bytes. What is no whole block goes first, by the tables, which is what few bytes cost least by.
WEFT_CLMUL uint32_t update_short_with_clmul(uint32_t state, const uint8_t* data, size_t size_bytes) {
  const __m128i by_128 =
      _mm_set_epi64x(static_cast<int64_t>(kFold128High), static_cast<int64_t>(kFold128Low));
  const size_t odd_bytes = size_bytes % 16;
  state = crc32_update_portable(state, data, odd_bytes);
  const uint8_t* const end = data + size_bytes;
  data += odd_bytes;
  __m128i block = _mm_xor_si128(load128(data), _mm_cvtsi32_si128(static_cast<int>(state)));
  for (data += 16; data != end; data += 16) block = fold(block, by_128, load128(data));
  return reduce(block);
}

#endif

}  // namespace

uint32_t crc32_update_portable(uint32_t state, const uint8_t* data, size_t size_bytes) {
  for (; size_bytes >= 16; data += 16, size_bytes -= 16) {
    state = four_bytes(load32(data) ^ state, 12) ^ four_bytes(load32(data + 4), 8) ^
            four_bytes(load32(data + 8), 4) ^ four_bytes(load32(data + 12), 0);
  }
  if (size_bytes >= 8) {
    state = four_bytes(load32(data) ^ state, 4) ^ four_bytes(load32(data + 4), 0);
    data += 8;
    size_bytes -= 8;
  }
  if (size_bytes >= 4) {
    state = four_bytes(load32(data) ^ state, 0);
    data += 4;
    size_bytes -= 4;
  }
  for (; size_bytes > 0; ++data, --size_bytes) state = (state >> 8) ^ kTables[0][(state ^ *data) & 0xFF];
  return state;
}

uint32_t crc32_update(uint32_t state, const uint8_t* data, size_t size_bytes) {
#if defined(__x86_64__)
  static const bool has_clmul = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  if (size_bytes >= 16 && has_clmul)
    return size_bytes >= 64 ? update_with_clmul(state, data, size_bytes)
                            : update_short_with_clmul(state, data, size_bytes);
#endif
  return crc32_update_portable(state, data, size_bytes);
}

}  // namespace weft
