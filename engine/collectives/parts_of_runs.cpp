// Runs that are steps of others, such as a collective of a job.
//
// One that has ended is erased when the next one starts or its run is forgotten, not as it ends: what calls
// it is still under way then.
#include <utility>

#include "collectives/executor_run.hpp"

namespace weft {

void ScheduleExecutor::start_part(const PartOf& part_of,
                                  const std::shared_ptr<const RunnableSchedule>& schedule, uint32_t run_tag,
                                  uint32_t share) {
  release_ended_parts();
  const uint64_t number = next_part_;
  next_part_ = next_part_ + 1 < kPartLimit ? next_part_ + 1 : kFirstPart;
  auto made = std::make_unique<Run>(*this, number, schedule, run_tag);
  Run& part = *made;
  part.part_of = part_of;
  part.share = share;
  part.status.state = RunState::kRunning;
  part.status.started_ps = engine_.now();
  runs_.emplace(number, std::move(made));
  clear_first(part);
  part.progress().begin(part);
  advance(part);
}

void ScheduleExecutor::part_ended(const Run& part) {
  ended_parts_.push_back(part.number());
  Run* whole = running(part.part_of->run);
  if (whole == nullptr) return;
  if (!part.is_in(RunState::kFinished)) return fail(*whole, part.part_of->step, part.status.error);
  whole->progress().completed(*whole, part.part_of->step);
  advance(*whole);
}

void ScheduleExecutor::cancel_parts(uint64_t number) {
  for (const auto& [_, run] : runs_) {
    if (run->part_of && run->part_of->run == number && !run->has_ended()) end(*run, RunState::kCancelled);
  }
}

void ScheduleExecutor::forget_parts(uint64_t number) {
  for (const auto& [_, run] : runs_) {
    if (run->part_of && run->part_of->run == number) run->forgotten = true;
  }
  release_ended_parts();
}

// Those whose queue pairs still work on buffers go when these are done.
void ScheduleExecutor::release_ended_parts() {
  for (const uint64_t number : std::exchange(ended_parts_, {})) {
    const auto found = runs_.find(number);
    if (found == runs_.end()) continue;
    found->second->forgotten = true;
    if (found->second->posted == 0) runs_.erase(found);
  }
}

}  // namespace weft
