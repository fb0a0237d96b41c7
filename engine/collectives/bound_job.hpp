// A rank's part of a job over its channels.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/fast_forward.hpp"
#include "collectives/job_operations.hpp"
#include "collectives/schedule_progress.hpp"

namespace weft {

// One of the ways to a peer, and where what goes over it lands. `end_share` is the part of a striped message,
// in 1/65536, that goes over this path and those before it.
struct PeerPath {
  uint32_t channel = 0;
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  uint32_t end_share = 0;
};

// A call as fast-forward knows it: its group there, the rank's place in it, and what is done.
struct CallInGroup {
  uint32_t group = 0;
  uint32_t place = 0;
  uint64_t variant = 0;
};

// The groups there of messages to a peer and from it.
struct PeerGroups {
  uint32_t to = 0;
  uint32_t from = 0;
};

// Which operations may be repeated; by slot, as far as they go.
struct JobFastForward {
  std::shared_ptr<FastForward> of_fabric;  // null: none
  uint64_t run = 0;                        // the executor's number of the job
  std::vector<CallInGroup> calls;
  std::vector<PeerGroups> peers;
};

// By slot, the ways to the peer and how a collective that is called runs: a schedule in which a group's ranks
// have the same transfers. The immediates of messages have the run's tag, those of the n-th collective of any
// group the tag n further on, modulo 4096.
struct JobBinding {
  std::vector<std::vector<PeerPath>> peers;
  std::vector<std::shared_ptr<const RunnableSchedule>> calls;
  bool as_length = false;
  uint32_t run_tag = 0;
  double compute_scale = 1.0;
  // What is missing from the rate of computations while a collective or a message of the rank is under way:
  // its kernels take a share of the accelerator.
  double communication_share = 0.0;
  uint64_t stripe_bytes = 0;  // messages from this size on are striped, smaller ones take paths in turn
  JobFastForward fast_forward{};
};

// When the operations of a run started and were done; kNever where they have not.
struct OperationTimes {
  std::vector<TimePs> started_ps;
  std::vector<TimePs> finished_ps;
};

class BoundJob final : public RunnableSchedule {
 public:
  static constexpr uint32_t kShareUnit = 1 << 16;
  static constexpr uint64_t kMaxMessageBytes = uint64_t{1} << 30;

  // Throws std::invalid_argument for slots, paths or schedules that the operations need and lack, shares that
  // do not ascend to the whole, a scale that is no positive number, a share of communication that leaves
  // nothing, and fast-forward without groups of all peers and calls, or with such a share.
  BoundJob(std::shared_ptr<const JobOperations> operations, JobBinding binding);

  const JobOperations& operations() const { return *operations_; }
  const JobBinding& binding() const { return binding_; }
  // Of the last run.
  const OperationTimes& times() const { return *times_; }

  uint32_t step_count() const override { return operations_->size(); }
  uint32_t channel_limit() const override { return channel_limit_; }
  uint32_t aggregator_limit() const override { return aggregator_limit_; }
  std::unique_ptr<ScheduleProgress> new_progress(std::optional<uint32_t> run_tag) const override;

 private:
  void check_paths(const std::vector<PeerPath>& paths) const;

  std::shared_ptr<const JobOperations> operations_;
  JobBinding binding_;
  std::shared_ptr<OperationTimes> times_;
  uint32_t channel_limit_ = 0;
  uint32_t aggregator_limit_ = 0;
};

}  // namespace weft
