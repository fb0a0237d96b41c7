#include "time/engine.hpp"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <stdexcept>
#include <system_error>

#include "memory/prefetch.hpp"
#include "packets/packet_store.hpp"
#include "time/event_fd.hpp"
#include "time/partition.hpp"
#include "time/partitions.hpp"
#include "time/run_end.hpp"

namespace weft {

namespace {

// Events served before the lock is offered to waiting threads and transmissions are flushed.
constexpr size_t kBatchEvents = 256;
// Nearer deadlines than this are awaited by yielding, because a sleep would overshoot them.
constexpr int64_t kSpinNs = 20'000;
// Longest sleep, so that interrupts are noticed.
constexpr int64_t kLongestSleepNs = 100'000'000;
// The virtual clock's interval between looks for interrupts.
constexpr uint64_t kBatchesPerInterruptCheck = 256;
constexpr uint64_t kEventsPerWallReading = 8;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

thread_local Engine* engine_served_here = nullptr;
thread_local TimePs serve_limit_ps = 0;  // of serve_until(), while it serves

}  // namespace

Engine::Engine(uint64_t seed)
    : one_shots_(events_),
      packets_(std::make_shared<PacketStore>()),
      seed_(seed),
      own_lock_(std::make_unique<FairLock>()),
      lock_(*own_lock_) {}

Engine::Engine(Partition& partition, uint64_t seed, FairLock& lock, std::shared_ptr<PacketStore> store)
    : one_shots_(events_), packets_(std::move(store)), partition_(&partition), seed_(seed), lock_(lock) {}

Engine::Engine(RealClock clock, uint64_t seed) : Engine(seed) {
  clock_ = clock;
  lateness_ = std::make_unique<LatenessHistogram>();
  if (!(clock.dilation > 0))
    throw std::invalid_argument("dilation is " + std::to_string(clock.dilation) + " (a number above 0)");
  open_poller();
  now_ = std::max<TimePs>(0, wall_now());
}

Engine::~Engine() {
  if (running()) {
    stop_requested_ = true;
    wake();
    thread_.join();
  }
  while (!components_.empty()) components_.pop_back();
  if (failure_fd_ >= 0) close(failure_fd_);
  if (wake_fd_ >= 0) close(wake_fd_);
  if (epoll_fd_ >= 0) close(epoll_fd_);
}

void Engine::require_no_thread(const char* what) const {
  if (running())
    throw std::logic_error(std::string(what) + " while the engine's thread runs; stop() it first");
}

void Engine::require_alone(const char* what) const {
  if (partition_ != nullptr)
    throw std::logic_error(std::string(what) + " of a partition; its Partitions run all of them together");
}

void Engine::require_real(const char* what) const {
  if (!is_real())
    throw std::logic_error(std::string(what) + " needs an engine with a real clock; this one's is virtual");
}

TimePs Engine::wall_now() const {
  require_real("wall_now()");
  return clock_->emulated_ps(monotonic_now_ns());
}

// --- running ---

void Engine::run_until(TimePs time, InterruptCheck check) {
  require_alone("run_until()");
  require_no_thread("run_until()");
  lock_.lock();
  struct Leave {
    Engine& engine;
    ~Leave() {
      engine.interrupt_check_ = nullptr;
      engine.lock_.unlock();
    }
  } leave{*this};
  interrupt_check_ = check;
  stop_requested_ = false;
  if (is_real())
    run_real_until(time);
  else
    run_virtual_until(time);
  if (!stop_requested_ && time != kNever) now_ = std::max(now_, time);
}

void Engine::run(InterruptCheck check) {
  if (is_real()) throw std::logic_error("run() needs a virtual clock; use run_for(), run_until() or start()");
  run_until(kNever, check);
}

void Engine::request_stop() {
  if (partition_ != nullptr) {
    partition_->owner().request_stop();
    return;
  }
  stop_requested_ = true;
  if (is_real()) wake();
}

void Engine::run_virtual_until(TimePs time) {
  for (uint64_t batch = 1; serve_batch(time) > 0; ++batch) {
    if (lock_.contended()) give_way();
    if (batch % kBatchesPerInterruptCheck == 0) check_interrupt();
  }
}

void Engine::run_real_until(TimePs time) {
  while (!stop_requested_) {
    // The time is read before the sockets are: whatever arrived before it is in the queue when events up to
    // it are served.
    const TimePs wall = wall_now();
    const TimePs taken = poll_all();
    const size_t served = serve_batch(std::min({wall, taken, time}));
    flush_all();
    if (served == 0 && taken == kNever) {
      if (wall >= time) return;
      check_interrupt();
      sleep_until(std::min(events_.next_time(), time));
    } else if (lock_.contended()) {
      give_way();
    }
  }
}

inline void Engine::serve(EventQueue::First first) {
  if (first.time > sample_due_ps_) [[unlikely]] {
    sample_due_ps_ = sample_taker_->take_samples(first.time);
    first = events_.first();
  }
  now_ = std::max(now_, first.time);
  ++events_served_;
  const TimerAction action = events_.take(first);
  action.function(action.object);
}

size_t Engine::serve_batch(TimePs limit) {
  size_t served = 0;
  TimePs wall = 0;
  while (served < kBatchEvents && !stop_requested_) {
    const EventQueue::First first = events_.first();
    if (!first.exists() || first.time > limit) break;
    if (is_real()) {
      if (served % kEventsPerWallReading == 0) wall = wall_now();
      lateness_->record(wall - first.time);
    }
    ++served;
    serve(first);
  }
  return served;
}

void Engine::serve_until(TimePs limit) {
  struct Served {
    explicit Served(Engine* engine) { engine_served_here = engine; }
    ~Served() { engine_served_here = nullptr; }
  } served(this);
  serve_limit_ps = limit;
  for (EventQueue::First first = events_.first(); first.time <= serve_limit_ps; first = events_.first())
    serve(first);
}

void end_run_here(Engine& engine) {
  if (engine.partition() == nullptr || engine.partition()->owner().count() != 1)
    throw std::logic_error("a run ends within a window only where it has one partition");
  engine.partition()->owner().request_stop();
  serve_limit_ps = INT64_MIN;
}

void Engine::fetch(PrefetchStep step) const {
  if (step == PrefetchStep::kObject) {
    const auto used_bytes = reinterpret_cast<const char*>(&partition_) - reinterpret_cast<const char*>(this);
    prefetch<CacheLevel::kSecond>(this, static_cast<size_t>(used_bytes));
  } else if (step == PrefetchStep::kOneAway) {
    events_.fetch();
    packets_.fetch();
  }
}

Engine* Engine::served_here() { return engine_served_here; }

void Engine::adopt(std::shared_ptr<void> component) {
  if (partition_ != nullptr)
    partition_->owner().adopt(std::move(component));
  else
    components_.push_back(std::move(component));
}

std::shared_ptr<const Listener> Engine::listener(std::function<void()> call) {
  if (partition_ != nullptr) return partition_->owner().add_listener(std::move(call));
  return std::make_shared<const Listener>(Listener{0, std::move(call)});
}

void Engine::hand_over(const std::shared_ptr<const Listener>& listener) {
  if (partition_ != nullptr)
    partition_->hand_over(listener);
  else
    listener->call();
}

ConservationBalance Engine::balance() const {
  if (is_real())
    throw std::logic_error("no packet conservation under the real clock: packets come and go by sockets");
  if (partition_ != nullptr)
    throw std::logic_error(
        "no packet conservation of one partition: packets go to others (ask for all of them)");
  ConservationBalance balance;
  balance.add(conservation_);
  return balance;
}

const LatenessHistogram& Engine::lateness() const {
  static const LatenessHistogram none;
  return lateness_ == nullptr ? none : *lateness_;
}

void Engine::reset_lateness() {
  if (lateness_ != nullptr) lateness_->reset();
}

void Engine::check_interrupt() {
  if (interrupt_check_ == nullptr) return;
  const int64_t now_ns = monotonic_now_ns();
  if (now_ns < next_interrupt_check_ns_) return;
  next_interrupt_check_ns_ = now_ns + kLongestSleepNs;
  interrupt_check_();
}

void Engine::give_way() {
  lock_.unlock();
  lock_.lock();
}

// --- waiting ---

void Engine::open_poller() {
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd_ < 0) throw_errno("epoll_create1");
  wake_fd_ = open_event_fd();
  failure_fd_ = open_event_fd();
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_fd_;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &event) != 0) throw_errno("epoll_ctl");
}

void Engine::wake() { make_readable(wake_fd_); }

void Engine::sleep_until(TimePs deadline) {
  int64_t wait_ns = kLongestSleepNs;
  // Compared as time first: a far deadline does not fit into nanoseconds when dilated.
  if (deadline < clock_->emulated_ps(monotonic_now_ns() + kLongestSleepNs))
    wait_ns = clock_->monotonic_ns(deadline) - monotonic_now_ns();
  if (wait_ns <= 0) return;
  if (wait_ns < kSpinNs) {
    if (lock_.contended())
      give_way();
    else
      std::this_thread::yield();
    return;
  }

  asleep_ = true;
  lock_.unlock();
  std::array<epoll_event, 64> ready{};
  const timespec timeout{.tv_sec = wait_ns / 1'000'000'000, .tv_nsec = wait_ns % 1'000'000'000};
  const int count = epoll_pwait2(epoll_fd_, ready.data(), ready.size(), &timeout, nullptr);
  asleep_ = false;
  struct Relock {
    FairLock& lock;
    ~Relock() { lock.lock(); }
  } relock{lock_};
  if (count < 0 && errno != EINTR) throw_errno("epoll_pwait2");
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready[static_cast<size_t>(i)];
    if (event.data.fd == wake_fd_) {
      make_unreadable(wake_fd_);
    } else if ((event.events & EPOLLERR) != 0) {
      // An interface that goes down leaves an error on its sockets, which would keep epoll from sleeping
      // until it is read.
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(event.data.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
}

TimePs Engine::poll_all() {
  TimePs taken = kNever;
  for (Pollable* pollable : pollables_) taken = std::min(taken, pollable->poll());
  return taken;
}

void Engine::flush_all() {
  for (Pollable* pollable : unflushed_) pollable->flush();
  unflushed_.clear();
}

void Engine::add_pollable(Pollable* pollable) {
  require_real("a packet socket");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = pollable->file_descriptor();
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, event.data.fd, &event) != 0) throw_errno("epoll_ctl");
  pollables_.push_back(pollable);
}

void Engine::remove_pollable(Pollable* pollable) {
  std::erase(unflushed_, pollable);
  if (std::erase(pollables_, pollable) > 0)
    epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, pollable->file_descriptor(), nullptr);
}

// --- the thread, and the others ---

void Engine::start(int realtime_priority) {
  require_real("start()");
  require_no_thread("start()");
  if (realtime_priority < 0 || realtime_priority > 99)
    throw std::invalid_argument("realtime priority " + std::to_string(realtime_priority) +
                                " (0 for none, 1 to 99)");
  thread_failure_ = nullptr;
  failure_text_.reset();
  make_unreadable(failure_fd_);
  stop_requested_ = false;
  // Signals belong to the process's main thread: one that landed here would not interrupt what that is
  // waiting for.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run_thread(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (realtime_priority == 0) return;
  const sched_param parameters{.sched_priority = realtime_priority};
  if (const int error = pthread_setschedparam(thread_.native_handle(), SCHED_RR, &parameters); error != 0) {
    stop();
    throw std::system_error(error, std::generic_category(), "realtime priority for the engine's thread");
  }
}

void Engine::run_thread() {
  prctl(PR_SET_NAME, "weft-engine");
  prctl(PR_SET_TIMERSLACK, 1);
  lock_.lock();
  try {
    run_real_until(kNever);
  } catch (const std::exception& error) {
    thread_failure_ = std::current_exception();
    failure_text_ = error.what();
  } catch (...) {
    thread_failure_ = std::current_exception();
    failure_text_ = "unknown error";
  }
  if (failure_text_) make_readable(failure_fd_);
  lock_.unlock();
}

void Engine::stop() {
  if (!running()) return;
  if (thread_.get_id() == std::this_thread::get_id())
    throw std::logic_error("stop() from an event of the engine's own thread; use request_stop()");
  request_stop();
  thread_.join();
  if (thread_failure_ != nullptr) std::rethrow_exception(std::exchange(thread_failure_, nullptr));
}

std::optional<std::string> Engine::failure() {
  Guard guard(*this);
  return failure_text_;
}

int Engine::failure_fd() const {
  require_real("failure_fd()");
  return failure_fd_;
}

bool Engine::enter() {
  if (partition_ != nullptr && engine_served_here != nullptr) {
    if (engine_served_here == this) return false;
    throw std::logic_error("an event of one partition uses a component of another");
  }
  lock_.lock();
  if (partition_ != nullptr)
    now_ = std::max(now_, partition_->owner().now());
  else if (is_real() && lock_.depth() == 1)
    // Not past an event still to be served: time never runs backwards for it.
    now_ = std::max(now_, std::min(wall_now(), events_.next_time()));
  return true;
}

void Engine::leave() {
  if (partition_ != nullptr) {
    partition_->touch();
  } else if (is_real() && lock_.depth() == 1) {
    flush_all();
    if (asleep_) wake();
  }
  lock_.unlock();
}

Engine::Guard::Guard(Engine& engine) : engine_(engine), locked_(engine.enter()) {}
Engine::Guard::~Guard() {
  if (locked_) engine_.leave();
}

}  // namespace weft
