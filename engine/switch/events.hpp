// What a switch reports to its control plane: packets to the CPU port, digests, expired entries. Produced by
// the engine's thread, taken by another.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "time/time.hpp"

namespace weft {

struct StreamEvent {
  enum class Kind : uint8_t { kPacketIn, kDigest };
  Kind kind = Kind::kPacketIn;
  uint32_t learn_list = 0;     // of a digest
  std::vector<uint8_t> bytes;  // the packet, or the digest's fields, each padded to whole bytes
  TimePs time_ps = 0;          // emulated time at which it was made
};

class StreamEventQueue {
 public:
  static constexpr size_t kCapacity = 8192;

  // False: full, the event is lost.
  bool push(StreamEvent event) {
    {
      std::lock_guard lock(mutex_);
      if (events_.size() >= kCapacity) return false;
      events_.push_back(std::move(event));
    }
    available_.notify_one();
    if (listener_) listener_();
    return true;
  }

  void clear() {
    std::lock_guard lock(mutex_);
    events_.clear();
  }

  // Called after every event that was queued, by the thread that queues it; with the virtual clock nobody
  // waits.
  void set_listener(std::function<void()> listener) { listener_ = std::move(listener); }

  // Waits at most this long in real time.
  std::optional<StreamEvent> wait(double timeout_s) {
    std::unique_lock lock(mutex_);
    // Even a wait of no time puts the thread to sleep.
    if (timeout_s > 0)
      available_.wait_for(lock, std::chrono::duration<double>(timeout_s),
                          [this] { return !events_.empty(); });
    if (events_.empty()) return std::nullopt;
    StreamEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  std::mutex mutex_;
  std::condition_variable available_;
  std::deque<StreamEvent> events_;
  std::function<void()> listener_;
};

}  // namespace weft
