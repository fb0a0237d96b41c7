// What a process that lives in a run's virtual time and the run say to each other: a connection over a Unix
// socket (SOCK_SEQPACKET), and shared memory. Both are of the same build and machine.
//
// Time stands still while any thread of any process computes. A thread that waits says so in its process's
// page, rings the doorbell, and sleeps until the run takes the word back; the run moves on when all wait.
// Threads that sleep in the kernel need not say it: the run sees that they do.
#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>

namespace weft::verbs {

constexpr uint64_t kTimeMagic = 0x5765'6674'5469'6d65;  // "WeftTime"
constexpr const char* kTimeSocketVariable = "WEFT_TIME_SOCKET";

// A process's first message. The answer is one byte, with descriptors of the clock's page, of the process's
// own page and of its doorbell.
struct TimeHello {
  uint64_t magic;
  uint64_t clock_page_bytes;
  uint64_t process_page_bytes;
};
constexpr size_t kTimeDescriptors = 3;

// One for all processes, which only read it.
struct ClockPage {
  std::atomic<uint64_t> now_ps;
};

enum class Wait : uint32_t {
  kNone,    // it computes
  kTime,    // until a time
  kNews,    // and for whatever its NIC has for its process: completions, events
  kMemory,  // and for memory that another writes: its NIC, another thread or process
  kKernel,  // asleep in a system call that the kernel may end, or else the run, at a time
  kEnded,   // the same, when the run has ended it and the thread has not gone on yet
};
constexpr uint64_t kForEver = ~0ull;
// A process that has not joined yet, or becomes another program, ignores it.
constexpr int kTimeSignal = SIGURG;

// One place of a thread that has waited. The thread sets `wait` last; the run takes it back, then wakes it: a
// futex is `turn`, or, of kKernel, kTimeSignal interrupts the call.
struct WaitingThread {
  std::atomic<int32_t> thread;  // its identifier in the kernel; 0: nobody's place
  std::atomic<Wait> wait;
  std::atomic<uint32_t> turn;
  // The run asks a thread that computes, by kTimeSignal, whether it only looks at memory; the thread answers
  // by waiting for kMemory, or else counts here that it does not.
  std::atomic<uint32_t> computes;
  std::atomic<uint64_t> until_ps;
  // Of kMemory: stands for the loop in which it looks. Another number, another loop or another state of it.
  std::atomic<uint64_t> loop;
  uint64_t reserved[4];
};
static_assert(sizeof(WaitingThread) == 64);

// What a process uses of the wall clock, which virtual time does not reach.
enum WallClockUse : uint32_t { kTimerDescriptors = 1, kPosixTimers = 2, kSocketTimeouts = 4 };

constexpr uint32_t kMaxWaitingThreads = 1023;
struct ProcessPage {
  std::atomic<uint32_t> begun;     // threads and processes that it has begun
  std::atomic<uint32_t> uses;      // WallClockUse
  std::atomic<uint64_t> alarm_ps;  // when it wants SIGALRM; 0: never
  std::atomic<uint64_t> alarm_interval_ps;
  std::atomic<uint64_t> acts;  // how often its threads did something that others may see
  std::atomic<uint64_t> sent;  // how often they called what may reach others through the kernel
  // A process that alone computes may go ahead of the run up to here, because nothing happens there before; 0
  // otherwise. Whatever others may see of it waits until the run has followed.
  std::atomic<uint64_t> free_until_ps;
  std::atomic<uint64_t> ahead_ps;  // where it is then
  uint64_t reserved[1];
  WaitingThread threads[kMaxWaitingThreads];
};
static_assert(sizeof(ProcessPage) == 64 * (kMaxWaitingThreads + 1));

// CLOCK_REALTIME at the run's beginning: 1 January 2026. CLOCK_MONOTONIC, which is never 0 on a machine that
// has booted, begins with one second.
constexpr uint64_t kRealtimeBeginNs = 1'767'225'600'000'000'000;
constexpr uint64_t kMonotonicBeginNs = 1'000'000'000;
// The time-stamp counter counts nanoseconds.
constexpr double kCounterHz = 1e9;

}  // namespace weft::verbs
