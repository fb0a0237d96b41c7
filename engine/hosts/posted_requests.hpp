// Requests that were posted to a queue pair and have not completed, in order: which one a packet belongs to,
// what completes, what is taken back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <utility>
#include <vector>

#include "hosts/queue_pair.hpp"
#include "hosts/rc_request.hpp"
#include "hosts/request_completions.hpp"
#include "time/time.hpp"

namespace weft {

// A transport may have commands of its own among the requests, which take sequence numbers like them but are
// neither counted nor completed: `Posted` then has `is_command`.
template <class Posted>
constexpr bool is_command(const Posted& posted) {
  if constexpr (requires { posted.is_command; })
    return posted.is_command;
  else
    return false;
}

// `Posted` is an RcRequest with `end_sequence`, one past its last packet, and `retransmitted_packets`.
template <class Posted>
class PostedRequests {
 public:
  // Whether there are neither requests nor commands.
  bool empty() const { return requests_.empty(); }
  // Requests.
  size_t size() const { return requests_.size() - commands_; }
  void push_back(Posted posted) {
    commands_ += is_command(posted);
    requests_.push_back(std::move(posted));
  }
  // Requests other than READs that have completed as successful.
  uint64_t completed() const { return completed_; }

  // That of the next packet to be sent for the first time, which the last call of request_of() passed.
  const Posted& sending() const { return requests_[send_index_]; }
  // `next_sequence` is the next packet to be sent for the first time.
  Posted& request_of(uint64_t sequence, uint64_t next_sequence) {
    if (sequence != next_sequence) return sent_request_of(sequence);
    while (requests_[send_index_].end_sequence <= next_sequence) ++send_index_;
    return requests_[send_index_];
  }
  Posted& sent_request_of(uint64_t sequence) {
    return *std::partition_point(requests_.begin(), requests_.end(),
                                 [&](const Posted& request) { return request.end_sequence <= sequence; });
  }
  // Packets are sent from the first request on again.
  void restart() { send_index_ = 0; }

  // Takes back all requests, without completions.
  std::vector<RcRequest> withdraw() {
    std::erase_if(requests_, [](const Posted& posted) { return is_command(posted); });
    std::vector<RcRequest> left(std::make_move_iterator(requests_.begin()),
                                std::make_move_iterator(requests_.end()));
    requests_.clear();
    commands_ = 0;
    send_index_ = 0;
    return left;
  }

  // Completes those whose packets are all before done_end(), or all if the queue pair has failed. Handlers
  // may post from within, or have it fail; such requests are delivered by the outer call.
  template <class DoneEnd>
  [[gnu::always_inline]] void deliver(TimePs now, const DoneEnd& done_end, const CompletionStatus& error,
                                      const RequestCompletions& completions) {
    if (delivering_) return;
    delivering_ = true;
    while (!requests_.empty()) {
      CompletionStatus status = CompletionStatus::kSuccess;
      const uint64_t end = done_end();
      if (requests_.front().end_sequence > end) {
        if (error == CompletionStatus::kSuccess) break;
        status = error_reported_ ? CompletionStatus::kFlushed : error;
        error_reported_ = error_reported_ || !is_command(requests_.front());
      }
      const Posted request = std::move(requests_.front());
      requests_.pop_front();
      if (send_index_ > 0) --send_index_;
      if (is_command(request)) {
        --commands_;
        continue;
      }
      if (status == CompletionStatus::kSuccess && !is_read(request.kind)) ++completed_;
      completions.complete(now, request, status, request.retransmitted_packets);
    }
    delivering_ = false;
  }
  bool is_delivering() const { return delivering_; }

 private:
  std::deque<Posted> requests_;
  size_t commands_ = 0;    // of requests_
  size_t send_index_ = 0;  // of the request that the next packet belongs to
  uint64_t completed_ = 0;
  bool error_reported_ = false;  // by the request that failed; those after it are flushed
  bool delivering_ = false;
};

}  // namespace weft
