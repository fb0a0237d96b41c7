// Block floating point: blocks of floats as integers under an exponent common to all ranks, so that switches
// can add them exactly (docs/spec/aggregation.md, "Sums of floats"; after SwitchML, Sapio et al., NSDI 2021,
// section 3.7).
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::bfp {

constexpr size_t kBlockElements = 64;

// Exponent of a block of zeros: below that of the smallest denormal (2^-149 < 2^-148).
constexpr int32_t kZeroExponent = -149;

// The exponent e of a block: the smallest with |x| < 2^e for all its elements (frexp's exponent of the
// largest magnitude), kZeroExponent if all are zero. Throws std::domain_error naming the element and value of
// the first NaN or infinity; `first_index` is the block's place in the buffer, for the message.
int32_t block_exponent(const float* block, size_t count, size_t first_index);

// Bits that a sum of `rank_count` (1 to 2^30) values needs above one value: ceil(log2 n). From 256 ranks on
// it is ceil(log2(n + 1)), because float32's largest mantissa then rounds up to 2^(31 - bits) itself.
int headroom_bits(uint32_t rank_count);

// Bits of an integer's magnitude without those of the headroom: with `precision` bits or more, the block's
// largest elements are carried exactly.
constexpr int magnitude_bits(int integer_bits, int headroom_bits) { return integer_bits - 1 - headroom_bits; }

// integers[i] = rint(block[i] · 2^(magnitude_bits - exponent)). All |block[i]| < 2^exponent.
void quantise(const float* block, size_t count, int32_t exponent, int magnitude_bits, int32_t* integers);

// block[i] = sums[i] · 2^(exponent - magnitude_bits), rounded once to float32.
void dequantise(const int32_t* sums, size_t count, int32_t exponent, int magnitude_bits, float* block);

// Order-preserving integers, for exact maxima and minima of floats: a < b as floats exactly if so as
// integers (-0.0 sorts below +0.0; NaN has no place in the order and is for the caller to refuse).
int32_t to_ordered_integer(float value);
float from_ordered_integer(int32_t value);

}  // namespace weft::bfp
