// One collective as a sequence of aggregation messages: which message carries what, and what a result means.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/aggregation_parts.hpp"
#include "collectives/block_floating_point.hpp"
#include "collectives/lane_encoding.hpp"
#include "collectives/reduction.hpp"
#include "packets/roce_formats.hpp"

namespace weft {

// Room for the lanes of one message, in host order, however many it has.
using LaneValues = std::array<int32_t, roce::kMaxAggregationLanes>;

struct AggregationBuffers {
  const void* source = nullptr;  // aligned to an element; stays as it is until the request is done
  void* destination = nullptr;   // may be the source itself
  uint64_t element_count = 0;
};

// What a message is for.
struct AggregationPurpose {
  ReduceOperation operation = ReduceOperation::kSum;  // of the switches, with its lanes
  LaneType lane_type = LaneType::kInt32;
  uint32_t receiver = AggregationPart::kAll;  // rank that gets the lanes of the result
  bool has_lanes = true;                      // of this worker
  bool has_result = true;                     // with lanes, for the receiver
};

// A message has as many elements as its lanes carry (LaneEncoding); what is moved has its bits there, which
// the switches add to nothing. A float sum is block floating point in blocks of 64 elements: messages with
// exponents, each those of a group of 64 messages of data, run L groups ahead of the data,
// E0 … E(L-1) EL D0…D63 E(L+1) D64…D127 …. So sums are the same whatever the number of lanes.
//
// L groups are what a switch has memory for, the most that can be under way: data that wait for exponents
// never leave a link idle, however long a round trip takes. All workers must have the same order, over other
// trees with other slots, too, so that it depends on the number of lanes alone.
class AggregationRequest {
 public:
  // Throws std::domain_error naming the first element that is NaN (or, in a sum of floats, infinite), and as
  // LaneEncoding.
  AggregationRequest(AggregationBuffers buffers, std::vector<AggregationPart> parts, DataType dtype,
                     ReduceOperation operation, uint32_t rank_count, size_t lane_count);

  uint64_t message_count() const { return exponent_message_count_ + blocks_.count(); }
  AggregationPurpose purpose(uint64_t message) const;
  // Whether the message can be composed: the exponents of its block are agreed on.
  bool ready(uint64_t message) const;
  // The lanes to send, in host order, where there are any; requires ready(message). The same every time until
  // the message is accepted.
  void compose(uint64_t message, std::span<int32_t> lanes) const;
  // Stores the lanes of a message's result, once. False, and nothing stored, if no honest network can have
  // sent it: an exponent below our own or beyond float32's. `has_overflowed`: a switch says that a sum left
  // its range.
  bool accept(uint64_t message, std::span<const int32_t> lanes, bool has_overflowed);
  // Messages accepted so far with a sum that left the range of its type.
  uint64_t overflowed_messages() const { return overflowed_messages_; }

 private:
  static constexpr uint64_t kGroupMessages = bfp::kBlockElements;
  // Of a switch's slots, whatever their width (p4/include/aggregation.p4).
  static constexpr uint64_t kSwitchLanes = 4096 * 64;

  // A message is the exponents of a group of messages with data, or one of these.
  struct Content {
    bool is_exponents;
    uint64_t index;  // among the messages of its kind
  };
  Content content(uint64_t message) const;
  const uint8_t* source(uint64_t element) const;
  uint8_t* destination(uint64_t element) const;
  void find_exponents();
  // Blocks of a message with data.
  size_t message_blocks() const { return lane_count_ * encoding_.elements_per_lane() / bfp::kBlockElements; }
  // Those of a group: of 64 messages of data, or less at the end.
  std::span<const int32_t> exponents_of(uint64_t group) const;

  AggregationBuffers buffers_;
  LaneEncoding encoding_;
  ReduceOperation operation_;
  size_t element_bytes_;
  AggregationBlocks blocks_;  // of messages with data
  size_t lane_count_;
  uint64_t overflowed_messages_ = 0;
  uint64_t exponent_message_count_ = 0;  // 0 unless block floating point
  uint64_t lead_groups_ = 0;             // whose exponents go before all else
  std::vector<int32_t> exponents_;       // by message, then by block: our own, then the agreed one
  std::vector<bool> exponents_agreed_;   // by group
};

}  // namespace weft
