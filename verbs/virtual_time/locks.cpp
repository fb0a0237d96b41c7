// Waits for other threads with a time. Waits without one need nothing: the run sees a thread that sleeps.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "common/next_function.hpp"
#include "run.hpp"

using namespace weft::verbs;

namespace {

// In glibc 2.3.2 and later a condition is another structure than before, and both functions are there.
constinit Next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)> next_cond_timedwait{
    "pthread_cond_timedwait", "GLIBC_2.3.2"};
constinit Next<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)> next_cond_clockwait{
    "pthread_cond_clockwait"};
constinit Next<int(pthread_mutex_t*, const timespec*)> next_mutex_timedlock{"pthread_mutex_timedlock"};
constinit Next<int(pthread_mutex_t*, clockid_t, const timespec*)> next_mutex_clocklock{
    "pthread_mutex_clocklock"};
constinit Next<int(sem_t*, const timespec*)> next_sem_timedwait{"sem_timedwait"};
constinit Next<int(sem_t*, clockid_t, const timespec*)> next_sem_clockwait{"sem_clockwait"};
constinit Next<int(clockid_t, timespec*)> next_clock_gettime{"clock_gettime"};

// The run cannot wake a thread that waits for another one, so the thread looks itself, this often by the wall
// clock, whether the run has said that its time is over.
constexpr long kBetweenLooksNs = 1'000'000;

timespec soon() {
  timespec wall{};
  next_clock_gettime(CLOCK_MONOTONIC, &wall);
  wall.tv_nsec += kBetweenLooksNs;
  if (static_cast<uint64_t>(wall.tv_nsec) >= kNsInS) {
    wall.tv_nsec -= static_cast<long>(kNsInS);
    ++wall.tv_sec;
  }
  return wall;
}

// Waits by `call`, which takes a time of the monotonic wall clock and returns an errno.
template <class Call>
int wait_for_thread(const timespec& until, Call&& call) {
  did_something();
  const uint64_t until_ps = time_of(until);
  const KernelWait own(until_ps);
  while (true) {
    const bool is_over = until_ps <= now_ps() || own.was_ended();
    const timespec wall = soon();
    const int error = call(wall);
    if (error != ETIMEDOUT || is_over) return error;
  }
}

}  // namespace

WEFT_EXPORTED int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                         const timespec* until) {
  if (!is_timed()) return next_cond_timedwait(condition, mutex, until);
  return wait_for_thread(*until, [&](const timespec& wall) {
    return next_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &wall);
  });
}

WEFT_EXPORTED int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                         const timespec* until) {
  if (!is_timed()) return next_cond_clockwait(condition, mutex, clock, until);
  return pthread_cond_timedwait(condition, mutex, until);
}

WEFT_EXPORTED int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) noexcept {
  if (!is_timed()) return next_mutex_timedlock(mutex, until);
  return wait_for_thread(
      *until, [&](const timespec& wall) { return next_mutex_clocklock(mutex, CLOCK_MONOTONIC, &wall); });
}

WEFT_EXPORTED int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                          const timespec* until) noexcept {
  if (!is_timed()) return next_mutex_clocklock(mutex, clock, until);
  return pthread_mutex_timedlock(mutex, until);
}

WEFT_EXPORTED int sem_timedwait(sem_t* semaphore, const timespec* until) {
  if (!is_timed()) return next_sem_timedwait(semaphore, until);
  const int error = wait_for_thread(*until, [&](const timespec& wall) {
    return next_sem_clockwait(semaphore, CLOCK_MONOTONIC, &wall) == 0 ? 0 : errno;
  });
  if (error == 0) return 0;
  errno = error;
  return -1;
}

WEFT_EXPORTED int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  if (!is_timed()) return next_sem_clockwait(semaphore, clock, until);
  return sem_timedwait(semaphore, until);
}
