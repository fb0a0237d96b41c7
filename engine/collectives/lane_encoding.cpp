#include "collectives/lane_encoding.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "collectives/block_floating_point.hpp"
#include "collectives/narrow_floats.hpp"

namespace weft {
namespace {

constexpr size_t kPieceElements = 64;
constexpr uint32_t kFloat32Infinity = 0x7F800000;

// Calls function(Element()) with the type of the elements.
template <class Function>
auto with_type(DataType dtype, Function function) {
  switch (dtype) {
    case DataType::kInt16:
      return function(int16_t());
    case DataType::kInt8:
      return function(int8_t());
    case DataType::kFloat32:
      return function(float());
    case DataType::kFloat16:
      return function(Float16());
    case DataType::kBfloat16:
      return function(Bfloat16());
    case DataType::kInt32:
      break;
  }
  return function(int32_t());
}

LaneType lane_type_of(DataType dtype) {
  if (element_bytes(dtype) == 4) return LaneType::kInt32;
  return element_bytes(dtype) == 2 ? LaneType::kInt16 : LaneType::kInt8;
}

// An integer of 16 bits rounds what it carries no more coarsely than the float's own type rounds the largest
// element of the block, if its magnitude has as many bits as the significand.
LaneType lane_type_of_sum(DataType dtype, int headroom_bits) {
  return with_type(dtype, [&]<class T>(T) {
    if constexpr (requires { T::kPrecision; }) {
      if (bfp::magnitude_bits(16, headroom_bits) >= T::kPrecision) return LaneType::kInt16;
    }
    return LaneType::kInt32;
  });
}

template <class T>
using SignedOf =
    std::conditional_t<sizeof(T) == 4, int32_t, std::conditional_t<sizeof(T) == 2, int16_t, int8_t>>;

// Integers stay what they are. Floats become integers of the same order, and back: the same exchange both
// ways.
template <class T>
SignedOf<T> ordered(SignedOf<T> bits) {
  if constexpr (std::is_integral_v<T>) {
    return bits;
  } else {
    constexpr int kSignShift = 8 * sizeof(T) - 1;
    constexpr auto kMagnitude = static_cast<SignedOf<T>>((uint32_t{1} << kSignShift) - 1);
    return static_cast<SignedOf<T>>(bits ^ ((bits >> kSignShift) & kMagnitude));
  }
}

template <class T>
void pack(const T* elements, size_t count, int32_t* lanes) {
  if constexpr (std::is_same_v<T, int32_t>) {
    std::copy_n(elements, count, lanes);
    return;
  }
  constexpr size_t kEach = 4 / sizeof(T);
  constexpr int kBits = 8 * sizeof(T);
  using Bits = std::make_unsigned_t<SignedOf<T>>;
  for (size_t lane = 0; lane * kEach < count; ++lane) {
    uint32_t word = 0;
    for (size_t place = 0; place < kEach; ++place) {
      const size_t index = lane * kEach + place;
      const Bits bits =
          index < count ? static_cast<Bits>(ordered<T>(std::bit_cast<SignedOf<T>>(elements[index]))) : 0;
      word |= static_cast<uint32_t>(bits) << (kBits * (kEach - 1 - place));
    }
    lanes[lane] = static_cast<int32_t>(word);
  }
}

template <class T>
void unpack(const int32_t* lanes, size_t count, T* elements) {
  if constexpr (std::is_same_v<T, int32_t>) {
    std::copy_n(lanes, count, elements);
    return;
  }
  constexpr size_t kEach = 4 / sizeof(T);
  constexpr int kBits = 8 * sizeof(T);
  for (size_t index = 0; index < count; ++index) {
    const auto word = static_cast<uint32_t>(lanes[index / kEach]);
    const auto bits = static_cast<SignedOf<T>>(word >> (kBits * (kEach - 1 - index % kEach)));
    elements[index] = std::bit_cast<T>(ordered<T>(bits));
  }
}

// Integers that fit 16 bits, two to a lane, the first in its high half.
void pack_pairs(const int32_t* integers, size_t count, int32_t* lanes) {
  for (size_t i = 0; i + 1 < count; i += 2) {
    const auto high = static_cast<uint32_t>(integers[i]) << 16;
    lanes[i / 2] = static_cast<int32_t>(high | (static_cast<uint32_t>(integers[i + 1]) & 0xFFFF));
  }
  if (count % 2 != 0) {
    lanes[count / 2] = static_cast<int32_t>(static_cast<uint32_t>(integers[count - 1]) << 16);
  }
}

void unpack_pairs(const int32_t* lanes, size_t count, int32_t* integers) {
  for (size_t i = 0; i < count; ++i) {
    const auto word = static_cast<uint32_t>(lanes[i / 2]);
    integers[i] = static_cast<int16_t>(i % 2 == 0 ? word >> 16 : word);
  }
}

// Calls function(floats, count, offset) with the elements as float32, which holds every narrower one exactly.
template <class T, class Function>
void as_float32(const T* elements, size_t count, Function function) {
  if constexpr (std::is_same_v<T, float>) {
    function(elements, count, size_t{0});
  } else {
    std::array<float, kPieceElements> piece;
    for (size_t offset = 0; offset < count; offset += kPieceElements) {
      const size_t length = std::min(kPieceElements, count - offset);
      for (size_t i = 0; i < length; ++i) piece[i] = static_cast<float>(elements[offset + i].value());
      function(piece.data(), length, offset);
    }
  }
}

// Returns whether a sum is infinite; none is NaN.
template <class T>
bool dequantise(const int32_t* sums, size_t count, int32_t exponent, int magnitude_bits, T* block) {
  if constexpr (std::is_same_v<T, float>) {
    bfp::dequantise(sums, count, exponent, magnitude_bits, block);
    uint32_t largest = 0;
    for (size_t i = 0; i < count; ++i) {
      const uint32_t magnitude = std::bit_cast<uint32_t>(block[i]) & kFloat32Infinity;
      largest = magnitude > largest ? magnitude : largest;
    }
    return largest == kFloat32Infinity;
  } else {
    const double scale = std::ldexp(1.0, exponent - magnitude_bits);
    bool overflowed = false;
    for (size_t i = 0; i < count; ++i) {
      block[i] = T::of(sums[i] * scale);
      overflowed |= (block[i].bits & T::kInfinity) == T::kInfinity;
    }
    return overflowed;
  }
}

template <class T>
void check_no_nan(const T* elements, size_t count, ReduceOperation operation) {
  for (size_t i = 0; i < count; ++i) {
    if (!std::isnan(value_of(elements[i]))) continue;
    throw std::domain_error("element " + std::to_string(i) + " is nan: a " +
                            reduce_operation_name(operation) + " in the network has no place for it");
  }
}

}  // namespace

LaneEncoding::LaneEncoding(DataType dtype, ReduceOperation operation, uint32_t rank_count)
    : dtype_(dtype),
      operation_(operation),
      has_exponents_(is_float(dtype) && operation == ReduceOperation::kSum),
      lane_type_(lane_type_of(dtype)) {
  check_reduction(dtype, operation);
  if (!has_exponents_) return;
  const int headroom_bits = bfp::headroom_bits(rank_count);
  lane_type_ = lane_type_of_sum(dtype, headroom_bits);
  magnitude_bits_ = bfp::magnitude_bits(lane_type_ == LaneType::kInt16 ? 16 : 32, headroom_bits);
}

void LaneEncoding::check(const void* elements, size_t count) const {
  with_type(dtype_, [&]<class T>(T) {
    if constexpr (!std::is_integral_v<T>) {
      if (!has_exponents_) check_no_nan(static_cast<const T*>(elements), count, operation_);
    }
  });
}

int32_t LaneEncoding::exponent(const void* block, size_t count, size_t first_index) const {
  int32_t largest = bfp::kZeroExponent;
  with_type(dtype_, [&]<class T>(T) {
    if constexpr (!std::is_integral_v<T>) {
      as_float32(static_cast<const T*>(block), count, [&](const float* floats, size_t length, size_t offset) {
        largest = std::max(largest, bfp::block_exponent(floats, length, first_index + offset));
      });
    }
  });
  return largest;
}

void LaneEncoding::encode(const void* block, size_t count, int32_t exponent, int32_t* lanes) const {
  with_type(dtype_, [&]<class T>(T) {
    const T* elements = static_cast<const T*>(block);
    if constexpr (!std::is_integral_v<T>) {
      if (has_exponents_) {
        return as_float32(elements, count, [&](const float* floats, size_t length, size_t offset) {
          if (lane_type_ == LaneType::kInt32) {
            return bfp::quantise(floats, length, exponent, magnitude_bits_, lanes + offset);
          }
          std::array<int32_t, kPieceElements> integers;
          bfp::quantise(floats, length, exponent, magnitude_bits_, integers.data());
          pack_pairs(integers.data(), length, lanes + offset / 2);
        });
      }
    }
    pack(elements, count, lanes);
  });
}

void LaneEncoding::encode_exponents(const int32_t* exponents, size_t count, int32_t* lanes) const {
  if (lane_type_ == LaneType::kInt16) return pack_pairs(exponents, count, lanes);
  std::copy_n(exponents, count, lanes);
}

void LaneEncoding::decode_exponents(const int32_t* lanes, size_t count, int32_t* exponents) const {
  if (lane_type_ == LaneType::kInt16) return unpack_pairs(lanes, count, exponents);
  std::copy_n(lanes, count, exponents);
}

bool LaneEncoding::decode(const int32_t* lanes, size_t count, int32_t exponent, void* block) const {
  return with_type(dtype_, [&]<class T>(T) {
    T* elements = static_cast<T*>(block);
    if constexpr (!std::is_integral_v<T>) {
      if (has_exponents_) {
        if (lane_type_ == LaneType::kInt32) {
          return dequantise(lanes, count, exponent, magnitude_bits_, elements);
        }
        bool overflowed = false;
        for (size_t offset = 0; offset < count; offset += kPieceElements) {
          const size_t length = std::min(kPieceElements, count - offset);
          std::array<int32_t, kPieceElements> sums;
          unpack_pairs(lanes + offset / 2, length, sums.data());
          overflowed |= dequantise(sums.data(), length, exponent, magnitude_bits_, elements + offset);
        }
        return overflowed;
      }
    }
    unpack(lanes, count, elements);
    return false;
  });
}

}  // namespace weft
