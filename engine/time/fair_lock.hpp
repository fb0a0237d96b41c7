// A recursive lock served in order of arrival, so that a thread that takes and gives it all the time starves
// nobody.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace weft {

class FairLock {
 public:
  void lock();
  void unlock();
  bool held_by_this_thread() const {
    return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  // A thread waits.
  bool contended() const { return waiters_.load(std::memory_order_relaxed) != 0; }
  // How often this thread holds it; 1 means that unlock() will set it free.
  int depth() const { return depth_; }

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  uint64_t next_ticket_ = 0;
  uint64_t serving_ = 0;
  std::atomic<int> waiters_{0};
  std::atomic<std::thread::id> owner_{};
  int depth_ = 0;
};

}  // namespace weft
