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

constexpr size_t kLanes = roce::kAggregationLanes;
constexpr int32_t kMaxFloatExponent = 128;  // FLT_MAX < 2^128
static_assert(kLanes == bfp::kBlockElements);

}  // namespace

AggregationRequest::AggregationRequest(AggregationBuffers buffers, std::vector<AggregationPart> parts,
                                       DataType dtype, ReduceOperation operation, uint32_t rank_count)
    : buffers_(buffers), dtype_(dtype), operation_(operation), blocks_(std::move(parts), kLanes) {
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
  const float* source = static_cast<const float*>(buffers.source);
  exponents_.resize(blocks_.count());
  for (uint64_t number = 0; number < blocks_.count(); ++number) {
    const AggregationBlocks::Block block = blocks_[number];
    exponents_[number] =
        bfp::block_exponent(source + block.first_element, block.element_count, block.first_element);
  }
  exponent_message_count_ = (blocks_.count() + kGroupBlocks - 1) / kGroupBlocks;
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
  const uint64_t group = (message - 1) / (kGroupBlocks + 1);
  const uint64_t position = (message - 1) % (kGroupBlocks + 1);
  const bool last_group = group + 1 >= exponent_message_count_;
  if (last_group) {
    // No exponents follow; a group before it has its 64 blocks and the exponents of the next.
    return {false, message - exponent_message_count_};
  }
  if (position == 0) return {true, group + 1};
  return {false, group * kGroupBlocks + position - 1};
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
  return exponents_agreed_.empty() || what.is_exponents || exponents_agreed_[what.index / kGroupBlocks];
}

void AggregationRequest::compose(uint64_t message, AggregationLanes& lanes) const {
  const Content what = content(message);
  lanes.fill(0);
  if (what.is_exponents) {
    const uint64_t first = what.index * kGroupBlocks;
    const uint64_t count = std::min(kGroupBlocks, blocks_.count() - first);
    std::copy_n(exponents_.data() + first, count, lanes.data());
    return;
  }
  const auto [part, first, count] = blocks_[what.index];
  if (dtype_ == DataType::kInt32) {
    std::copy_n(static_cast<const int32_t*>(buffers_.source) + first, count, lanes.data());
    return;
  }
  const float* block = static_cast<const float*>(buffers_.source) + first;
  if (operation_ == ReduceOperation::kSum) {
    bfp::quantise(block, count, exponents_[what.index], headroom_bits_, lanes.data());
  } else {
    std::transform(block, block + count, lanes.data(), bfp::to_ordered_integer);
  }
}

bool AggregationRequest::accept(uint64_t message, const AggregationLanes& lanes) {
  const Content what = content(message);
  if (what.is_exponents) {
    const uint64_t first = what.index * kGroupBlocks;
    const uint64_t count = std::min(kGroupBlocks, blocks_.count() - first);
    for (uint64_t i = 0; i < count; ++i) {
      if (lanes[i] < exponents_[first + i] || lanes[i] > kMaxFloatExponent) return false;
    }
    std::copy_n(lanes.data(), count, exponents_.data() + first);
    exponents_agreed_[what.index] = true;
    return true;
  }
  const auto [part, first, count] = blocks_[what.index];
  if (dtype_ == DataType::kInt32) {
    std::copy_n(lanes.data(), count, static_cast<int32_t*>(buffers_.destination) + first);
    return true;
  }
  float* block = static_cast<float*>(buffers_.destination) + first;
  if (operation_ == ReduceOperation::kSum) {
    bfp::dequantise(lanes.data(), count, exponents_[what.index], headroom_bits_, block);
  } else {
    std::transform(lanes.data(), lanes.data() + count, block, bfp::from_ordered_integer);
  }
  return true;
}

}  // namespace weft
