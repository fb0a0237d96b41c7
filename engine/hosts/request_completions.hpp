// Reports requests that are done: to the program's handler, and to the engine's probe if messages are
// recorded.
#pragma once

#include "hosts/queue_pair.hpp"
#include "hosts/rc_request.hpp"
#include "observe/probe.hpp"

namespace weft {

class RequestCompletions {
 public:
  // `handler` may be null.
  RequestCompletions(uint32_t queue_pair, CompletionHandler* handler)
      : queue_pair_(queue_pair), handler_(handler) {}

  // Null: messages are not recorded.
  void observe(Probe* probe, ConnectionEnds ends) {
    probe_ = probe;
    ends_ = ends;
  }

  void complete(TimePs now, const RcRequest& request, CompletionStatus status,
                uint64_t retransmitted_packets) const {
    if (probe_ != nullptr) [[unlikely]]
      probe_->message_completed({.ends = ends_,
                                 .id = request.record_id != 0 ? request.record_id : request.work_id,
                                 .length_bytes = request.length_bytes,
                                 .posted_ps = request.posted_ps,
                                 .completed_ps = now,
                                 .retransmitted_packets = retransmitted_packets,
                                 .status = static_cast<int64_t>(status)});
    if (handler_ == nullptr) return;
    handler_->on_completion({.work_id = request.work_id,
                             .kind = request.kind,
                             .status = status,
                             .queue_pair = queue_pair_,
                             .length_bytes = request.length_bytes,
                             .has_immediate = request.immediate.has_value(),
                             .immediate = request.immediate.value_or(0),
                             .posted_ps = request.posted_ps,
                             .completed_ps = now,
                             .retransmitted_packets = retransmitted_packets});
  }

 private:
  uint32_t queue_pair_;
  CompletionHandler* handler_;
  Probe* probe_ = nullptr;
  ConnectionEnds ends_;
};

}  // namespace weft
