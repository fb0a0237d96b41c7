// Keeps completions until they are polled; may be waited for by threads other than the engine's.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <vector>

#include "hosts/queue_pair.hpp"

namespace weft {

class CompletionQueue : public CompletionHandler {
 public:
  void on_completion(const Completion& completion) override {
    {
      const std::lock_guard lock(mutex_);
      completions_.push_back(completion);
    }
    arrived_.notify_all();
  }

  // Takes out up to `limit` completions, oldest first.
  std::vector<Completion> poll(size_t limit) {
    const std::lock_guard lock(mutex_);
    const auto count = static_cast<std::ptrdiff_t>(limit < completions_.size() ? limit : completions_.size());
    std::vector<Completion> taken(completions_.begin(), completions_.begin() + count);
    completions_.erase(completions_.begin(), completions_.begin() + count);
    return taken;
  }

  // True once at least `count` completions wait, false after `timeout`. The caller must not hold the engine's
  // lock.
  bool wait(size_t count, std::chrono::duration<double> timeout) {
    std::unique_lock lock(mutex_);
    return arrived_.wait_for(lock, timeout, [&] { return completions_.size() >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Completion> completions_;
};

}  // namespace weft
