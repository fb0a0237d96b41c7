// What has been posted to a queue pair of UET and has not completed: messages one after the other in one
// sequence of packets, and among them the commands that close a PDC, which take a packet each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hosts/posted_requests.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_request.hpp"
#include "hosts/request_completions.hpp"

namespace weft::uet {

struct Message : RcRequest {
  uint64_t first_sequence = 0;
  uint64_t end_sequence = 0;  // one past its last packet
  uint16_t id = 0;
  bool is_command = false;  // that closes the PDC
  uint64_t retransmitted_packets = 0;
};

class Messages {
 public:
  Messages(uint32_t queue_pair, CompletionHandler* handler) : completions_(queue_pair, handler) {}

  void observe(Probe* probe, ConnectionEnds ends) { completions_.observe(probe, ends); }

  void add(RcRequest request, uint64_t packets) {
    posted_.push_back({std::move(request), end_sequence_, end_sequence_ + packets, next_id_++});
    end_sequence_ += packets;
  }
  // Returns the command's sequence number.
  uint64_t add_close() {
    posted_.push_back({RcRequest(), end_sequence_, end_sequence_ + 1, 0, true});
    return end_sequence_++;
  }

  uint64_t end_sequence() const { return end_sequence_; }
  bool empty() const { return posted_.empty(); }
  size_t outstanding() const { return posted_.size(); }
  uint64_t completed() const { return posted_.completed(); }

  // That has the packet, which is not acknowledged; `next_sequence` is the next one to be sent.
  Message& at(uint64_t sequence, uint64_t next_sequence) {
    return posted_.request_of(sequence, next_sequence);
  }
  // The next packet to be sent is an earlier one now.
  void restart() { posted_.restart(); }

  // Completes all messages before `accepted`, and all others if `error` says so: the first of those with it,
  // further ones as flushed. Handlers may post from within; the outer call then sees to such messages.
  void deliver(TimePs now, const uint64_t& accepted, const CompletionStatus& error) {
    posted_.deliver(now, [&] { return accepted; }, error, completions_);
  }
  std::vector<RcRequest> withdraw() { return posted_.withdraw(); }

 private:
  RequestCompletions completions_;
  PostedRequests<Message> posted_;
  uint64_t end_sequence_ = 0;
  uint16_t next_id_ = 0;
};

}  // namespace weft::uet
