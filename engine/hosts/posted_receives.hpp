// The receives that are posted to a queue pair, and what it reports of what the peer has sent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "hosts/posted_receive.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/shared_receives.hpp"
#include "memory/ring_buffer.hpp"
#include "time/time.hpp"

namespace weft {

class PostedReceives {
 public:
  // `handler` may be null. `shared` is null for a queue pair with receives of its own.
  PostedReceives(uint32_t queue_pair, CompletionHandler* handler,
                 std::shared_ptr<SharedReceives> shared = nullptr)
      : queue_pair_(queue_pair), handler_(handler), shared_(std::move(shared)) {}

  bool is_shared() const { return shared_ != nullptr; }
  // Whether a message that needs a receive finds none. A shared queue gives one up for it, which is then the
  // oldest one here.
  bool lacks() { return receives_.empty() && (shared_ == nullptr || !take_shared()); }
  bool empty() const { return receives_.empty(); }
  size_t size() const { return receives_.size(); }
  // Throws std::invalid_argument if the queue pair takes its receives from a shared queue.
  void push(PostedReceive receive) {
    if (shared_ != nullptr)
      throw std::invalid_argument("the queue pair takes its receives from a shared queue: post them there");
    receives_.push(std::move(receive));
  }
  // The oldest one.
  const PostedReceive& front() const { return receives_.front(); }
  PostedReceive pop() { return receives_.pop(); }
  // `solicited`: true of transports without the bit.
  // A message of the peer has arrived, which takes the oldest one out or none.
  void finish(TimePs now, CompletionKind kind, bool takes_receive, uint64_t length_bytes,
              std::optional<uint32_t> immediate, bool solicited = true) {
    const uint64_t work_id = takes_receive ? receives_.pop().work_id : 0;
    complete(now, kind, CompletionStatus::kSuccess, work_id, length_bytes, immediate, solicited);
  }
  // The same with what a datagram's completion says beyond; it takes the oldest one out.
  void finish(Completion completion) {
    completion.work_id = receives_.pop().work_id;
    completion.queue_pair = queue_pair_;
    if (handler_ != nullptr) handler_->on_completion(completion);
  }
  // A request of the peer has made the queue pair fail, and no receive here will say so.
  void tell_refusal(CompletionStatus status) const {
    if (handler_ != nullptr) handler_->on_refusal(status);
  }
  // The queue pair has failed, and nothing more comes.
  void refuse(TimePs now, const PostedReceive& receive) const {
    complete(now, CompletionKind::kReceive, CompletionStatus::kFlushed, receive.work_id, 0, std::nullopt);
  }

  // Completes all of them as flushed, but the oldest one as `first` says. Handlers may post from within.
  void flush(TimePs now, CompletionStatus first = CompletionStatus::kFlushed) {
    RingBuffer<PostedReceive> left = std::exchange(receives_, {});
    while (!left.empty()) {
      complete(now, CompletionKind::kReceive, std::exchange(first, CompletionStatus::kFlushed),
               left.pop().work_id, 0, std::nullopt);
    }
  }

  // What has become of a message, or of a receive. Failures are told to whoever waits for solicited events
  // too.
  void complete(TimePs now, CompletionKind kind, CompletionStatus status, uint64_t work_id,
                uint64_t length_bytes, std::optional<uint32_t> immediate, bool solicited = true) const {
    if (handler_ == nullptr) return;
    handler_->on_completion({.work_id = work_id,
                             .kind = kind,
                             .status = status,
                             .queue_pair = queue_pair_,
                             .length_bytes = length_bytes,
                             .has_immediate = immediate.has_value(),
                             .immediate = immediate.value_or(0),
                             .posted_ps = 0,
                             .completed_ps = now,
                             .solicited = solicited});
  }

 private:
  bool take_shared() {
    std::optional<PostedReceive> taken = shared_->take();
    if (taken) receives_.push(std::move(*taken));
    return taken.has_value();
  }

  RingBuffer<PostedReceive> receives_;
  uint32_t queue_pair_;
  CompletionHandler* handler_;
  std::shared_ptr<SharedReceives> shared_;
};

}  // namespace weft
