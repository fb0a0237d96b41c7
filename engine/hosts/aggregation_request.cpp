#include "hosts/aggregation_request.hpp"

#include <algorithm>
#include <utility>

#include "collectives/block_floating_point.hpp"

namespace weft {
namespace {

constexpr size_t kBlock = bfp::kBlockElements;
constexpr int32_t kMaxFloatExponent = 128;  // FLT_MAX < 2^128

// Calls visit(block, first, count) for the blocks of so many elements; the last one may be less than whole.
template <class Visit>
void for_blocks(size_t element_count, Visit visit) {
  for (size_t first = 0; first < element_count; first += kBlock) {
    visit(first / kBlock, first, std::min(kBlock, element_count - first));
  }
}

// Bits of any kind, which the sum of a single worker's leaves as they are.
DataType bits_of(DataType dtype) {
  if (element_bytes(dtype) == 4) return DataType::kInt32;
  return element_bytes(dtype) == 2 ? DataType::kInt16 : DataType::kInt8;
}

bool is_moved(const std::vector<AggregationPart>& parts) {
  return !parts.empty() && parts.front().flow != AggregationFlow::kReduced;
}

LaneEncoding encoding_of(const std::vector<AggregationPart>& parts, DataType dtype, ReduceOperation operation,
                         uint32_t rank_count) {
  if (is_moved(parts)) return {bits_of(dtype), ReduceOperation::kSum, rank_count};
  return {dtype, operation, rank_count};
}

}  // namespace

AggregationRequest::AggregationRequest(AggregationBuffers buffers, std::vector<AggregationPart> parts,
                                       DataType dtype, ReduceOperation operation, uint32_t rank_count,
                                       size_t lane_count)
    : buffers_(buffers),
      encoding_(encoding_of(parts, dtype, operation, rank_count)),
      operation_(is_moved(parts) ? ReduceOperation::kSum : operation),
      element_bytes_(element_bytes(dtype)),
      blocks_(std::move(parts), lane_count * encoding_.elements_per_lane()),
      lane_count_(lane_count) {
  encoding_.check(buffers.source, buffers.element_count);
  if (encoding_.has_exponents()) find_exponents();
}

void AggregationRequest::find_exponents() {
  const size_t message_exponents = message_blocks();
  // What a part's last message has no elements for stays zero on all ranks.
  exponents_.resize(blocks_.count() * message_exponents, bfp::kZeroExponent);
  for (uint64_t number = 0; number < blocks_.count(); ++number) {
    const auto [part, begin, element_count] = blocks_[number];
    for_blocks(element_count, [&, begin = begin](size_t block, size_t first, size_t count) {
      exponents_[number * message_exponents + block] =
          encoding_.exponent(source(begin + first), count, begin + first);
    });
  }
  exponent_message_count_ = (blocks_.count() + kGroupMessages - 1) / kGroupMessages;
  exponents_agreed_.resize(exponent_message_count_, false);
  lead_groups_ = std::min(exponent_message_count_, kSwitchLanes / (lane_count_ * kGroupMessages));
}

const uint8_t* AggregationRequest::source(uint64_t element) const {
  return static_cast<const uint8_t*>(buffers_.source) + element * element_bytes_;
}

uint8_t* AggregationRequest::destination(uint64_t element) const {
  return static_cast<uint8_t*>(buffers_.destination) + element * element_bytes_;
}

AggregationRequest::Content AggregationRequest::content(uint64_t message) const {
  if (exponent_message_count_ == 0) return {false, message};
  if (message < lead_groups_) return {true, message};
  const uint64_t group = (message - lead_groups_) / (kGroupMessages + 1);
  const uint64_t position = (message - lead_groups_) % (kGroupMessages + 1);
  if (group + lead_groups_ >= exponent_message_count_) {
    // No exponents follow; a group before these has its 64 messages and the exponents of a later one.
    return {false, message - exponent_message_count_};
  }
  if (position == 0) return {true, group + lead_groups_};
  return {false, group * kGroupMessages + position - 1};
}

AggregationPurpose AggregationRequest::purpose(uint64_t message) const {
  const Content what = content(message);
  if (what.is_exponents) return {.operation = ReduceOperation::kMax, .lane_type = encoding_.lane_type()};
  const AggregationPart& part = *blocks_[what.index].part;
  return {.operation = operation_,
          .lane_type = encoding_.lane_type(),
          .receiver = part.receiver,
          .has_lanes = part.contributes,
          .has_result = part.flow != AggregationFlow::kSignal};
}

bool AggregationRequest::ready(uint64_t message) const {
  const Content what = content(message);
  return exponents_agreed_.empty() || what.is_exponents || exponents_agreed_[what.index / kGroupMessages];
}

std::span<const int32_t> AggregationRequest::exponents_of(uint64_t group) const {
  const size_t whole = kGroupMessages * message_blocks();
  const std::span<const int32_t> behind = std::span(exponents_).subspan(group * whole);
  return behind.first(std::min(whole, behind.size()));
}

void AggregationRequest::compose(uint64_t message, std::span<int32_t> lanes) const {
  const Content what = content(message);
  std::fill(lanes.begin(), lanes.end(), 0);
  if (what.is_exponents) {
    const std::span<const int32_t> exponents = exponents_of(what.index);
    encoding_.encode_exponents(exponents.data(), exponents.size(), lanes.data());
    return;
  }
  const auto [part, begin, element_count] = blocks_[what.index];
  if (!encoding_.has_exponents()) {
    encoding_.encode(source(begin), element_count, 0, lanes.data());
    return;
  }
  const int32_t* exponents = exponents_.data() + what.index * message_blocks();
  for_blocks(element_count, [&, begin = begin](size_t block, size_t first, size_t count) {
    int32_t* const block_lanes = lanes.data() + first / encoding_.elements_per_lane();
    encoding_.encode(source(begin + first), count, exponents[block], block_lanes);
  });
}

bool AggregationRequest::accept(uint64_t message, std::span<const int32_t> lanes, bool has_overflowed) {
  const Content what = content(message);
  if (what.is_exponents) {
    const std::span<const int32_t> own = exponents_of(what.index);
    std::array<int32_t, 2 * roce::kMaxAggregationLanes> agreed;
    encoding_.decode_exponents(lanes.data(), own.size(), agreed.data());
    for (size_t i = 0; i < own.size(); ++i) {
      if (agreed[i] < own[i] || agreed[i] > kMaxFloatExponent) return false;
    }
    std::copy_n(agreed.data(), own.size(),
                exponents_.data() + what.index * kGroupMessages * message_blocks());
    exponents_agreed_[what.index] = true;
    return true;
  }
  const auto [part, begin, element_count] = blocks_[what.index];
  if (!encoding_.has_exponents()) {
    encoding_.decode(lanes.data(), element_count, 0, destination(begin));
  } else {
    const int32_t* exponents = exponents_.data() + what.index * message_blocks();
    for_blocks(element_count, [&, begin = begin](size_t block, size_t first, size_t count) {
      const int32_t* const block_lanes = lanes.data() + first / encoding_.elements_per_lane();
      has_overflowed |= encoding_.decode(block_lanes, count, exponents[block], destination(begin + first));
    });
  }
  if (has_overflowed) ++overflowed_messages_;
  return true;
}

}  // namespace weft
