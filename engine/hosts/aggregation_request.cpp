#include "hosts/aggregation_request.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
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

}  // namespace

AggregationRequest::AggregationRequest(AggregationBuffers buffers, std::vector<AggregationPart> parts,
                                       DataType dtype, ReduceOperation operation, uint32_t rank_count,
                                       size_t lane_count)
    : buffers_(buffers),
      dtype_(dtype),
      operation_(operation),
      blocks_(std::move(parts), lane_count),
      lane_count_(lane_count) {
  if (blocks_.count() != 0 && blocks_[0].part->flow != AggregationFlow::kReduced) {
    // Bits of any kind, which the sum of a single worker's leaves as they are.
    dtype_ = DataType::kInt32;
    operation_ = ReduceOperation::kSum;
  }
  if (dtype_ != DataType::kFloat32) return;
  if (operation_ != ReduceOperation::kSum) {
    check_no_nan();
    return;
  }
  headroom_bits_ = bfp::headroom_bits(rank_count);
  find_exponents();
}

void AggregationRequest::find_exponents() {
  const float* source = static_cast<const float*>(buffers_.source);
  const size_t message_exponents = lane_count_ / kBlock;
  // What a part's last message has no elements for stays zero on all ranks.
  exponents_.resize(blocks_.count() * message_exponents, bfp::kZeroExponent);
  for (uint64_t number = 0; number < blocks_.count(); ++number) {
    const auto [part, begin, element_count] = blocks_[number];
    for_blocks(element_count, [&, begin = begin](size_t block, size_t first, size_t count) {
      exponents_[number * message_exponents + block] =
          bfp::block_exponent(source + begin + first, count, begin + first);
    });
  }
  exponent_message_count_ = (blocks_.count() + kGroupMessages - 1) / kGroupMessages;
  exponents_agreed_.resize(exponent_message_count_, false);
}

void AggregationRequest::check_no_nan() const {
  const float* source = static_cast<const float*>(buffers_.source);
  for (uint64_t i = 0; i < buffers_.element_count; ++i) {
    if (!std::isnan(source[i])) continue;
    throw std::domain_error("element " + std::to_string(i) + " is nan: a " +
                            reduce_operation_name(operation_) + " in the network has no place for it");
  }
}

AggregationRequest::Content AggregationRequest::content(uint64_t message) const {
  if (exponent_message_count_ == 0) return {false, message};
  if (message == 0) return {true, 0};
  const uint64_t group = (message - 1) / (kGroupMessages + 1);
  const uint64_t position = (message - 1) % (kGroupMessages + 1);
  const bool last_group = group + 1 >= exponent_message_count_;
  if (last_group) {
    // No exponents follow; a group before it has its 64 messages and the exponents of the next.
    return {false, message - exponent_message_count_};
  }
  if (position == 0) return {true, group + 1};
  return {false, group * kGroupMessages + position - 1};
}

AggregationPurpose AggregationRequest::purpose(uint64_t message) const {
  const Content what = content(message);
  if (what.is_exponents) return {.operation = ReduceOperation::kMax};
  const AggregationPart& part = *blocks_[what.index].part;
  return {.operation = operation_,
          .receiver = part.receiver,
          .has_lanes = part.contributes,
          .has_result = part.flow != AggregationFlow::kSignal};
}

bool AggregationRequest::ready(uint64_t message) const {
  const Content what = content(message);
  return exponents_agreed_.empty() || what.is_exponents || exponents_agreed_[what.index / kGroupMessages];
}

std::span<const int32_t> AggregationRequest::exponents_of(uint64_t group) const {
  const std::span<const int32_t> behind = std::span(exponents_).subspan(group * lane_count_);
  return behind.first(std::min(lane_count_, behind.size()));
}

void AggregationRequest::compose(uint64_t message, std::span<int32_t> lanes) const {
  const Content what = content(message);
  std::fill(lanes.begin(), lanes.end(), 0);
  if (what.is_exponents) {
    std::ranges::copy(exponents_of(what.index), lanes.begin());
    return;
  }
  const auto [part, begin, element_count] = blocks_[what.index];
  if (dtype_ == DataType::kInt32) {
    std::copy_n(static_cast<const int32_t*>(buffers_.source) + begin, element_count, lanes.data());
    return;
  }
  const float* source = static_cast<const float*>(buffers_.source) + begin;
  if (operation_ != ReduceOperation::kSum) {
    std::transform(source, source + element_count, lanes.data(), bfp::to_ordered_integer);
    return;
  }
  const int32_t* exponents = exponents_.data() + what.index * (lane_count_ / kBlock);
  for_blocks(element_count, [&](size_t block, size_t first, size_t count) {
    bfp::quantise(source + first, count, exponents[block], headroom_bits_, lanes.data() + first);
  });
}

bool AggregationRequest::accept(uint64_t message, std::span<const int32_t> lanes) {
  const Content what = content(message);
  if (what.is_exponents) {
    const std::span<const int32_t> own = exponents_of(what.index);
    for (size_t i = 0; i < own.size(); ++i) {
      if (lanes[i] < own[i] || lanes[i] > kMaxFloatExponent) return false;
    }
    std::copy_n(lanes.data(), own.size(), exponents_.data() + what.index * lane_count_);
    exponents_agreed_[what.index] = true;
    return true;
  }
  const auto [part, begin, element_count] = blocks_[what.index];
  if (dtype_ == DataType::kInt32) {
    std::copy_n(lanes.data(), element_count, static_cast<int32_t*>(buffers_.destination) + begin);
    return true;
  }
  float* destination = static_cast<float*>(buffers_.destination) + begin;
  if (operation_ != ReduceOperation::kSum) {
    std::transform(lanes.data(), lanes.data() + element_count, destination, bfp::from_ordered_integer);
    return true;
  }
  const int32_t* exponents = exponents_.data() + what.index * (lane_count_ / kBlock);
  for_blocks(element_count, [&](size_t block, size_t first, size_t count) {
    bfp::dequantise(lanes.data() + first, count, exponents[block], headroom_bits_, destination + first);
  });
  return true;
}

}  // namespace weft
