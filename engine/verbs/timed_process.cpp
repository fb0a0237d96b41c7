#include "verbs/timed_process.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <stdexcept>
#include <string>
#include <system_error>

#include "time/event_fd.hpp"

namespace weft::verbs {
namespace {

void signal_thread(int process, int thread) {
  // Of that process: an identifier that a process has written into its page cannot name another's thread.
  syscall(SYS_tgkill, process, thread, kTimeSignal);
}

}  // namespace

VirtualClockPage::VirtualClockPage() : memory_(sizeof(ClockPage), SharedMemory::Others::kRead) {
  const std::string own = "/proc/self/fd/" + std::to_string(memory_.descriptor());
  read_only_ = open(own.c_str(), O_RDONLY | O_CLOEXEC);
  if (read_only_ < 0) throw std::system_error(errno, std::generic_category(), own);
}

VirtualClockPage::~VirtualClockPage() { close(read_only_); }

TimedProcess::TimedProcess(int process) : process_(process), memory_(sizeof(ProcessPage)) {
  doorbell_ = open_event_fd();
}

TimedProcess::~TimedProcess() { close(doorbell_); }

void TimedProcess::take_rings() const { make_unreadable(doorbell_); }

void TimedProcess::pass_alarm() {
  const uint64_t interval_ps = page().alarm_interval_ps.load();
  uint64_t due_ps = page().alarm_ps.load();
  // The process may set another at any time; that one stays.
  page().alarm_ps.compare_exchange_strong(due_ps, interval_ps == 0 ? 0 : due_ps + interval_ps);
}

std::vector<TimedProcess::Waiting> TimedProcess::waiting() const {
  std::vector<Waiting> found;
  for (uint32_t place = 0; place < kMaxWaitingThreads; ++place) {
    const WaitingThread& each = page().threads[place];
    const int32_t thread = each.thread.load();
    if (thread == 0 && each.turn.load() == 0) break;  // the first that nobody has ever used
    const Wait wait = each.wait.load();
    if (thread == 0 || wait == Wait::kNone || wait > Wait::kEnded) continue;
    found.push_back({place, thread, wait, each.until_ps.load(), each.loop.load()});
  }
  return found;
}

void TimedProcess::wake(uint32_t place) {
  if (place >= kMaxWaitingThreads) throw std::out_of_range("place " + std::to_string(place));
  WaitingThread& each = page().threads[place];
  Wait wait = each.wait.load();
  if (wait == Wait::kKernel) {
    // Unless the kernel has ended it meanwhile.
    if (each.wait.compare_exchange_strong(wait, Wait::kEnded)) signal_thread(process_, each.thread.load());
    return;
  }
  if (wait == Wait::kEnded || each.wait.exchange(Wait::kNone) == Wait::kNone) return;
  each.turn.fetch_add(1);
  syscall(SYS_futex, &each.turn, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool TimedProcess::ask(int32_t thread) const {
  return syscall(SYS_tgkill, process_, thread, kTimeSignal) == 0;
}

uint32_t TimedProcess::computes(int32_t thread) const {
  for (const WaitingThread& each : page().threads)
    if (each.thread.load() == thread) return each.computes.load();
  return 0;
}

}  // namespace weft::verbs
