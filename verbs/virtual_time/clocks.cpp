// Clocks that programs read, and alarms.
#include <errno.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "common/next_function.hpp"
#include "run.hpp"

using namespace weft::verbs;

namespace {

constinit Next<int(clockid_t, timespec*)> next_clock_gettime{"clock_gettime"};
constinit Next<int(timeval*, void*)> next_gettimeofday{"gettimeofday"};
constinit Next<time_t(time_t*)> next_time{"time"};
constinit Next<unsigned(unsigned)> next_alarm{"alarm"};
constinit Next<int(__itimer_which_t, const itimerval*, itimerval*)> next_setitimer{"setitimer"};
constinit Next<int(__itimer_which_t, itimerval*)> next_getitimer{"getitimer"};
constinit Next<int(int, int, const itimerspec*, itimerspec*)> next_timerfd_settime{"timerfd_settime"};
constinit Next<int(timer_t, int, const itimerspec*, itimerspec*)> next_timer_settime{"timer_settime"};

constexpr uint64_t kNsInUs = 1'000;
constexpr uint64_t kUsInS = 1'000'000;

uint64_t ps_of(const timeval& value) {
  return duration_ps({value.tv_sec, static_cast<long>(value.tv_usec * static_cast<long>(kNsInUs))});
}

timeval timeval_of(uint64_t ps) {
  const uint64_t us = ps / (kPsInNs * kNsInUs);
  return {static_cast<time_t>(us / kUsInS), static_cast<suseconds_t>(us % kUsInS)};
}

// Sets SIGALRM's time. Result: how long the one before still had.
uint64_t set_alarm(uint64_t duration, uint64_t interval_ps) {
  did_something();
  page().alarm_interval_ps.store(interval_ps);
  const uint64_t due_ps = page().alarm_ps.exchange(duration == 0 ? 0 : after_ps(duration));
  return due_ps > now_ps() ? due_ps - now_ps() : 0;
}

itimerval alarm_left() {
  const uint64_t due_ps = page().alarm_ps.load();
  return {timeval_of(page().alarm_interval_ps.load()), timeval_of(due_ps > now_ps() ? due_ps - now_ps() : 0)};
}

}  // namespace

WEFT_EXPORTED int clock_gettime(clockid_t clock, timespec* shown) noexcept {
  const bool is_realtime = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
  const bool is_monotonic = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW ||
                            clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME;
  if (!is_timed() || (!is_realtime && !is_monotonic)) return next_clock_gettime(clock, shown);
  look(__builtin_return_address(0), Wait::kMemory);
  const uint64_t ns = is_realtime ? realtime_ns() : monotonic_ns();
  *shown = {static_cast<time_t>(ns / kNsInS), static_cast<long>(ns % kNsInS)};
  return 0;
}

WEFT_EXPORTED int gettimeofday(timeval* __restrict shown, void* __restrict zone) noexcept {
  if (!is_timed()) return next_gettimeofday(shown, zone);
  look(__builtin_return_address(0), Wait::kMemory);
  const uint64_t us = realtime_ns() / kNsInUs;
  *shown = {static_cast<time_t>(us / kUsInS), static_cast<suseconds_t>(us % kUsInS)};
  return 0;
}

WEFT_EXPORTED time_t time(time_t* shown) noexcept {
  if (!is_timed()) return next_time(shown);
  look(__builtin_return_address(0), Wait::kMemory);
  const auto seconds = static_cast<time_t>(realtime_ns() / kNsInS);
  if (shown != nullptr) *shown = seconds;
  return seconds;
}

WEFT_EXPORTED int timespec_get(timespec* shown, int base) noexcept {
  if (base != TIME_UTC || clock_gettime(CLOCK_REALTIME, shown) != 0) return 0;
  return base;
}

WEFT_EXPORTED unsigned alarm(unsigned seconds) noexcept {
  if (!is_timed()) return next_alarm(seconds);
  const uint64_t left_ps = set_alarm(seconds * kPsInS, 0);
  return static_cast<unsigned>((left_ps + kPsInS - 1) / kPsInS);
}

WEFT_EXPORTED int setitimer(__itimer_which_t which, const itimerval* value, itimerval* before) noexcept {
  if (!is_timed() || which != ITIMER_REAL) return next_setitimer(which, value, before);
  if (before != nullptr) *before = alarm_left();
  if (value != nullptr) set_alarm(ps_of(value->it_value), ps_of(value->it_interval));
  return 0;
}

WEFT_EXPORTED int getitimer(__itimer_which_t which, itimerval* value) noexcept {
  if (!is_timed() || which != ITIMER_REAL) return next_getitimer(which, value);
  *value = alarm_left();
  return 0;
}

// --- what runs on the wall clock, which the run says

WEFT_EXPORTED int timerfd_settime(int descriptor, int flags, const itimerspec* value,
                                  itimerspec* before) noexcept {
  if (is_timed()) page().uses.fetch_or(kTimerDescriptors);
  return next_timerfd_settime(descriptor, flags, value, before);
}

WEFT_EXPORTED int timer_settime(timer_t timer, int flags, const itimerspec* value,
                                itimerspec* before) noexcept {
  if (is_timed()) page().uses.fetch_or(kPosixTimers);
  return next_timer_settime(timer, flags, value, before);
}
