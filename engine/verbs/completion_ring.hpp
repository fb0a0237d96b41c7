// A completion queue of a client: a ring in memory that it shares with the NIC.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "verbs/event_channel.hpp"
#include "verbs/protocol.hpp"
#include "verbs/shared_memory.hpp"

namespace weft::verbs {

class CompletionRing {
 public:
  // `entries`: 1 to 2^31, rounded up to a power of 2. `channel` may be null. Throws std::system_error.
  CompletionRing(uint32_t entries, std::shared_ptr<EventChannel> channel, uint64_t cookie)
      : memory_(std::make_unique<SharedMemory>(size_of(entries))),
        size_(std::bit_ceil(entries)),
        channel_(std::move(channel)),
        cookie_(cookie) {}

  int descriptor() const { return memory_->descriptor(); }
  uint32_t size() const { return size_; }
  uint64_t cookie() const { return cookie_; }
  uint32_t events() const { return events_; }
  bool has_overrun() const { return has_overrun_; }
  // Sends an event, for a client that has taken one out of the channel with those of a queue that goes.
  void signal() const {
    if (channel_ != nullptr) channel_->send(CompletionEvent{cookie_});
  }
  uint32_t asynchronous_events = 0;
  uint32_t users = 0;  // queue pairs that complete here

  // Whether there was room; a ring that had none takes nothing more (InfiniBand specification, 10.10.2).
  bool push(const CompletionEntry& entry, bool solicited) {
    CompletionCounters& counters = *memory_->at<CompletionCounters>(0);
    const uint32_t waiting = produced_ - counters.consumed.load(std::memory_order_acquire);
    if (has_overrun_ || waiting >= size_) {
      has_overrun_ = true;
      return false;
    }
    entries()[produced_ & (size_ - 1)] = entry;
    counters.produced.store(++produced_);
    const Armed armed = counters.armed.load();
    if (armed == Armed::kNext || (armed == Armed::kSolicited && solicited)) notify(counters);
    return true;
  }

  // Moves to a ring of another size, with what waits. False: it would not find room there, and nothing has
  // changed. The client must not poll meanwhile. Throws std::system_error.
  bool resize(uint32_t entries) {
    const CompletionCounters& old = *memory_->at<CompletionCounters>(0);
    const uint32_t consumed = old.consumed.load(std::memory_order_acquire);
    const uint32_t size = std::bit_ceil(entries);
    if (produced_ - consumed > size || produced_ - consumed > size_) return false;
    auto memory = std::make_unique<SharedMemory>(size_of(entries));
    auto& counters = *memory->at<CompletionCounters>(0);
    auto* target = memory->at<CompletionEntry>(sizeof(CompletionCounters));
    for (uint32_t number = consumed; number != produced_; ++number)
      target[number & (size - 1)] = this->entries()[number & (size_ - 1)];
    counters.produced.store(produced_);
    counters.consumed.store(consumed);
    counters.armed.store(old.armed.load());
    memory_ = std::move(memory);
    size_ = size;
    return true;
  }

 private:
  static size_t size_of(uint32_t entries) {
    return sizeof(CompletionCounters) + sizeof(CompletionEntry) * std::bit_ceil(entries);
  }
  CompletionEntry* entries() const { return memory_->at<CompletionEntry>(sizeof(CompletionCounters)); }
  // A channel that takes no more leaves the queue armed: the next completion tries again. Disarmed first,
  // because the client may arm it again as soon as it has the event.
  void notify(CompletionCounters& counters) {
    if (channel_ == nullptr) return;
    const Armed armed = counters.armed.exchange(Armed::kNo);
    if (!channel_->send(CompletionEvent{cookie_})) {
      Armed disarmed = Armed::kNo;
      counters.armed.compare_exchange_strong(disarmed, armed);
      return;
    }
    ++events_;
  }

  std::unique_ptr<SharedMemory> memory_;
  uint32_t size_;
  std::shared_ptr<EventChannel> channel_;
  uint64_t cookie_;
  uint32_t produced_ = 0;
  uint32_t events_ = 0;
  bool has_overrun_ = false;
};

}  // namespace weft::verbs
