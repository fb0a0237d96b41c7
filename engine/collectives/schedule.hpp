// What a rank does as a dependency graph of transfers, reductions and waits over buffers, for what no
// LaneSchedule describes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "collectives/reduction.hpp"
#include "collectives/schedule_progress.hpp"
#include "time/time.hpp"

namespace weft {

// A range of a schedule's buffers.
struct BufferRange {
  uint32_t buffer = 0;
  uint64_t offset_bytes = 0;
  uint64_t length_bytes = 0;
};

// RDMA WRITE over a channel; done when the peer has acknowledged it.
struct WriteNode {
  uint32_t channel = 0;
  BufferRange source;
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  std::optional<uint32_t> immediate;
};

// Done when a WRITE with this immediate has arrived on the channel, be it before the schedule started.
struct WaitReceiveNode {
  uint32_t channel = 0;
  uint32_t immediate = 0;
};

// destination[i] = operation(destination[i], source[i]).
struct ReduceNode {
  BufferRange destination;
  BufferRange source;
  DataType dtype = DataType::kInt32;
  ReduceOperation operation = ReduceOperation::kSum;
};

struct CopyNode {
  BufferRange destination;
  BufferRange source;
};

// What the network does with a range; results replace it.
struct AggregateNode {
  uint32_t aggregator = 0;
  BufferRange range;
  DataType dtype = DataType::kInt32;
  ReduceOperation operation = ReduceOperation::kSum;
  std::vector<AggregationPart> parts;  // elements of the range
};

// Stands for computation that takes time.
struct DelayNode {
  TimePs duration_ps = 0;
};

// RDMA READ over a channel; done when all of it is there.
struct ReadNode {
  uint32_t channel = 0;
  BufferRange target;
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
};

using NodeContent =
    std::variant<WriteNode, WaitReceiveNode, ReduceNode, CopyNode, AggregateNode, DelayNode, ReadNode>;

class Schedule final : public RunnableSchedule {
 public:
  // Adds memory that the schedule works on and returns its number. `owner` keeps it alive. Null data: a
  // source of zeros, or a target that discards, which only WriteNodes and ReadNodes may name.
  uint32_t add_buffer(uint8_t* data, uint64_t length_bytes, std::shared_ptr<void> owner);
  // Adds a source of zeros whose packets carry their payload as a length, and returns its number.
  uint32_t add_lengths(uint64_t length_bytes);
  // Adds a node that starts when all nodes in `after` are done, and returns its number. Nodes only follow
  // earlier ones, so there are no cycles. Throws std::invalid_argument, naming the node, for a range beyond
  // its buffer, a length that is no multiple of the element, ranges of different lengths, or an unknown
  // predecessor.
  uint32_t add_node(NodeContent content, std::span<const uint32_t> after);

  uint32_t step_count() const override { return static_cast<uint32_t>(nodes_.size()); }
  const NodeContent& content(uint32_t node) const { return nodes_[node].content; }
  uint32_t predecessor_count(uint32_t node) const { return nodes_[node].predecessor_count; }
  std::span<const uint32_t> successors(uint32_t node) const { return nodes_[node].successors; }
  uint8_t* data(const BufferRange& range) const { return buffers_[range.buffer].data + range.offset_bytes; }
  // Like data(), null for a source of zeros.
  const uint8_t* source(const BufferRange& range) const {
    return buffers_[range.buffer].data == nullptr ? nullptr : data(range);
  }
  // The same of a target that discards.
  uint8_t* target(const BufferRange& range) const {
    return buffers_[range.buffer].data == nullptr ? nullptr : data(range);
  }
  bool is_as_length(const BufferRange& range) const { return buffers_[range.buffer].as_length; }
  uint32_t channel_limit() const override { return channel_limit_; }
  uint32_t aggregator_limit() const override { return aggregator_limit_; }
  std::unique_ptr<ScheduleProgress> new_progress(std::optional<uint32_t> run_tag) const override;

 private:
  struct Buffer {
    uint8_t* data;
    uint64_t length_bytes;
    std::shared_ptr<void> owner;
    bool as_length = false;
  };
  struct Node {
    NodeContent content;
    uint32_t predecessor_count;
    std::vector<uint32_t> successors;
  };

  void check(const NodeContent& content) const;
  void check_range(const BufferRange& range, bool zeros_allowed) const;
  void check_elements(const BufferRange& range, DataType dtype) const;
  [[noreturn]] void refuse(const std::string& problem) const;

  std::vector<Buffer> buffers_;
  std::vector<Node> nodes_;
  uint32_t channel_limit_ = 0;
  uint32_t aggregator_limit_ = 0;
};

}  // namespace weft
