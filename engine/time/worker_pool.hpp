// Threads that do one task together, again and again: the caller starts a round, takes part, and waits for
// the others. Rounds may be a microsecond apart, so a waiting thread spins a while before it sleeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace weft {

class WorkerPool {
 public:
  // Makes size - 1 threads; the caller of run_round() is the first member. task(member) must not throw.
  WorkerPool(int size, std::function<void(int member)> task);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }
  // Runs task(0) here and task(1), task(2), ... in the threads; returns when all have ended. What was
  // written before is seen by all members, and what they wrote is seen afterwards.
  void run_round();

 private:
  void work(int member);

  std::function<void(int)> task_;
  alignas(64) std::atomic<uint32_t> round_{0};
  alignas(64) std::atomic<int> still_working_{0};
  std::atomic<bool> ending_{false};
  std::vector<std::thread> threads_;
};

}  // namespace weft
