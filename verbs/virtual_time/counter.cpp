#include "counter.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>

#include "common/next_function.hpp"
#include "instructions.hpp"
#include "run.hpp"

namespace weft::verbs {
namespace {

constexpr greg_t kTrapFlag = 0x100;
constexpr uintptr_t kVdsoBytes = 1 << 14;
// Instructions of a loop, at most, and those before it that a thread may be stopped in.
constexpr uint32_t kMostSteps = 1024;
constexpr uint32_t kMostChanges = 16;
constexpr uint32_t kMostPushed = 64;
constexpr size_t kRegisters = 18;  // the general ones, the instruction's address and the flags

// What a program has asked for, of the signals that are this library's.
struct sigaction programs_fault{};
struct sigaction programs_trap{};
struct sigaction programs_urgent{};
constinit Next<int(int, const struct sigaction*, struct sigaction*)> next_sigaction{"sigaction"};
constinit Next<int(int, const sigset_t*, sigset_t*)> next_sigmask{"pthread_sigmask"};
bool traps_counter = false;
uintptr_t vdso = 0;

struct Pushed {
  const uint64_t* place;
  uint64_t before;  // when the registers were seen
};

// A thread that is followed instruction by instruction, to see whether it only looks at memory: it does, if
// all registers are again what they have been, no instruction since has changed memory, and what calls and
// pushes have written over is there again: a function that saves a register may be all that knows how often a
// loop has gone round. Only another's write can end a loop whose state comes back.
struct Steps {
  bool is_on;
  uint32_t done;
  uint32_t asked_at;     // `done` at the last question
  uint32_t has_changed;  // how many instructions have changed memory
  bool is_same;          // whether none has since the registers were `seen`
  greg_t seen[kRegisters];
  uint32_t pushed_places;
  Pushed pushed[kMostPushed];
};
static thread_local __attribute__((tls_model("initial-exec"))) Steps steps;

greg_t* registers_of(void* context) { return static_cast<ucontext_t*>(context)->uc_mcontext.gregs; }

void copy_registers(greg_t* to, const greg_t* from) {
  memcpy(to, from, kRegisters * sizeof(greg_t));
  to[REG_EFL] &= ~kTrapFlag;
}
static_assert(REG_EFL == kRegisters - 1 && REG_RIP == kRegisters - 2);

uint64_t hash_of(const greg_t* registers) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, a register at a time
  for (size_t i = 0; i < kRegisters; ++i) hash = (hash ^ static_cast<uint64_t>(registers[i])) * 0x100000001b3;
  return hash;
}

// Before an instruction writes on the stack.
void note_push(const greg_t* registers) {
  const auto* place = reinterpret_cast<const uint64_t*>(registers[REG_RSP]) - 1;
  for (uint32_t i = 0; i < steps.pushed_places; ++i)
    if (steps.pushed[i].place == place) return;
  if (steps.pushed_places == kMostPushed) {
    steps.is_same = false;
    return;
  }
  steps.pushed[steps.pushed_places++] = {place, *place};
}

bool is_stack_as_seen() {
  for (uint32_t i = 0; i < steps.pushed_places; ++i)
    if (*steps.pushed[i].place != steps.pushed[i].before) return false;
  return true;
}

void call_programs(const struct sigaction& action, int signal, siginfo_t* facts, void* context) {
  if ((action.sa_flags & SA_SIGINFO) != 0) return action.sa_sigaction(signal, facts, context);
  if (action.sa_handler == SIG_IGN) return;
  if (action.sa_handler != SIG_DFL) return action.sa_handler(signal);
  // It happens again, with nobody to come to.
  struct sigaction ends{};
  ends.sa_handler = SIG_DFL;
  next_sigaction(signal, &ends, nullptr);
}

uint64_t processors_counter() {
  prctl(PR_SET_TSC, PR_TSC_ENABLE);
  const uint64_t value = __builtin_ia32_rdtsc();
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
  return value;
}

// RDTSC is 0F 31, RDTSCP 0F 01 F9 (Intel 64 manual, volume 2B).
size_t counter_instruction(const unsigned char* at) {
  if (at[0] != 0x0F) return 0;
  if (at[1] == 0x31) return 2;
  return at[1] == 0x01 && at[2] == 0xF9 ? 3 : 0;
}

// SYSCALL is 0F 05, SYSENTER 0F 34. A loop with one does not only look; and the C library blocks all signals
// around some, when the signal that follows each instruction would end the process.
bool is_system_call(const unsigned char* at) { return at[0] == 0x0F && (at[1] == 0x05 || at[1] == 0x34); }

void on_fault(int signal, siginfo_t* facts, void* context) {
  greg_t* registers = registers_of(context);
  const auto address = static_cast<uintptr_t>(registers[REG_RIP]);
  // A fault of another kind gives the address that was wrong, which may be the instruction's own.
  const bool is_readable = traps_counter && facts->si_code == SI_KERNEL;
  const size_t length =
      is_readable ? counter_instruction(reinterpret_cast<const unsigned char*>(address)) : 0;
  if (length == 0) return call_programs(programs_fault, signal, facts, context);
  const int error = errno;
  // The C library's own calls of the kernel's clocks: they are of the wall clock.
  const bool is_vdso = address - vdso < kVdsoBytes;
  if (!is_vdso) look(reinterpret_cast<const void*>(address), Wait::kMemory);
  const uint64_t value = is_vdso ? processors_counter() : monotonic_ns();
  registers[REG_RAX] = static_cast<greg_t>(value & 0xFFFF'FFFF);
  registers[REG_RDX] = static_cast<greg_t>(value >> 32);
  if (length == 3) registers[REG_RCX] = 0;
  registers[REG_RIP] += static_cast<greg_t>(length);
  errno = error;
}

void on_trap(int signal, siginfo_t* facts, void* context) {
  greg_t* registers = registers_of(context);
  if (!steps.is_on) return call_programs(programs_trap, signal, facts, context);
  if (!is_timed()) {  // a child of fork() that has not joined yet
    steps.is_on = false;
    registers[REG_EFL] &= ~kTrapFlag;
    return;
  }
  greg_t now[kRegisters];
  copy_registers(now, registers);
  const auto* next = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
  if (is_waiting()) {  // it has answered by itself
    steps.is_on = false;
  } else if (steps.done > 0 && steps.is_same && !has_acted_since() &&
             memcmp(now, steps.seen, sizeof now) == 0 && is_stack_as_seen()) {
    steps.is_on = false;
    wait(Wait::kMemory, kForEver, hash_of(now));
  } else if (has_acted_since() || ++steps.done > kMostSteps || steps.has_changed > kMostChanges ||
             is_system_call(next)) {
    steps.is_on = false;
    says_that_it_computes();
  } else if ((steps.done & (steps.done - 1)) == 0) {
    // At 1, 2, 4 …, so that instructions before the loop are left behind (Brent 1980).
    memcpy(steps.seen, now, sizeof now);
    steps.is_same = true;
    steps.pushed_places = 0;
  }
  const ToMemory does = steps.is_on ? to_memory(next, now) : ToMemory::kKeeps;
  if (does == ToMemory::kPushes) note_push(now);
  if (does == ToMemory::kChanges) {
    steps.is_same = false;
    ++steps.has_changed;
  }
  if (!steps.is_on) registers[REG_EFL] &= ~kTrapFlag;
}

void on_question(int signal, siginfo_t* facts, void* context) {
  // The kernel's, for urgent data.
  if (facts->si_code != SI_TKILL) {
    if (programs_urgent.sa_handler != SIG_DFL) call_programs(programs_urgent, signal, facts, context);
    return;
  }
  note_asked();
  if (is_waiting() || !is_timed()) return;
  // A signal handler of the program's that was followed has returned to what is not.
  const bool is_lost = steps.is_on && steps.done == steps.asked_at;
  steps.asked_at = steps.done;
  if (steps.is_on && !is_lost) return;
  if (is_system_call(reinterpret_cast<const unsigned char*>(registers_of(context)[REG_RIP]))) return;
  steps.is_on = true;
  steps.done = steps.asked_at = steps.has_changed = 0;
  registers_of(context)[REG_EFL] |= kTrapFlag;
}

void handle(int signal, void (*handler)(int, siginfo_t*, void*), struct sigaction* before) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  // A system call that a question interrupts goes on.
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
  // A question is for the program, not for these.
  sigaddset(&action.sa_mask, kTimeSignal);
  next_sigaction(signal, &action, before);
}

[[gnu::constructor(102)]] void begin() {
  if (!is_timed()) return;
  vdso = getauxval(AT_SYSINFO_EHDR);
  handle(SIGSEGV, on_fault, &programs_fault);
  handle(SIGTRAP, on_trap, &programs_trap);
  handle(kTimeSignal, on_question, &programs_urgent);
  // A program that waits for its adapter measures by the counter; others, such as shells, need not.
  if (dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD) != nullptr) trap_counter();
}

struct sigaction* programs_action(int signal) {
  if (!is_timed()) return nullptr;
  switch (signal) {
    case SIGSEGV:
      return &programs_fault;
    case SIGTRAP:
      return &programs_trap;
    case kTimeSignal:
      return &programs_urgent;
    default:
      return nullptr;
  }
}

int set_mask(int how, const sigset_t* set, sigset_t* before) {
  if (!is_timed() || set == nullptr || how == SIG_UNBLOCK) return next_sigmask(how, set, before);
  sigset_t allowed = *set;
  for (const int signal : {SIGSEGV, SIGTRAP, kTimeSignal}) sigdelset(&allowed, signal);
  return next_sigmask(how, &allowed, before);
}

}  // namespace

void trap_counter() {
  traps_counter = true;
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

ProcessorsCounter::ProcessorsCounter() {
  int mode = PR_TSC_ENABLE;
  was_trapped_ = traps_counter && prctl(PR_GET_TSC, &mode) == 0 && mode == PR_TSC_SIGSEGV;
  if (was_trapped_) prctl(PR_SET_TSC, PR_TSC_ENABLE);
}

ProcessorsCounter::~ProcessorsCounter() {
  const int error = errno;
  if (was_trapped_) prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
  errno = error;
}

}  // namespace weft::verbs

using namespace weft::verbs;

WEFT_EXPORTED int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  struct sigaction* programs = programs_action(signal);
  if (programs == nullptr) return next_sigaction(signal, action, before);
  const struct sigaction old = *programs;
  if (action != nullptr) *programs = *action;
  if (before != nullptr) *before = old;
  return 0;
}

WEFT_EXPORTED sighandler_t signal(int number, sighandler_t handler) noexcept {
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // as BSD's, which the C library's is
  if (sigaction(number, &action, &before) != 0) return SIG_ERR;
  return before.sa_handler;
}

WEFT_EXPORTED int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return set_mask(how, set, before);
}

WEFT_EXPORTED int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  const int error = set_mask(how, set, before);
  if (error == 0) return 0;
  errno = error;
  return -1;
}
