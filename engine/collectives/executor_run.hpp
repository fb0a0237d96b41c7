// A run of an executor.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collectives/schedule_executor.hpp"

namespace weft {

// A run, and what its schedule can have done.
class ScheduleExecutor::Run final : public StepActions {
 public:
  // A work request's id is the run's number and, in these bits, the step's.
  static constexpr int kStepBits = 32;

  Run(ScheduleExecutor& executor, uint64_t number, std::shared_ptr<const RunnableSchedule> schedule,
      std::optional<uint32_t> run_tag = std::nullopt)
      : executor_(executor),
        number_(number),
        schedule_(std::move(schedule)),
        progress_(schedule_->new_progress(run_tag)),
        is_recording_(executor.probe_ != nullptr) {
    status.node_count = schedule_->step_count();
  }

  uint64_t number() const { return number_; }
  ScheduleProgress& progress() { return *progress_; }
  bool is_in(RunState state) const { return status.state == state; }
  bool has_ended() const { return !is_in(RunState::kWaiting) && !is_in(RunState::kRunning); }

  TimePs now() const override { return executor_.engine_.now(); }
  void make_ready(uint32_t token) override { ready.push_back(token); }
  void write(uint32_t step, const WriteRequest& request) override;
  void read(uint32_t step, const ReadRequest& request) override;
  std::optional<TimePs> receive(uint32_t step, uint32_t channel, uint32_t immediate, uint32_t token) override;
  void reduce(uint32_t step, const ReduceRequest& request) override;
  void copy(uint32_t step, uint8_t* destination, const uint8_t* source, uint64_t length_bytes) override;
  void aggregate(uint32_t step, const AggregateRequest& request) override;
  void delay(uint32_t step, TimePs duration_ps, uint32_t token) override;
  void run_part(uint32_t step, const std::shared_ptr<const RunnableSchedule>& schedule, uint32_t run_tag,
                uint8_t traffic_kind, uint32_t part_share) override {
    current_step = step;
    executor_.start_part({number_, step, traffic_kind}, schedule, run_tag, part_share);
  }
  bool is_recording() const override { return is_recording_; }
  void begun(const StepNote& note) override { notes_[note.step] = note; }
  void done(uint32_t step, TimePs end_ps) override;
  void skipped(uint32_t) override { ++status.nodes_done; }

  std::optional<PartOf> part_of;
  uint32_t share = kWholeShare;  // of each write that is sent
  std::deque<uint32_t> ready;
  bool advancing = false;
  uint32_t current_step = 0;
  uint32_t posted = 0;     // steps with a queue pair, which may still read or write the buffers
  bool forgotten = false;  // to be erased when the last of those completes
  bool keep_writes = false;
  std::vector<WriteRecord> writes;
  RunStatus status;

 private:
  void post(uint32_t step, uint32_t channel, RcRequest request);

  uint64_t work_id(uint32_t step) const { return number_ << kStepBits | step; }
  // The run that a record is of, and the step: of a part the one that it is of the whole.
  PartOf recorded_as(uint32_t step) const { return part_of.value_or(PartOf{number_, step, 0}); }

  ScheduleExecutor& executor_;
  uint64_t number_;
  std::shared_ptr<const RunnableSchedule> schedule_;
  std::unique_ptr<ScheduleProgress> progress_;
  bool is_recording_;
  std::unordered_map<uint32_t, StepNote> notes_;  // of steps that have begun and are not done
};

}  // namespace weft
