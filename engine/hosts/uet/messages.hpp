// What has been posted to a queue pair of UET and has not completed: messages one after the other in one
// sequence of packets, and among them the commands that close a PDC, which take a packet each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "hosts/queue_pair.hpp"
#include "hosts/rc_request.hpp"
#include "hosts/request_completions.hpp"

namespace weft::uet {

struct Message : RcRequest {
  uint64_t first_sequence = 0;
  uint64_t end_sequence = 0;  // one past its last packet
  uint16_t id = 0;
  bool closes = false;  // no message: the command that closes the PDC
  uint64_t retransmitted_packets = 0;
};

class Messages {
 public:
  Messages(uint32_t queue_pair, CompletionHandler* handler) : completions_(queue_pair, handler) {}

  void observe(Probe* probe, ConnectionEnds ends) { completions_.observe(probe, ends); }

  void add(RcRequest request, uint64_t packets) {
    messages_.push_back({std::move(request), end_sequence_, end_sequence_ + packets, next_id_++});
    end_sequence_ += packets;
    ++outstanding_;
  }
  // Returns the command's sequence number.
  uint64_t add_close() {
    messages_.push_back({RcRequest(), end_sequence_, end_sequence_ + 1, 0, true});
    return end_sequence_++;
  }

  uint64_t end_sequence() const { return end_sequence_; }
  bool empty() const { return messages_.empty(); }
  size_t outstanding() const { return outstanding_; }
  uint64_t completed() const { return completed_; }

  // That has the packet, which is not acknowledged. Mostly packets of the same message are asked for.
  Message& at(uint64_t sequence) {
    if (recent_ >= messages_.size() || !has(messages_[recent_], sequence)) {
      const auto found =
          std::partition_point(messages_.begin(), messages_.end(),
                               [&](const Message& message) { return message.end_sequence <= sequence; });
      recent_ = static_cast<size_t>(found - messages_.begin());
    }
    return messages_[recent_];
  }

  // Completes all messages before `accepted`, and all others if `error` says so: the first of those with it,
  // further ones as flushed. Handlers may post from within; the outer call then sees to such messages.
  void deliver(TimePs now, uint64_t accepted, const CompletionStatus& error) {
    if (delivering_) return;
    delivering_ = true;
    while (!messages_.empty()) {
      CompletionStatus status = CompletionStatus::kSuccess;
      if (messages_.front().end_sequence > accepted) {
        if (error == CompletionStatus::kSuccess) break;
        status = error_reported_ ? CompletionStatus::kFlushed : error;
      }
      const Message message = std::move(messages_.front());
      messages_.pop_front();
      if (recent_ > 0) --recent_;
      if (message.closes) continue;
      --outstanding_;
      if (status == CompletionStatus::kSuccess)
        ++completed_;
      else
        error_reported_ = true;
      completions_.complete(now, message, status, message.retransmitted_packets);
    }
    delivering_ = false;
  }

  std::vector<RcRequest> withdraw() {
    std::vector<RcRequest> left;
    for (Message& message : messages_) {
      if (!message.closes) left.push_back(std::move(message));
    }
    messages_.clear();
    outstanding_ = 0;
    return left;
  }

 private:
  static bool has(const Message& message, uint64_t sequence) {
    return message.first_sequence <= sequence && sequence < message.end_sequence;
  }

  RequestCompletions completions_;
  std::deque<Message> messages_;
  size_t recent_ = 0;  // in messages_
  uint64_t end_sequence_ = 0;
  size_t outstanding_ = 0;
  uint64_t completed_ = 0;
  uint16_t next_id_ = 0;
  bool delivering_ = false;
  bool error_reported_ = false;
};

}  // namespace weft::uet
