#include "collectives/schedule.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "collectives/graph_progress.hpp"

namespace weft {

uint32_t Schedule::add_buffer(uint8_t* data, uint64_t length_bytes, std::shared_ptr<void> owner) {
  buffers_.push_back({data, length_bytes, std::move(owner)});
  return static_cast<uint32_t>(buffers_.size() - 1);
}

uint32_t Schedule::add_lengths(uint64_t length_bytes) {
  buffers_.push_back({nullptr, length_bytes, nullptr, true});
  return static_cast<uint32_t>(buffers_.size() - 1);
}

uint32_t Schedule::add_node(NodeContent content, std::span<const uint32_t> after) {
  check(content);
  const auto number = static_cast<uint32_t>(nodes_.size());
  for (const uint32_t predecessor : after) {
    if (predecessor >= number)
      refuse("follows node " + std::to_string(predecessor) + ", which is not before it");
  }
  if (const auto* write = std::get_if<WriteNode>(&content)) {
    channel_limit_ = std::max(channel_limit_, write->channel + 1);
  } else if (const auto* wait = std::get_if<WaitReceiveNode>(&content)) {
    channel_limit_ = std::max(channel_limit_, wait->channel + 1);
  } else if (const auto* read = std::get_if<ReadNode>(&content)) {
    channel_limit_ = std::max(channel_limit_, read->channel + 1);
  } else if (const auto* aggregate = std::get_if<AggregateNode>(&content)) {
    aggregator_limit_ = std::max(aggregator_limit_, aggregate->aggregator + 1);
  }
  nodes_.push_back({std::move(content), static_cast<uint32_t>(after.size()), {}});
  for (const uint32_t predecessor : after) nodes_[predecessor].successors.push_back(number);
  return number;
}

std::unique_ptr<ScheduleProgress> Schedule::new_progress(std::optional<uint32_t> run_tag) const {
  return std::make_unique<GraphProgress>(*this, run_tag);
}

void Schedule::check(const NodeContent& content) const {
  if (const auto* write = std::get_if<WriteNode>(&content)) {
    check_range(write->source, true);
  } else if (const auto* read = std::get_if<ReadNode>(&content)) {
    check_range(read->target, true);
  } else if (const auto* reduce = std::get_if<ReduceNode>(&content)) {
    check_reduction(reduce->dtype, reduce->operation);
    check_elements(reduce->destination, reduce->dtype);
    check_elements(reduce->source, reduce->dtype);
    if (reduce->destination.length_bytes != reduce->source.length_bytes) {
      refuse("reduces ranges of different lengths");
    }
  } else if (const auto* copy = std::get_if<CopyNode>(&content)) {
    check_range(copy->destination, false);
    check_range(copy->source, false);
    if (copy->destination.length_bytes != copy->source.length_bytes) {
      refuse("copies between ranges of different lengths");
    }
  } else if (const auto* aggregate = std::get_if<AggregateNode>(&content)) {
    check_reduction(aggregate->dtype, aggregate->operation);
    check_elements(aggregate->range, aggregate->dtype);
    for (const AggregationPart& part : aggregate->parts) {
      if (part.elements.stop > aggregate->range.length_bytes / element_bytes(aggregate->dtype)) {
        refuse("has the network work on elements beyond its range");
      }
    }
  } else if (const auto* delay = std::get_if<DelayNode>(&content)) {
    if (delay->duration_ps < 0) refuse("delays by " + std::to_string(delay->duration_ps) + " ps");
  }
}

void Schedule::check_range(const BufferRange& range, bool zeros_allowed) const {
  if (range.buffer >= buffers_.size()) {
    refuse("names buffer " + std::to_string(range.buffer) + " (valid: below " +
           std::to_string(buffers_.size()) + ")");
  }
  const Buffer& buffer = buffers_[range.buffer];
  if (range.offset_bytes > buffer.length_bytes ||
      range.length_bytes > buffer.length_bytes - range.offset_bytes) {
    refuse("names bytes " + std::to_string(range.offset_bytes) + "+" + std::to_string(range.length_bytes) +
           " of a buffer of " + std::to_string(buffer.length_bytes));
  }
  if (buffer.data == nullptr && !zeros_allowed) refuse("works on a source of zeros");
}

void Schedule::check_elements(const BufferRange& range, DataType dtype) const {
  check_range(range, false);
  const size_t bytes = element_bytes(dtype);
  const auto address = reinterpret_cast<uintptr_t>(data(range));
  if (range.length_bytes % bytes != 0 || address % bytes != 0) {
    refuse("names " + std::to_string(range.length_bytes) + " bytes at offset " +
           std::to_string(range.offset_bytes) + ", not whole aligned elements of " + std::to_string(bytes));
  }
}

void Schedule::refuse(const std::string& problem) const {
  throw std::invalid_argument("schedule node " + std::to_string(nodes_.size()) + " " + problem);
}

}  // namespace weft
