// This process's part in a run's virtual time (engine/verbs/virtual_time.hpp): its connection, its clock, its
// waits. Everything here may be called in signal handlers, and keeps errno.
#pragma once

#include <signal.h>
#include <time.h>

#include <cstdint>

#include "verbs/virtual_time.hpp"

namespace weft::verbs {

constexpr uint64_t kPsInNs = 1'000;
constexpr uint64_t kNsInS = 1'000'000'000;
constexpr uint64_t kPsInS = kPsInNs * kNsInS;

// Whether this process lives in virtual time: not before its constructors have run, and not where no run
// has said so.
bool is_timed();
uint64_t now_ps();
uint64_t realtime_ns();
uint64_t monotonic_ns();
// The time of the run that is so long from now; kForEver if it is that far.
uint64_t after_ps(uint64_t duration_ps);
// The time of the run at which a clock of the C library shows this; nothing before now is waited for.
uint64_t time_of(const timespec& shown);
uint64_t duration_ps(const timespec& duration);
ProcessPage& page();

// Waits. False if a signal of the program's has come first.
bool wait(Wait what, uint64_t until_ps, uint64_t loop = 0);

// While one exists, this thread is in a system call that the kernel may end, or the run at a time. The signal
// by which the run does it comes within calls that take mask() only.
class KernelWait {
 public:
  // `program_mask`: what the program wants blocked meanwhile; null: what it has blocked.
  explicit KernelWait(uint64_t until_ps, const sigset_t* program_mask = nullptr);
  ~KernelWait();
  KernelWait(const KernelWait&) = delete;
  KernelWait& operator=(const KernelWait&) = delete;
  const sigset_t* mask() const { return &mask_; }
  bool was_ended() const;

 private:
  sigset_t before_;
  sigset_t mask_;
};

// A look at something that had not changed, at a place of the program: a clock that was read, a queue that
// was empty. A thread that only looks lets time pass: a few looks are free, then each takes a part of the
// time that the thread has looked already, so that a loop that looks for long takes few turns.
void look(const void* place, Wait what);
// Keeps the looks so far, and takes them up again after something that has turned out to do nothing.
void keep_looks();
void restore_looks();
// The thread has done something else, so that a look is the first again.
void did_something();

// It calls something by which the kernel may wake others.
void reaches_others();

// A thread or a process is about to be begun.
void begins_another();
// Whether this thread waits already. What has interrupted it was the run's question, not a signal of the
// program's.
bool is_waiting();
void note_asked();
// Whether it has looked at or done something since: this library counts that in memory, where a loop's
// registers do not show it.
bool has_acted_since();
// It answers that it computes.
void says_that_it_computes();

}  // namespace weft::verbs
