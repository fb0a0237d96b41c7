#include "time/worker_pool.hpp"

#include <pthread.h>
#include <sys/prctl.h>

#include <csignal>
#include <utility>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace weft {

namespace {

// Some tens of microseconds: longer than a usual wait within a run, shorter than what a sleep and its end
// take.
constexpr int kSpins = 2000;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Waits until the value is no longer `old`.
template <class T>
void wait_for_change(const std::atomic<T>& value, T old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

WorkerPool::WorkerPool(int size, std::function<void(int)> task) : task_(std::move(task)) {
  // Signals belong to the caller's threads: one that landed here would interrupt nothing.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int member = 1; member < size; ++member) threads_.emplace_back([this, member] { work(member); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

WorkerPool::~WorkerPool() {
  ending_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::run_round() {
  still_working_.store(size() - 1, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  task_(0);
  for (int left = still_working_.load(std::memory_order_acquire); left > 0;
       left = still_working_.load(std::memory_order_acquire))
    wait_for_change(still_working_, left);
}

void WorkerPool::work(int member) {
  prctl(PR_SET_NAME, "weft-worker");
  for (uint32_t round = 0;; ++round) {
    wait_for_change(round_, round);
    if (ending_) return;
    task_(member);
    if (still_working_.fetch_sub(1, std::memory_order_acq_rel) == 1) still_working_.notify_one();
  }
}

}  // namespace weft
