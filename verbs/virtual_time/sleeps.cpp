// Sleeps, and waits for descriptors with a time.
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "common/next_function.hpp"
#include "run.hpp"

using namespace weft::verbs;

namespace {

constinit Next<int(clockid_t, int, const timespec*, timespec*)> next_clock_nanosleep{"clock_nanosleep"};
constinit Next<int()> next_sched_yield{"sched_yield"};
constinit Next<int(pollfd*, nfds_t, int)> next_poll{"poll"};
constinit Next<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> next_ppoll{"ppoll"};
constinit Next<int(int, fd_set*, fd_set*, fd_set*, timeval*)> next_select{"select"};
constinit Next<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)> next_pselect{"pselect"};
constinit Next<int(int, epoll_event*, int, int)> next_epoll_wait{"epoll_wait"};
constinit Next<int(int, epoll_event*, int, int, const sigset_t*)> next_epoll_pwait{"epoll_pwait"};
constinit Next<ssize_t(int, void*, size_t)> next_read{"read"};
constinit Next<ssize_t(int, void*, size_t, int)> next_recv{"recv"};
constinit Next<ssize_t(int, void*, size_t, int, sockaddr*, socklen_t*)> next_recvfrom{"recvfrom"};
constinit Next<ssize_t(int, msghdr*, int)> next_recvmsg{"recvmsg"};
constinit Next<int(int, int, int, const void*, socklen_t)> next_setsockopt{"setsockopt"};

constexpr timespec kAtOnce = {0, 0};
constexpr long kNsInMs = 1'000'000;
constexpr int kMsInS = 1'000;

timespec timespec_of(uint64_t ps) {
  return {static_cast<time_t>(ps / kPsInS), static_cast<long>(ps % kPsInS / kPsInNs)};
}
timespec of_ms(int ms) { return {ms / kMsInS, ms % kMsInS * kNsInMs}; }

// Waits by `call`, which has the form of ppoll: a time to wait at most, of which there are none and for ever,
// and a mask. `duration`: null is for ever.
template <class Call>
int wait_for_descriptors(const void* place, const timespec* duration, const sigset_t* program_mask,
                         Call&& call) {
  // That something is ready changes nothing: a thread may find it so for ever while another has to act.
  if (const int ready = call(&kAtOnce, program_mask); ready != 0) return ready;
  if (duration != nullptr && duration->tv_sec == 0 && duration->tv_nsec == 0) {
    look(place, Wait::kMemory);
    return call(&kAtOnce, program_mask);
  }
  did_something();
  const KernelWait own(duration == nullptr ? kForEver : after_ps(duration_ps(*duration)), program_mask);
  const int found = call(nullptr, own.mask());
  return found < 0 && errno == EINTR && own.was_ended() ? 0 : found;
}

int wait_for_epoll(const void* place, int epoll, epoll_event* events, int most, int timeout_ms,
                   const sigset_t* program_mask) {
  const timespec duration = of_ms(timeout_ms);
  return wait_for_descriptors(place, timeout_ms < 0 ? nullptr : &duration, program_mask,
                              [&](const timespec* wall, const sigset_t* mask) {
                                return next_epoll_pwait(epoll, events, most, wall == nullptr ? -1 : 0, mask);
                              });
}

int sleep_until(uint64_t until_ps, timespec* left) {
  did_something();
  if (until_ps <= now_ps() || wait(Wait::kTime, until_ps)) return 0;
  if (left != nullptr) *left = timespec_of(until_ps > now_ps() ? until_ps - now_ps() : 0);
  return EINTR;
}

int failed(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// A descriptor that has nothing is looked at as a queue is.
template <class Size>
Size looked(const void* place, Size got) {
  if (got >= 0)
    did_something();
  else if (errno == EAGAIN)
    look(place, Wait::kMemory);
  return got;
}

bool is_duration(const timespec& duration) {
  return duration.tv_sec >= 0 && duration.tv_nsec >= 0 && static_cast<uint64_t>(duration.tv_nsec) < kNsInS;
}

}  // namespace

WEFT_EXPORTED int clock_nanosleep(clockid_t clock, int flags, const timespec* asked, timespec* left) {
  if (!is_timed()) return next_clock_nanosleep(clock, flags, asked, left);
  if (!is_duration(*asked)) return EINVAL;
  const bool is_time = (flags & TIMER_ABSTIME) != 0;
  return sleep_until(is_time ? time_of(*asked) : after_ps(duration_ps(*asked)), is_time ? nullptr : left);
}

WEFT_EXPORTED int nanosleep(const timespec* asked, timespec* left) {
  return failed(clock_nanosleep(CLOCK_REALTIME, 0, asked, left));
}

WEFT_EXPORTED int usleep(useconds_t us) {
  const timespec asked = timespec_of(us * kPsInNs * 1'000);
  return nanosleep(&asked, nullptr);
}

WEFT_EXPORTED unsigned sleep(unsigned seconds) {
  const timespec asked{static_cast<time_t>(seconds), 0};
  timespec left{};
  if (nanosleep(&asked, &left) == 0) return 0;
  return static_cast<unsigned>(left.tv_sec + (left.tv_nsec > 0 ? 1 : 0));
}

WEFT_EXPORTED int sched_yield() noexcept {
  if (is_timed()) look(__builtin_return_address(0), Wait::kMemory);
  return next_sched_yield();
}

WEFT_EXPORTED int poll(pollfd* descriptors, nfds_t count, int timeout_ms) {
  if (!is_timed()) return next_poll(descriptors, count, timeout_ms);
  const timespec duration = of_ms(timeout_ms);
  return wait_for_descriptors(
      __builtin_return_address(0), timeout_ms < 0 ? nullptr : &duration, nullptr,
      [&](const timespec* wall, const sigset_t* mask) { return next_ppoll(descriptors, count, wall, mask); });
}

WEFT_EXPORTED int ppoll(pollfd* descriptors, nfds_t count, const timespec* duration,
                        const sigset_t* program_mask) {
  if (!is_timed()) return next_ppoll(descriptors, count, duration, program_mask);
  return wait_for_descriptors(
      __builtin_return_address(0), duration, program_mask,
      [&](const timespec* wall, const sigset_t* mask) { return next_ppoll(descriptors, count, wall, mask); });
}

WEFT_EXPORTED int pselect(int count, fd_set* read, fd_set* write, fd_set* except, const timespec* duration,
                          const sigset_t* program_mask) {
  if (!is_timed()) return next_pselect(count, read, write, except, duration, program_mask);
  fd_set wanted[3];
  fd_set* sets[3] = {read, write, except};
  for (int i = 0; i < 3; ++i)
    if (sets[i] != nullptr) wanted[i] = *sets[i];
  return wait_for_descriptors(__builtin_return_address(0), duration, program_mask,
                              [&](const timespec* wall, const sigset_t* mask) {
                                for (int i = 0; i < 3; ++i)
                                  if (sets[i] != nullptr) *sets[i] = wanted[i];
                                return next_pselect(count, read, write, except, wall, mask);
                              });
}

WEFT_EXPORTED int select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* left) {
  if (!is_timed()) return next_select(count, read, write, except, left);
  if (left == nullptr) return pselect(count, read, write, except, nullptr, nullptr);
  const timespec duration{left->tv_sec, left->tv_usec * 1'000};
  if (!is_duration(duration)) return failed(EINVAL);
  // As Linux has it: what is left of the time.
  const uint64_t until_ps = after_ps(duration_ps(duration));
  const int ready = pselect(count, read, write, except, &duration, nullptr);
  const timespec rest = timespec_of(until_ps > now_ps() ? until_ps - now_ps() : 0);
  *left = {rest.tv_sec, static_cast<suseconds_t>(rest.tv_nsec / 1'000)};
  return ready;
}

WEFT_EXPORTED int epoll_pwait2(int epoll, epoll_event* events, int most, const timespec* duration,
                               const sigset_t* program_mask) {
  return wait_for_descriptors(
      __builtin_return_address(0), duration, program_mask, [&](const timespec* wall, const sigset_t* mask) {
        // Outside a run, too: this function is newer than the kernels that some C libraries are for.
        const int ms =
            wall == nullptr ? -1 : static_cast<int>(wall->tv_sec * kMsInS + wall->tv_nsec / kNsInMs);
        return next_epoll_pwait(epoll, events, most, ms, mask);
      });
}

WEFT_EXPORTED int epoll_pwait(int epoll, epoll_event* events, int most, int timeout_ms,
                              const sigset_t* program_mask) {
  if (!is_timed()) return next_epoll_pwait(epoll, events, most, timeout_ms, program_mask);
  return wait_for_epoll(__builtin_return_address(0), epoll, events, most, timeout_ms, program_mask);
}

WEFT_EXPORTED int epoll_wait(int epoll, epoll_event* events, int most, int timeout_ms) {
  if (!is_timed()) return next_epoll_wait(epoll, events, most, timeout_ms);
  return wait_for_epoll(__builtin_return_address(0), epoll, events, most, timeout_ms, nullptr);
}

WEFT_EXPORTED ssize_t read(int descriptor, void* data, size_t bytes) {
  const ssize_t got = next_read(descriptor, data, bytes);
  return is_timed() ? looked(__builtin_return_address(0), got) : got;
}

WEFT_EXPORTED ssize_t recv(int descriptor, void* data, size_t bytes, int flags) {
  const ssize_t got = next_recv(descriptor, data, bytes, flags);
  return is_timed() ? looked(__builtin_return_address(0), got) : got;
}

WEFT_EXPORTED ssize_t recvfrom(int descriptor, void* __restrict data, size_t bytes, int flags,
                               sockaddr* __restrict from, socklen_t* __restrict length) {
  const ssize_t got = next_recvfrom(descriptor, data, bytes, flags, from, length);
  return is_timed() ? looked(__builtin_return_address(0), got) : got;
}

WEFT_EXPORTED ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  const ssize_t got = next_recvmsg(descriptor, message, flags);
  return is_timed() ? looked(__builtin_return_address(0), got) : got;
}

WEFT_EXPORTED int setsockopt(int descriptor, int level, int option, const void* value,
                             socklen_t bytes) noexcept {
  if (is_timed() && level == SOL_SOCKET && (option == SO_RCVTIMEO || option == SO_SNDTIMEO))
    page().uses.fetch_or(kSocketTimeouts);
  return next_setsockopt(descriptor, level, option, value, bytes);
}
