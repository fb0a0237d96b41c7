// Computations that go on more slowly while the rank communicates, because kernels that move and sum data
// take a share of the accelerator (DeepSeek-V3 gives them 20 of an H800's 132 SMs: DeepSeek-AI 2024,
// section 3.2.2).
//
// A computation has work left; whenever the rate changes, that is settled and a new end is scheduled. Ends
// that were scheduled before then find work left, or no computation.
#include <algorithm>
#include <cmath>

#include "collectives/job_progress.hpp"

namespace weft {

double JobProgress::compute_rate() const {
  return communicating_ > 0 ? 1.0 - job_.binding().communication_share : 1.0;
}

TimePs JobProgress::left_ps(double work_ps) const {
  return static_cast<TimePs>(std::min(std::ceil(work_ps / compute_rate()), kMaxDurationPs));
}

void JobProgress::compute(StepActions& actions, uint32_t operation) {
  const auto work_ps = static_cast<double>(computing_ps(operation));
  computing_[operation] = {work_ps, actions.now()};
  actions.delay(operation, left_ps(work_ps), operation);
}

void JobProgress::computed(StepActions& actions, uint32_t operation) {
  const auto found = computing_.find(operation);
  if (found == computing_.end()) return;
  const Computing& computing = found->second;
  const double done_ps = static_cast<double>(actions.now() - computing.since_ps) * compute_rate();
  // Ends are rounded up to a picosecond, so that nothing is left at the right one.
  if (computing.work_left_ps - done_ps > 0.5) return;
  computing_.erase(found);
  done(actions, operation);
}

void JobProgress::communicate(StepActions& actions, int32_t more) {
  const double rate = compute_rate();
  communicating_ += more;
  if (compute_rate() == rate) return;
  for (auto& [operation, computing] : computing_) {
    const double done_ps = static_cast<double>(actions.now() - computing.since_ps) * rate;
    computing = {std::max(0.0, computing.work_left_ps - done_ps), actions.now()};
    actions.delay(operation, left_ps(computing.work_left_ps), operation);
  }
}

}  // namespace weft
