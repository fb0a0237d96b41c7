// What the sending halves of queue pairs have alike: they fail as a whole.
#pragma once

#include <vector>

#include "hosts/queue_pair.hpp"
#include "hosts/rc_request.hpp"
#include "time/time.hpp"

namespace weft {

// Base of `Half`, whose fail() stops it, deliver_completions() completes what has been posted and
// take_back() takes that back without completions.
template <class Half>
class SendingHalf {
 public:
  CompletionStatus error() const { return error_; }
  // Completes what is outstanding as flushed, because the other half of the queue pair failed.
  void flush(TimePs now) {
    if (error_ != CompletionStatus::kSuccess) return;
    half().fail(CompletionStatus::kFlushed);
    half().deliver_completions(now);
  }
  // Takes back what has not completed, without completions. It has failed when this returns.
  std::vector<RcRequest> withdraw() {
    std::vector<RcRequest> left = half().take_back();
    half().fail(CompletionStatus::kFlushed);
    return left;
  }

 protected:
  CompletionStatus error_ = CompletionStatus::kSuccess;

 private:
  Half& half() { return static_cast<Half&>(*this); }
};

}  // namespace weft
