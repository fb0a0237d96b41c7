#include "collectives/bound_job.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "collectives/job_progress.hpp"

namespace weft {

BoundJob::BoundJob(std::shared_ptr<const JobOperations> operations, JobBinding binding)
    : operations_(std::move(operations)),
      binding_(std::move(binding)),
      times_(std::make_shared<OperationTimes>()) {
  if (binding_.peers.size() < operations_->peer_limit() ||
      binding_.calls.size() < operations_->call_limit()) {
    throw std::invalid_argument("the operations need " + std::to_string(operations_->peer_limit()) +
                                " peers and " + std::to_string(operations_->call_limit()) +
                                " calls, there are " + std::to_string(binding_.peers.size()) + " and " +
                                std::to_string(binding_.calls.size()));
  }
  if (!std::isfinite(binding_.compute_scale) || binding_.compute_scale <= 0) {
    throw std::invalid_argument("computations are " + std::to_string(binding_.compute_scale) +
                                " times as long (valid: above 0)");
  }
  const double share = binding_.communication_share;
  if (!(share >= 0 && share < 1) || (share > 0 && binding_.fast_forward.of_fabric != nullptr)) {
    throw std::invalid_argument("communication takes " + std::to_string(share) +
                                " of the accelerator (valid: 0 to below 1; 0 with fast-forward)");
  }
  const JobFastForward& repeats = binding_.fast_forward;
  if (repeats.of_fabric != nullptr && (repeats.peers.size() < operations_->peer_limit() ||
                                       repeats.calls.size() < operations_->call_limit())) {
    throw std::invalid_argument("fast-forward knows groups of " + std::to_string(repeats.peers.size()) +
                                " peers and " + std::to_string(repeats.calls.size()) + " calls (valid: all)");
  }
  for (const std::vector<PeerPath>& paths : binding_.peers) {
    check_paths(paths);
    for (const PeerPath& path : paths) channel_limit_ = std::max(channel_limit_, path.channel + 1);
  }
  for (const auto& call : binding_.calls) {
    if (call == nullptr) throw std::invalid_argument("a call without a schedule");
    channel_limit_ = std::max(channel_limit_, call->channel_limit());
    aggregator_limit_ = std::max(aggregator_limit_, call->aggregator_limit());
  }
}

void BoundJob::check_paths(const std::vector<PeerPath>& paths) const {
  const bool whole = !paths.empty() && paths.back().end_share == kShareUnit &&
                     std::ranges::is_sorted(paths, {}, &PeerPath::end_share);
  if (!whole) {
    throw std::invalid_argument("the shares of a peer's " + std::to_string(paths.size()) +
                                " paths do not ascend to " + std::to_string(kShareUnit));
  }
}

std::unique_ptr<ScheduleProgress> BoundJob::new_progress(std::optional<uint32_t>) const {
  return std::make_unique<JobProgress>(*this, times_);
}

}  // namespace weft
