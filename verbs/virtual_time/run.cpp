#include "run.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/unix_socket.hpp"

#define WEFT_OF_THREAD static thread_local __attribute__((tls_model("initial-exec")))

namespace weft::verbs {
namespace {

// A loop that has looked for so long looks again after a part of it, within bounds: at least after what a
// look takes on a processor, at most so late that a program that measures by it does not notice. Each step of
// a loop that is not free to go ahead takes a turn of the run, so these are longer.
struct Steps {
  uint64_t part;
  uint64_t least_ps;
  uint64_t most_ps;
};
constexpr Steps kClockStepsAhead = {32, 25 * kPsInNs, 1'000 * kPsInNs};
constexpr Steps kClockSteps = {8, 1'000 * kPsInNs, 100'000 * kPsInNs};
constexpr Steps kQueueSteps = {8, 1'000 * kPsInNs, 1'000'000 * kPsInNs};  // the NIC's news end these sooner
constexpr uint32_t kFreeLooks = 64;
// In a row, after time has passed: a program may read a clock twice in a loop.
constexpr uint32_t kFreeLooksAgain = 3;
constexpr uint32_t kOtherLooksLeaveLoop = 3;
constexpr uint32_t kFreeLooksInAll = 512;
constexpr timespec kLookAfterRun = {1, 0};

struct Run {
  const ClockPage* clock;
  ProcessPage* page;
  int doorbell;
  int socket;
};
Run run{nullptr, nullptr, -1, -1};
pthread_key_t place_key;

// Looks at one place of the program.
struct Looks {
  const void* place;
  uint64_t since_ps;
  uint64_t seen_ps;  // at the last look, or after the wait for it
  uint32_t count;
  uint32_t others;  // looks at other places since
};
constexpr uint32_t kPlacesOfLooks = 4;

WEFT_OF_THREAD WaitingThread* own_place;
WEFT_OF_THREAD int in_wait;
WEFT_OF_THREAD volatile sig_atomic_t has_acted;
WEFT_OF_THREAD volatile sig_atomic_t was_asked;  // by the run, of which programs know nothing
WEFT_OF_THREAD Looks looks[kPlacesOfLooks];
WEFT_OF_THREAD Looks kept_looks[kPlacesOfLooks + 1];
WEFT_OF_THREAD Looks all_looks;  // of a loop with more places than that

[[noreturn]] void give_up(const char* why) {
  dprintf(STDERR_FILENO, "weft: this process cannot take part in the run's time: %s\n", why);
  syscall(SYS_exit_group, 126);
  __builtin_unreachable();
}

// The run has gone without ending this process.
void end_with_run() {
  pollfd connection{run.socket, 0, 0};
  const timespec at_once{0, 0};
  if (syscall(SYS_ppoll, &connection, 1, &at_once, nullptr, 0) > 0 && (connection.revents & POLLHUP) != 0)
    syscall(SYS_exit_group, 125);
}

// The system calls themselves: functions of these names belong to others, who may wait in them.
void ring() {
  const uint64_t one = 1;
  syscall(SYS_write, run.doorbell, &one, sizeof one);
}

void leave_place(void* place) { static_cast<WaitingThread*>(place)->thread.store(0); }

WaitingThread& place_of_thread() {
  if (own_place != nullptr) return *own_place;
  const auto thread = static_cast<int32_t>(syscall(SYS_gettid));
  for (WaitingThread& each : run.page->threads) {
    int32_t nobody = 0;
    if (!each.thread.compare_exchange_strong(nobody, thread)) continue;
    each.wait.store(Wait::kNone);
    each.turn.fetch_add(1);
    own_place = &each;
    pthread_setspecific(place_key, own_place);
    return each;
  }
  give_up("too many threads wait");
}

int receive_descriptors(int socket, int* descriptors) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kTimeDescriptors)];
  char answer = 0;
  iovec part{&answer, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do got = syscall(SYS_recvmsg, socket, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (got != 1 || header == nullptr || header->cmsg_len != CMSG_LEN(sizeof(int) * kTimeDescriptors))
    return -1;
  memcpy(descriptors, CMSG_DATA(header), sizeof(int) * kTimeDescriptors);
  return 0;
}

void* map(int descriptor, size_t bytes, int protection) {
  void* mapped = mmap(nullptr, bytes, protection, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (mapped == MAP_FAILED) give_up("mmap");
  return mapped;
}

void join_run() {
  const char* path = getenv(kTimeSocketVariable);
  if (path == nullptr || *path == 0) return;
  const TimeHello hello{kTimeMagic, sizeof(ClockPage), sizeof(ProcessPage)};
  int descriptors[kTimeDescriptors];
  // Above the numbers that scripts use.
  const int low = static_cast<int>(syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  run.socket = fcntl(low, F_DUPFD_CLOEXEC, 200);
  close(low);
  const int error = connect_to(run.socket, path);
  if (error == ENAMETOOLONG) give_up("the name of its socket is too long");
  if (error != 0) give_up("its run has ended");
  if (send(run.socket, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello ||
      receive_descriptors(run.socket, descriptors) != 0)
    give_up("its library and its run are of different builds");
  const auto* clock = static_cast<const ClockPage*>(map(descriptors[0], sizeof(ClockPage), PROT_READ));
  run.page = static_cast<ProcessPage*>(map(descriptors[1], sizeof(ProcessPage), PROT_READ | PROT_WRITE));
  run.doorbell = fcntl(descriptors[2], F_DUPFD_CLOEXEC, 200);
  close(descriptors[2]);
  run.clock = clock;
}

void join_run_in_child() {
  if (run.clock == nullptr) return;
  run.clock = nullptr;
  munmap(run.page, sizeof(ProcessPage));
  close(run.doorbell);
  close(run.socket);
  own_place = nullptr;
  in_wait = 0;
  pthread_setspecific(place_key, nullptr);
  join_run();
}

[[gnu::constructor(101)]] void begin() {
  pthread_key_create(&place_key, leave_place);
  join_run();
  if (run.clock != nullptr) pthread_atfork(begins_another, nullptr, join_run_in_child);
}

// Time that has passed otherwise than by waits for this look ends a loop.
void note_look(Looks& at, bool is_another_loop) {
  const uint64_t now = now_ps();
  if (is_another_loop || at.seen_ps != now) {
    at.since_ps = now;
    at.count = 0;
  }
  at.seen_ps = now;
  ++at.count;
}

Looks& looks_at(const void* place) {
  Looks* found = nullptr;
  Looks* oldest = &looks[0];
  for (Looks& each : looks) {
    ++each.others;
    if (each.place == place) found = &each;
    if (each.others > oldest->others) oldest = &each;
  }
  const bool is_another_loop = found == nullptr || found->others > kOtherLooksLeaveLoop;
  if (found == nullptr) found = oldest;
  found->place = place;
  found->others = 0;
  note_look(*found, is_another_loop);
  return *found;
}

uint64_t next_look(const Looks& at, const Steps& steps) {
  const uint64_t part_ps = (now_ps() - at.since_ps) / steps.part;
  return after_ps(part_ps < steps.least_ps  ? steps.least_ps
                  : part_ps > steps.most_ps ? steps.most_ps
                                            : part_ps);
}

void wait_for_look(Looks& at, Wait what, uint32_t free_looks) {
  const uint64_t ahead_ps = next_look(at, kClockStepsAhead);
  if (what == Wait::kMemory && ahead_ps < run.page->free_until_ps.load())
    run.page->ahead_ps.store(ahead_ps);
  else
    wait(what, next_look(at, what == Wait::kNews ? kQueueSteps : kClockSteps));
  at.count = free_looks - kFreeLooksAgain;
  at.seen_ps = now_ps();
}

}  // namespace

bool is_timed() { return run.clock != nullptr; }
ProcessPage& page() { return *run.page; }
uint64_t now_ps() {
  const uint64_t now = run.clock->now_ps.load(std::memory_order_acquire);
  const uint64_t ahead = run.page->ahead_ps.load(std::memory_order_acquire);
  return ahead > now ? ahead : now;
}
uint64_t realtime_ns() { return kRealtimeBeginNs + now_ps() / kPsInNs; }
uint64_t monotonic_ns() { return kMonotonicBeginNs + now_ps() / kPsInNs; }

uint64_t after_ps(uint64_t duration) {
  const uint64_t now = now_ps();
  return duration > kForEver - now ? kForEver : now + duration;
}

uint64_t duration_ps(const timespec& duration) {
  const auto seconds = static_cast<uint64_t>(duration.tv_sec);
  if (duration.tv_sec < 0) return 0;
  if (seconds > (kForEver / kPsInS) - 1) return kForEver;
  return seconds * kPsInS + static_cast<uint64_t>(duration.tv_nsec) * kPsInNs;
}

uint64_t time_of(const timespec& shown) {
  if (shown.tv_sec < 0) return 0;
  const auto seconds = static_cast<uint64_t>(shown.tv_sec);
  if (seconds > kForEver / kNsInS - 1) return kForEver;
  const uint64_t ns = seconds * kNsInS + static_cast<uint64_t>(shown.tv_nsec);
  // No run lasts for so long that one clock could show what the other does.
  const uint64_t begin_ns = ns >= kRealtimeBeginNs / 2 ? kRealtimeBeginNs : kMonotonicBeginNs;
  const uint64_t since_ns = ns > begin_ns ? ns - begin_ns : 0;
  return since_ns > kForEver / kPsInNs - 1 ? kForEver : since_ns * kPsInNs;
}

bool is_waiting() { return in_wait > 0; }
void note_asked() {
  was_asked = 1;
  has_acted = 0;
}
bool has_acted_since() { return has_acted != 0; }

bool wait(Wait what, uint64_t until_ps, uint64_t loop) {
  const int error = errno;
  ++in_wait;
  was_asked = 0;
  WaitingThread& place = place_of_thread();
  const uint32_t turn = place.turn.load();
  run.page->free_until_ps.store(0);
  place.until_ps.store(until_ps);
  place.loop.store(loop);
  place.wait.store(what);
  ring();
  bool whole = true;
  while (place.wait.load() != Wait::kNone) {
    if (syscall(SYS_futex, &place.turn, FUTEX_WAIT, turn, &kLookAfterRun, nullptr, 0) == 0) continue;
    if (errno == ETIMEDOUT) end_with_run();
    if (errno != EINTR) continue;
    if (was_asked != 0) {
      was_asked = 0;
      continue;
    }
    // Unless the run has ended it meanwhile.
    Wait own = what;
    if (place.wait.compare_exchange_strong(own, Wait::kNone)) whole = false;
  }
  --in_wait;
  errno = error;
  return whole;
}

KernelWait::KernelWait(uint64_t until_ps, const sigset_t* program_mask) {
  const int error = errno;
  sigset_t signal;
  sigemptyset(&signal);
  sigaddset(&signal, kTimeSignal);
  // The kernel's call, of 8 bytes: pthread_sigmask() keeps the signal unblocked for programs.
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, &signal, &before_, sizeof(uint64_t));
  mask_ = program_mask == nullptr ? before_ : *program_mask;
  sigdelset(&mask_, kTimeSignal);
  ++in_wait;
  WaitingThread& place = place_of_thread();
  run.page->free_until_ps.store(0);
  place.until_ps.store(until_ps);
  place.wait.store(Wait::kKernel);
  ring();
  errno = error;
}

KernelWait::~KernelWait() {
  const int error = errno;
  own_place->wait.store(Wait::kNone);
  --in_wait;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof(uint64_t));
  errno = error;
}

bool KernelWait::was_ended() const { return own_place->wait.load() == Wait::kEnded; }

void look(const void* place, Wait what) {
  has_acted = 1;
  Looks& at = looks_at(place);
  note_look(all_looks, false);
  if (at.count > kFreeLooks) {
    wait_for_look(at, what, kFreeLooks);
    all_looks = Looks{};
  } else if (all_looks.count > kFreeLooksInAll) {
    wait_for_look(all_looks, what, kFreeLooksInAll);
  }
}

void keep_looks() {
  for (uint32_t i = 0; i < kPlacesOfLooks; ++i) kept_looks[i] = looks[i];
  kept_looks[kPlacesOfLooks] = all_looks;
}

void restore_looks() {
  for (uint32_t i = 0; i < kPlacesOfLooks; ++i) looks[i] = kept_looks[i];
  all_looks = kept_looks[kPlacesOfLooks];
}

void did_something() {
  has_acted = 1;
  run.page->acts.fetch_add(1, std::memory_order_relaxed);
  for (Looks& each : looks) each = Looks{};
  all_looks = Looks{};
}

void reaches_others() {
  has_acted = 1;
  if (run.page->ahead_ps.load() > run.clock->now_ps.load()) wait(Wait::kTime, now_ps());
  run.page->sent.fetch_add(1, std::memory_order_relaxed);
}

void begins_another() { run.page->begun.fetch_add(1); }

void says_that_it_computes() { place_of_thread().computes.fetch_add(1); }

}  // namespace weft::verbs
