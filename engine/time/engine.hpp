// The engine: one clock, one event queue, one packet pool, and the sockets it polls when the clock is real.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "memory/prefetch_step.hpp"
#include "observe/lateness_histogram.hpp"
#include "observe/packet_conservation.hpp"
#include "packets/packet.hpp"
#include "time/event_queue.hpp"
#include "time/fair_lock.hpp"
#include "time/listener.hpp"
#include "time/one_shot.hpp"
#include "time/random.hpp"
#include "time/time.hpp"

namespace weft {

class PacketStore;
class Partition;

inline int64_t monotonic_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Emulated time = (CLOCK_MONOTONIC - epoch) / dilation: one emulated second takes `dilation` real ones.
struct RealClock {
  int64_t epoch_ns = 0;
  double dilation = 1.0;

  TimePs emulated_ps(int64_t monotonic_ns) const {
    return static_cast<TimePs>(static_cast<double>(monotonic_ns - epoch_ns) * (1000.0 / dilation));
  }
  int64_t monotonic_ns(TimePs emulated_ps) const {
    return epoch_ns + static_cast<int64_t>(static_cast<double>(emulated_ps) * (dilation / 1000.0));
  }
};

// Something outside the engine that gives and takes packets under the real clock, as a packet socket does.
struct Pollable {
  virtual ~Pollable() = default;
  virtual int file_descriptor() const = 0;
  // Takes in what has arrived, a bounded number of frames, and schedules it. Result: up to which emulated
  // time everything has been taken; kNever when nothing is left.
  virtual TimePs poll() = 0;
  // Sends what was queued since Engine::flush_later() was called.
  virtual void flush() = 0;
};

class Probe;

// Looks at the engine's components at times of its own, between events.
struct SampleTaker {
  virtual ~SampleTaker() = default;
  // All events before next_event_ps have been served. Takes what is due before it; result: when the next is
  // due.
  virtual TimePs take_samples(TimePs next_event_ps) = 0;
};

// Order of events is (time, sequence): at equal times, first what arrives from links, in the order in which
// these were connected, then first scheduled, first served. now() is the time of the event being served, not
// the wall clock's: what an event that is served late does and schedules is still dated right, so lateness
// does not add up along a path.
//
// Threads other than the engine's own touch the engine and everything attached to it under Engine::Guard
// only. An engine may be one of the partitions of a virtual run, which is then run as a whole: see
// time/partitions.hpp.
class Engine {
 public:
  using InterruptCheck = void (*)();

  explicit Engine(uint64_t seed = 0);
  explicit Engine(RealClock clock, uint64_t seed = 0);
  // The engine of a partition.
  Engine(Partition& partition, uint64_t seed, FairLock& lock, std::shared_ptr<PacketStore> store);
  // Stops the thread, then destroys adopted components, last adopted first.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  TimePs now() const { return now_; }
  bool is_real() const { return clock_.has_value(); }
  // Null unless this is one of several partitions.
  Partition* partition() { return partition_; }
  const std::optional<RealClock>& real_clock() const { return clock_; }
  // The real clock's emulated time at this moment. Throws std::logic_error on a virtual clock.
  TimePs wall_now() const;

  EventQueue& events() { return events_; }
  PacketPool& packets() { return packets_; }
  PacketConservation& conservation() { return conservation_; }
  // Of this engine alone, between two events. Throws std::logic_error on a real clock, whose packets come
  // from and go to the outside, and for a partition, whose packets go to others.
  ConservationBalance balance() const;
  Rng stream(std::string_view name) const { return Rng(seed_, name); }
  uint64_t seed() const { return seed_; }

  // Calls callable() at time (now() if that is past).
  template <class Callable>
  void schedule_at(TimePs time, Callable&& callable) {
    one_shots_.schedule(time < now_ ? now_ : time, std::forward<Callable>(callable));
  }

  // What observes this engine; null unless asked for.
  Probe* probe() const { return probe_; }
  void set_probe(Probe* probe) { probe_ = probe; }
  // Null takes it away again.
  void set_sample_taker(SampleTaker* taker, TimePs due_ps) {
    sample_taker_ = taker;
    sample_due_ps_ = taker == nullptr ? kNever : due_ps;
  }

  // Components refer to each other by plain pointers; the engine owns them all, so none of those pointers
  // dangles.
  void adopt(std::shared_ptr<void> component);
  // Makes a listener for hand_over(). Not from events.
  std::shared_ptr<const Listener> listener(std::function<void()> call);
  // For an event that has something for the world outside: makes this call at once; for a partition, one
  // window later, when all partitions stand still.
  void hand_over(const std::shared_ptr<const Listener>& listener);

  // Serve all events up to and including time; now() is then time. On a real clock this takes as long as it
  // takes, and packet sockets are served meanwhile. Throws std::logic_error while the background thread runs,
  // or if this is a partition.
  // check is called now and then and may throw to end the run (Ctrl-C in Python).
  void run_until(TimePs time, InterruptCheck check = nullptr);
  // Virtual clock: serve events until there are none. Throws std::logic_error on a real clock.
  void run(InterruptCheck check = nullptr);
  // Makes run() or run_until() return after the event being served. May be called from an event or any
  // thread.
  void request_stop();

  // The real clock's own thread. An exception thrown by an event ends it, and is rethrown by stop(). With a
  // realtime priority (1 to 99) the thread is scheduled round robin before all ordinary ones, so that it is
  // late less often; that takes CAP_SYS_NICE (std::system_error otherwise).
  void start(int realtime_priority = 0);
  void stop();
  bool running() const { return thread_.joinable(); }
  // The reason the thread ended by itself, if it did.
  std::optional<std::string> failure();
  // Becomes and stays readable when there is a failure(), for who waits on other descriptors too. Real clock
  // only (throws std::logic_error otherwise).
  int failure_fd() const;

  // Real clock only (throws std::logic_error otherwise).
  void add_pollable(Pollable* pollable);
  void remove_pollable(Pollable* pollable);
  void flush_later(Pollable* pollable) { unflushed_.push_back(pollable); }

  // Something has come from outside that was due at `due_ps`. Counts as served late where that is past.
  void note_arrival(TimePs due_ps) {
    if (lateness_ != nullptr && due_ps < now_) lateness_->record(wall_now() - due_ps);
  }
  // Of a virtual clock: empty.
  const LatenessHistogram& lateness() const;
  void reset_lateness();
  uint64_t events_served() const { return events_served_; }

  // --- for the partitions' workers

  TimePs next_event_ps() { return events_.next_time(); }
  // Prefetches what every event uses, `step` pointers away from this.
  void fetch(PrefetchStep step) const;
  // Serves a partition's events up to and including limit.
  void serve_until(TimePs limit);
  // The partition's engine whose event this thread is serving, or null.
  static Engine* served_here();

  // Holds the engine's lock, with now() brought up to the real clock (but never past an event still to be
  // served). Recursive; releasing it wakes the engine's thread if that sleeps. Partitions share a lock; an
  // event of one that takes another's (they must not touch each other) gets std::logic_error.
  class Guard {
   public:
    explicit Guard(Engine& engine);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Engine& engine_;
    bool locked_;
  };

 private:
  friend class Guard;

  bool enter();
  void leave();
  void require_alone(const char* what) const;
  void run_virtual_until(TimePs time);
  void run_real_until(TimePs time);
  TimePs poll_all();
  void flush_all();
  void serve(EventQueue::First first);
  size_t serve_batch(TimePs limit);
  void sleep_until(TimePs deadline);
  void require_no_thread(const char* what) const;
  void require_real(const char* what) const;
  void give_way();
  void check_interrupt();
  void open_poller();
  void run_thread();
  void wake();

  TimePs now_ = 0;
  uint64_t events_served_ = 0;
  TimePs sample_due_ps_ = kNever;
  EventQueue events_;
  OneShotPool one_shots_;
  PacketPool packets_;
  PacketConservation conservation_;
  Partition* partition_ = nullptr;
  uint64_t seed_;
  std::optional<RealClock> clock_;
  std::unique_ptr<LatenessHistogram> lateness_;  // of a real clock
  Probe* probe_ = nullptr;
  SampleTaker* sample_taker_ = nullptr;

  std::vector<Pollable*> pollables_;
  std::vector<Pollable*> unflushed_;
  int epoll_fd_ = -1;
  int wake_fd_ = -1;
  int failure_fd_ = -1;

  InterruptCheck interrupt_check_ = nullptr;
  int64_t next_interrupt_check_ns_ = 0;
  std::unique_ptr<FairLock> own_lock_;  // unless it is shared
  FairLock& lock_;
  std::thread thread_;
  std::atomic<bool> stop_requested_{false};
  std::atomic<bool> asleep_{false};
  std::exception_ptr thread_failure_;
  std::optional<std::string> failure_text_;
  std::vector<std::shared_ptr<void>> components_;
};

}  // namespace weft
