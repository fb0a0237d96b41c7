// How elements of every type travel in the int32 lanes that switches reduce (docs/spec/aggregation.md,
// "Types").
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/reduction.hpp"

namespace weft {

// The values are those of the aggregation header's data_type field.
enum class LaneType : uint8_t { kInt32 = 0, kInt16 = 1, kInt8 = 2 };

constexpr size_t elements_per_lane(LaneType type) { return size_t{1} << static_cast<int>(type); }

// Integers travel as they are, the narrow ones packed in a lane, the first in its highest bits. So do maxima
// and minima of floats, as order-preserving integers of the same size. Sums of floats are block floating
// point, under an exponent that all ranks have agreed on: in int16, two to a lane, as long as that holds the
// whole significand of the block's largest elements beside the bits that the sum needs, else in int32.
class LaneEncoding {
 public:
  // Throws std::invalid_argument as check_reduction() and bfp::headroom_bits().
  LaneEncoding(DataType dtype, ReduceOperation operation, uint32_t rank_count);

  LaneType lane_type() const { return lane_type_; }
  size_t elements_per_lane() const { return weft::elements_per_lane(lane_type_); }
  bool has_exponents() const { return has_exponents_; }

  // Throws std::domain_error naming the first NaN of a maximum or minimum of floats.
  void check(const void* elements, size_t count) const;
  // Of a block of floats. Throws as bfp::block_exponent().
  int32_t exponent(const void* block, size_t count, size_t first_index) const;
  // Writes the lanes of `count` elements; what is left of the last one is 0. Without exponents, `exponent`
  // means nothing.
  void encode(const void* block, size_t count, int32_t exponent, int32_t* lanes) const;
  // Lanes of a message with exponents: integers of the same type as the data's, so that one message has those
  // of as many blocks as there are elements in a lane times lanes.
  void encode_exponents(const int32_t* exponents, size_t count, int32_t* lanes) const;
  void decode_exponents(const int32_t* lanes, size_t count, int32_t* exponents) const;
  // The inverse. Returns whether a finite sum is infinite in the data type.
  bool decode(const int32_t* lanes, size_t count, int32_t exponent, void* block) const;

 private:
  DataType dtype_;
  ReduceOperation operation_;
  bool has_exponents_;
  LaneType lane_type_;
  int magnitude_bits_ = 0;  // of sums of floats
};

}  // namespace weft
