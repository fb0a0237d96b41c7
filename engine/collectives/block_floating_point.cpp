#include "collectives/block_floating_point.hpp"

#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

namespace weft::bfp {
namespace {

constexpr uint32_t kMagnitudeMask = 0x7FFFFFFF;
constexpr uint32_t kInfinityBits = 0x7F800000;
constexpr uint32_t kMaxRanks = 1u << 30;

// Adding it leaves the integer nearest to a double (ties to even, |x| < 2^51) in the sum's low mantissa bits:
// plain SSE2 has no rounding instruction, and this form vectorises.
constexpr double kRoundingShift = 6755399441055744.0;  // 1.5 · 2^52

[[noreturn]] void throw_not_finite(const float* block, size_t count, size_t first_index) {
  for (size_t i = 0; i < count; ++i) {
    if (std::isfinite(block[i])) continue;
    throw std::domain_error("element " + std::to_string(first_index + i) + " is " + std::to_string(block[i]) +
                            ": block floating point carries finite values only");
  }
  throw std::logic_error("no element is NaN or infinite");
}

}  // namespace

int32_t block_exponent(const float* block, size_t count, size_t first_index) {
  // Magnitudes compare as integers, NaN and infinity above all others.
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(block[i]) & kMagnitudeMask;
    largest = magnitude > largest ? magnitude : largest;
  }
  if (largest >= kInfinityBits) throw_not_finite(block, count, first_index);
  if (largest == 0) return kZeroExponent;
  int exponent = 0;
  std::frexp(std::bit_cast<float>(largest), &exponent);
  return exponent;
}

int headroom_bits(uint32_t rank_count) {
  if (rank_count == 0 || rank_count > kMaxRanks) {
    throw std::invalid_argument("block floating point for " + std::to_string(rank_count) +
                                " ranks (valid: 1 to " + std::to_string(kMaxRanks) + ")");
  }
  return std::bit_width(rank_count <= 128 ? rank_count - 1 : rank_count);
}

void quantise(const float* block, size_t count, int32_t exponent, int magnitude_bits, int32_t* integers) {
  // A power of two: scaling is exact, so the only error is the rounding to an integer.
  const double scale = std::ldexp(1.0, magnitude_bits - exponent);
  for (size_t i = 0; i < count; ++i) {
    const double shifted = static_cast<double>(block[i]) * scale + kRoundingShift;
    integers[i] = static_cast<int32_t>(std::bit_cast<int64_t>(shifted));
  }
}

void dequantise(const int32_t* sums, size_t count, int32_t exponent, int magnitude_bits, float* block) {
  const double scale = std::ldexp(1.0, exponent - magnitude_bits);
  for (size_t i = 0; i < count; ++i) block[i] = static_cast<float>(sums[i] * scale);
}

int32_t to_ordered_integer(float value) {
  const int32_t bits = std::bit_cast<int32_t>(value);
  return bits ^ ((bits >> 31) & 0x7FFFFFFF);
}

float from_ordered_integer(int32_t value) {
  return std::bit_cast<float>(value ^ ((value >> 31) & 0x7FFFFFFF));
}

}  // namespace weft::bfp
