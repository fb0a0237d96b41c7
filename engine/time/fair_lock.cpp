#include "time/fair_lock.hpp"

namespace weft {

void FairLock::lock() {
  if (held_by_this_thread()) {
    ++depth_;
    return;
  }
  std::unique_lock guard(mutex_);
  const uint64_t ticket = next_ticket_++;
  if (ticket != serving_) {
    waiters_.fetch_add(1, std::memory_order_relaxed);
    turn_.wait(guard, [&] { return serving_ == ticket; });
    waiters_.fetch_sub(1, std::memory_order_relaxed);
  }
  owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  depth_ = 1;
}

void FairLock::unlock() {
  if (--depth_ > 0) return;
  owner_.store(std::thread::id(), std::memory_order_relaxed);
  {
    std::lock_guard guard(mutex_);
    ++serving_;
  }
  turn_.notify_all();
}

}  // namespace weft
