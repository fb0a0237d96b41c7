#include "hosts/aggregation_request.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "collectives/block_floating_point.hpp"

namespace weft {
namespace {

constexpr size_t kLanes = roce::kAggregationLanes;
constexpr int32_t kMaxFloatExponent = 128;  // FLT_MAX < 2^128
static_assert(kLanes == bfp::kBlockElements);

}  // namespace

AggregationRequest::AggregationRequest(AggregationBuffers buffers, DataType dtype, ReduceOperation operation,
                                       uint32_t rank_count)
    : buffers_(buffers),
      dtype_(dtype),
      operation_(operation),
      block_count_((buffers.element_count + kLanes - 1) / kLanes) {
  if (dtype != DataType::kFloat32) return;
  if (operation != ReduceOperation::kSum) {
    check_no_nan();
    return;
  }
  headroom_bits_ = bfp::headroom_bits(rank_count);
  const float* source = static_cast<const float*>(buffers.source);
  exponents_.resize(block_count_);
  for (uint64_t block = 0; block < block_count_; ++block) {
    exponents_[block] = bfp::block_exponent(source + block * kLanes, block_elements(block), block * kLanes);
  }
  exponent_message_count_ = (block_count_ + kGroupBlocks - 1) / kGroupBlocks;
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

size_t AggregationRequest::block_elements(uint64_t block) const {
  return static_cast<size_t>(std::min<uint64_t>(kLanes, buffers_.element_count - block * kLanes));
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

ReduceOperation AggregationRequest::operation(uint64_t message) const {
  return content(message).is_exponents ? ReduceOperation::kMax : operation_;
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
    const uint64_t count = std::min(kGroupBlocks, block_count_ - first);
    std::copy_n(exponents_.data() + first, count, lanes.data());
    return;
  }
  const size_t count = block_elements(what.index);
  if (dtype_ == DataType::kInt32) {
    const int32_t* source = static_cast<const int32_t*>(buffers_.source);
    std::copy_n(source + what.index * kLanes, count, lanes.data());
    return;
  }
  const float* block = static_cast<const float*>(buffers_.source) + what.index * kLanes;
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
    const uint64_t count = std::min(kGroupBlocks, block_count_ - first);
    for (uint64_t i = 0; i < count; ++i) {
      if (lanes[i] < exponents_[first + i] || lanes[i] > kMaxFloatExponent) return false;
    }
    std::copy_n(lanes.data(), count, exponents_.data() + first);
    exponents_agreed_[what.index] = true;
    return true;
  }
  const size_t count = block_elements(what.index);
  if (dtype_ == DataType::kInt32) {
    std::copy_n(lanes.data(), count, static_cast<int32_t*>(buffers_.destination) + what.index * kLanes);
    return true;
  }
  float* block = static_cast<float*>(buffers_.destination) + what.index * kLanes;
  if (operation_ == ReduceOperation::kSum) {
    bfp::dequantise(lanes.data(), count, exponents_[what.index], headroom_bits_, block);
  } else {
    std::transform(lanes.data(), lanes.data() + count, block, bfp::from_ordered_integer);
  }
  return true;
}

}  // namespace weft
