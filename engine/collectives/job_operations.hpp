// What a rank of a job does: operations that follow each other, as columns that ranks can share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "time/time.hpp"

namespace weft {

// The values are those of weft.traffic.jobs.Kind.
enum class OperationKind : uint8_t { kCompute, kTimer, kSend, kReceive, kCollective, kRead };

// One entry per operation, as weft.traffic.jobs.Operations describes them. `number` is that of the transfer
// (of a send, a receive or a READ, among those of its peer), or of the collective (among those of its group);
// `traffic_kind` that of the packets which it sends, or has the peer send.
struct OperationColumns {
  std::vector<uint8_t> kind;
  std::vector<int16_t> stream;
  std::vector<int64_t> duration_ps;
  std::vector<int64_t> size_bytes;
  std::vector<int32_t> target;
  std::vector<int64_t> number;
  std::vector<uint8_t> traffic_kind;
  std::vector<int64_t> after_offsets;
  std::vector<int32_t> after;
  std::vector<uint8_t> after_start;
};

// Bound to no channels yet; see BoundJob.
class JobOperations {
 public:
  static constexpr int16_t kNoStream = -1;
  static constexpr uint32_t kMaxOperations = 20'000'000;
  static constexpr uint32_t kMaxStreams = 4096;
  // Transfers are numbered in the lower bits of immediates.
  static constexpr int64_t kMaxTransfer = (1 << 20) - 1;

  // Throws std::invalid_argument, naming the operation, for columns of different lengths and values out of
  // range.
  explicit JobOperations(OperationColumns columns);

  uint32_t size() const { return static_cast<uint32_t>(kind_.size()); }
  OperationKind kind(uint32_t operation) const { return static_cast<OperationKind>(kind_[operation]); }
  int16_t stream(uint32_t operation) const { return stream_[operation]; }
  // A computation's or a timer's, in ps; a transfer's size, in bytes.
  TimePs duration_ps(uint32_t operation) const { return amount_[operation]; }
  uint64_t size_bytes(uint32_t operation) const { return static_cast<uint64_t>(amount_[operation]); }
  uint32_t target(uint32_t operation) const { return target_[operation]; }
  uint32_t number(uint32_t operation) const { return number_[operation]; }
  uint8_t traffic_kind(uint32_t operation) const { return traffic_kind_[operation]; }
  uint32_t predecessor_count(uint32_t operation) const { return predecessor_counts_[operation]; }
  // Those that may start when it is done, and when it has started.
  std::span<const uint32_t> successors(uint32_t operation) const {
    return list(operation, successor_offsets_, successors_);
  }
  std::span<const uint32_t> successors_of_start(uint32_t operation) const {
    return list(operation, start_successor_offsets_, start_successors_);
  }
  uint64_t largest_received_bytes() const { return largest_received_bytes_; }
  uint32_t stream_limit() const { return stream_limit_; }
  // Above every slot for peers, and for calls, that is named.
  uint32_t peer_limit() const { return peer_limit_; }
  uint32_t call_limit() const { return call_limit_; }

 private:
  static std::span<const uint32_t> list(uint32_t operation, const std::vector<uint32_t>& offsets,
                                        const std::vector<uint32_t>& all) {
    return {all.data() + offsets[operation], all.data() + offsets[operation + 1]};
  }
  void add_operations(const OperationColumns& columns);
  void add_successors(const OperationColumns& columns);

  std::vector<uint8_t> kind_;
  std::vector<int16_t> stream_;
  std::vector<uint8_t> traffic_kind_;
  std::vector<int64_t> amount_;
  std::vector<uint32_t> target_;
  std::vector<uint32_t> number_;
  std::vector<uint32_t> predecessor_counts_;
  std::vector<uint32_t> successor_offsets_;
  std::vector<uint32_t> successors_;
  std::vector<uint32_t> start_successor_offsets_;
  std::vector<uint32_t> start_successors_;
  uint64_t largest_received_bytes_ = 0;
  uint32_t stream_limit_ = 0;
  uint32_t peer_limit_ = 0;
  uint32_t call_limit_ = 0;
};

}  // namespace weft
