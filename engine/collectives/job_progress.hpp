// Goes through the operations of a rank's part of a job.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collectives/bound_job.hpp"
#include "collectives/schedule_progress.hpp"

namespace weft {

// Steps are numbers of operations. Tokens are, too, or say that a stream takes the next one.
//
// A stream does not take an operation in the event in which it becomes ready but in one at the same time
// behind it, so that all that become ready at that time are there to choose from.
class JobProgress final : public ScheduleProgress {
 public:
  JobProgress(const BoundJob& job, std::shared_ptr<OperationTimes> times);

  void begin(StepActions& actions) override;
  bool is_done() const override { return operations_left_ == 0; }
  void proceed(StepActions& actions, uint32_t operation) override { start(actions, operation); }
  void received(StepActions& actions, uint32_t operation) override;
  void delay_over(StepActions& actions, uint32_t token) override;
  void completed(StepActions& actions, uint32_t operation) override { part_done(actions, operation); }
  void each_receive(const std::function<void(const ExpectedMessage&)>& visit) const override;
  bool has_lengths() const override { return true; }
  void resume(StepActions& actions, uint32_t operation, uint32_t share) override;
  std::vector<StepMessage> messages_of_step(uint32_t operation) const override;
  std::vector<uint32_t> channels_of_step(uint32_t operation) const override;

 private:
  static constexpr double kMaxDurationPs = static_cast<double>(TimePs{1} << 62);
  // When it became ready, and its number: the least comes first.
  using Ready = std::pair<TimePs, uint32_t>;
  struct Stream {
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    bool is_busy = false;
    bool is_choosing = false;
  };
  // A message of a send or a receive, or a part of a READ.
  struct Message {
    const PeerPath* path;
    uint64_t offset_bytes;
    uint64_t length_bytes;
  };

  void one_less(StepActions& actions, std::span<const uint32_t> operations);
  void become_ready(StepActions& actions, uint32_t operation);
  void choose(StepActions& actions, uint16_t stream);
  void start(StepActions& actions, uint32_t operation);
  void call(StepActions& actions, uint32_t operation, uint32_t share);
  void send(StepActions& actions, uint32_t operation);
  void receive(StepActions& actions, uint32_t operation);
  void read(StepActions& actions, uint32_t operation);
  // Returns whether all of it is done.
  bool part_done(StepActions& actions, uint32_t operation);
  // Fast-forward (repeated_operations.cpp).
  OperationPlace place_of(uint32_t operation) const;
  bool is_repeated(uint32_t operation) const;
  void note_arrival(uint32_t operation, TimePs time_ps) const;
  void note_end(uint32_t operation) const;
  void done(StepActions& actions, uint32_t operation);
  std::vector<Message> messages_of(uint32_t operation) const;
  std::vector<Message> begin_messages(uint32_t operation);
  uint32_t immediate_of(uint32_t operation) const;
  TimePs computing_ps(uint32_t operation) const;
  // Computations share the accelerator with communication (shared_accelerator.cpp).
  bool shares_accelerator() const { return job_.binding().communication_share > 0; }
  static bool communicates(OperationKind kind) {
    return kind == OperationKind::kSend || kind == OperationKind::kCollective;
  }
  void compute(StepActions& actions, uint32_t operation);
  void computed(StepActions& actions, uint32_t operation);
  void communicate(StepActions& actions, int32_t more);
  double compute_rate() const;
  TimePs left_ps(double work_ps) const;
  void note(StepActions& actions, uint32_t operation, StepKind kind) const;

  const BoundJob& job_;
  const JobOperations& operations_;
  std::shared_ptr<OperationTimes> times_;
  std::vector<uint32_t> predecessors_left_;
  std::vector<Stream> streams_;
  std::unordered_map<uint32_t, uint32_t> parts_left_;  // of operations of several messages
  // Of computations under way that share the accelerator, by operation.
  struct Computing {
    double work_left_ps;  // at the full rate
    TimePs since_ps;      // when that was
  };
  std::map<uint32_t, Computing> computing_;
  int32_t communicating_ = 0;  // collectives and messages under way
  TimePs begun_ps_ = 0;
  size_t operations_left_;
  FastForward* fast_forward_;  // null: nothing is repeated
};

}  // namespace weft
