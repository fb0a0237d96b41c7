// float16 (IEEE 754 binary16) and bfloat16 as values: 16 bits each, converted from double with one rounding
// to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace weft {

template <int kMantissaBits>
struct NarrowFloat {
  // Bits of the significand, with the one that normal numbers do not store.
  static constexpr int kPrecision = kMantissaBits + 1;
  // binary16 has 5 exponent bits and 10 of mantissa, bfloat16 8 and 7.
  static constexpr int kExponentBits = 15 - kMantissaBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr uint16_t kSign = 0x8000;
  static constexpr uint16_t kInfinity = ((1 << kExponentBits) - 1) << kMantissaBits;

  uint16_t bits = 0;

  double value() const {
    const uint64_t magnitude = bits & ~kSign & 0xFFFF;
    const uint64_t sign = static_cast<uint64_t>(bits & kSign) << 48;
    uint64_t wide = magnitude << kShift;
    if (magnitude >= kInfinity) {
      wide |= kDoubleInfinity;
    } else if (magnitude >= (1u << kMantissaBits)) {
      wide += static_cast<uint64_t>(kDoubleBias - kBias) << 52;
    } else {
      wide = std::bit_cast<uint64_t>(static_cast<double>(magnitude) * power_of_two(kLeastExponent));
    }
    return std::bit_cast<double>(sign | wide);
  }

  static NarrowFloat of(double value) {
    const uint64_t wide = std::bit_cast<uint64_t>(value);
    const auto sign = static_cast<uint16_t>(wide >> 48 & kSign);
    const uint64_t magnitude = wide & ~kDoubleSign;
    if (magnitude > kDoubleInfinity) return {static_cast<uint16_t>(sign | kInfinity | kQuiet)};
    if (magnitude >= static_cast<uint64_t>(kBias + 1 + kDoubleBias) << 52) {
      return {static_cast<uint16_t>(sign | kInfinity)};
    }
    int exponent = static_cast<int>(magnitude >> 52) - kDoubleBias;
    if (exponent < 1 - kBias) exponent = 1 - kBias;
    // Adding a number whose last bit is the format's at this exponent rounds to that.
    const double rounder = power_of_two(exponent - kMantissaBits + 52);
    const double rounded = (std::bit_cast<double>(magnitude) + rounder) - rounder;
    const uint64_t exact = std::bit_cast<uint64_t>(rounded);
    const uint64_t code =
        exact >= static_cast<uint64_t>(1 - kBias + kDoubleBias) << 52
            ? (exact >> kShift) - (static_cast<uint64_t>(kDoubleBias - kBias) << kMantissaBits)
            : static_cast<uint64_t>(rounded * power_of_two(-kLeastExponent));
    return {static_cast<uint16_t>(sign | code)};
  }

 private:
  static constexpr int kShift = 52 - kMantissaBits;
  static constexpr int kDoubleBias = 1023;
  static constexpr int kLeastExponent = 1 - kBias - kMantissaBits;  // of the smallest subnormal
  static constexpr uint64_t kDoubleSign = uint64_t{1} << 63;
  static constexpr uint64_t kDoubleInfinity = uint64_t{0x7FF} << 52;
  static constexpr uint16_t kQuiet = 1 << (kMantissaBits - 1);

  static constexpr double power_of_two(int exponent) {
    return std::bit_cast<double>(static_cast<uint64_t>(exponent + kDoubleBias) << 52);
  }
};

using Float16 = NarrowFloat<10>;
using Bfloat16 = NarrowFloat<7>;

inline double value_of(float number) { return static_cast<double>(number); }
template <int kMantissaBits>
double value_of(NarrowFloat<kMantissaBits> number) {
  return number.value();
}

// The number of a type that is nearest to a double.
template <class T>
T nearest(double value) {
  return T::of(value);
}
template <>
inline float nearest<float>(double value) {
  return static_cast<float>(value);
}

}  // namespace weft
