// /dev/infiniband/rdma_cm for a program with this library in LD_PRELOAD: opening it connects to the host's
// NIC process ($WEFT_VERBS_SOCKET), and what is written there is carried out by it
// (engine/verbs/cm/protocol.hpp). Every other descriptor's calls go straight to the C library.
//
// The descriptor is a socket that is readable while events wait, so that poll(), select() and epoll need no
// help. Nothing has to be done when it is closed: the socket's cookie, which the kernel gives to no other
// one, says whether a number still is the descriptor that it was.

#undef _FORTIFY_SOURCE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

#include "common/next_function.hpp"
#include "common/unix_socket.hpp"
#include "verbs/cm/protocol.hpp"

namespace {

using namespace weft::cm;
using weft::verbs::connect_to;
using weft::verbs::Next;

constexpr char kDevice[] = "/dev/infiniband/rdma_cm";
constexpr int kMostDescriptors = 1 << 16;
#ifdef __x86_64__
constexpr int kStatVersion = 1;  // _STAT_VER of glibc before 2.33
#else
constexpr int kStatVersion = 0;
#endif

using Open = int(const char*, int, ...);
using OpenAt = int(int, const char*, int, ...);
using OpenChecked = int(const char*, int);
using OpenAtChecked = int(int, const char*, int);
using Write = ssize_t(int, const void*, size_t);
using Dup = int(int);
using DupTo = int(int, int);
using DupToWith = int(int, int, int);
using Control = int(int, int, ...);
using Stat = int(int, struct stat*);
using Stat64 = int(int, struct stat64*);
using VersionedStat = int(int, int, struct stat*);
using VersionedStat64 = int(int, int, struct stat64*);

constinit Next<Open> next_open{"open"};
constinit Next<Open> next_open64{"open64"};
constinit Next<OpenAt> next_openat{"openat"};
constinit Next<OpenAt> next_openat64{"openat64"};
constinit Next<OpenChecked> next_open_2{"__open_2"};
constinit Next<OpenChecked> next_open64_2{"__open64_2"};
constinit Next<OpenAtChecked> next_openat_2{"__openat_2"};
constinit Next<OpenAtChecked> next_openat64_2{"__openat64_2"};
constinit Next<Write> next_write{"write"};
constinit Next<Dup> next_dup{"dup"};
constinit Next<DupTo> next_dup2{"dup2"};
constinit Next<DupToWith> next_dup3{"dup3"};
constinit Next<Control> next_fcntl{"fcntl"};
constinit Next<Control> next_fcntl64{"fcntl64"};
constinit Next<Stat> next_fstat{"fstat"};
constinit Next<Stat64> next_fstat64{"fstat64"};
constinit Next<VersionedStat> next_fxstat{"__fxstat"};
constinit Next<VersionedStat64> next_fxstat64{"__fxstat64"};

// A signal handler may call write() at any time, where dlsym() must not be called.
__attribute__((constructor)) void find_functions() {
  next_write.get();
  next_dup.get();
  next_dup2.get();
  next_fcntl.get();
  next_fstat.get();
}

// By descriptor: what it was opened as. A cookie of 0 is no channel's.
struct Channel {
  std::atomic<uint64_t> cookie;
  std::atomic<uint64_t> name;  // the server's, for MIGRATE_ID
};
constinit Channel channels[kMostDescriptors]{};
constinit std::atomic<uint64_t> device_number{0};

uint64_t cookie_of(int descriptor) {
  uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  const int error = errno;
  if (getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &length) != 0) cookie = 0;
  errno = error;
  return cookie;
}

bool may_be_channel(int descriptor) {
  return descriptor >= 0 && descriptor < kMostDescriptors &&
         channels[descriptor].cookie.load(std::memory_order_relaxed) != 0;
}

// Whether the number still is the channel that it was: it may have been closed in any way, and used again.
bool is_channel(int descriptor) {
  return may_be_channel(descriptor) &&
         channels[descriptor].cookie.load(std::memory_order_relaxed) == cookie_of(descriptor);
}

int fail(int error) {
  errno = error;
  return -1;
}

// ---- opening

bool is_device(const char* path) {
  return path != nullptr && strcmp(path, kDevice) == 0 && getenv("WEFT_VERBS_SOCKET") != nullptr;
}

bool greet(int descriptor, uint64_t& name) {
  const Hello hello;
  if (send(descriptor, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) return false;
  HelloAnswer answer;
  ssize_t bytes;
  do {
    bytes = recv(descriptor, &answer, sizeof answer, 0);
  } while (bytes < 0 && errno == EINTR);
  if (bytes != sizeof answer || answer.magic != kHelloMagic || answer.error != 0) return false;
  name = answer.channel;
  return true;
}

int open_channel(int flags) {
  const char* const path = getenv("WEFT_VERBS_SOCKET");
  struct stat device;
  const bool has_device = stat(kDevice, &device) == 0 && S_ISCHR(device.st_mode);
  device_number.store(has_device ? device.st_rdev : makedev(10, 0), std::memory_order_relaxed);

  const int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | ((flags & O_CLOEXEC) != 0 ? SOCK_CLOEXEC : 0), 0);
  if (descriptor < 0) return -1;
  uint64_t name = 0;
  int error = 0;
  if (descriptor >= kMostDescriptors) {
    error = EMFILE;
  } else if (connect_to(descriptor, path) != 0 || !greet(descriptor, name)) {
    error = ENODEV;
  } else if ((flags & O_NONBLOCK) != 0 && next_fcntl.get()(descriptor, F_SETFL, O_NONBLOCK) != 0) {
    error = errno;
  }
  if (error != 0) {
    close(descriptor);
    return fail(error);
  }
  channels[descriptor].name.store(name, std::memory_order_relaxed);
  channels[descriptor].cookie.store(cookie_of(descriptor), std::memory_order_relaxed);
  return descriptor;
}

// ---- commands

struct Answer {
  CommandAnswer head;
  uint8_t bytes[kMostResponseBytes];
};

// Sends a command with a socket for its answer, and waits for that. Returns an errno.
int ask(int descriptor, iovec* parts, size_t count, Answer& answer) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return errno;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(rights), &pair[1], sizeof(int));
  int error = 0;
  while (sendmsg(descriptor, &message, MSG_NOSIGNAL) < 0) {
    error = errno;
    if (error == EAGAIN) {  // the server has many commands to read, and the descriptor does not wait
      pollfd room{descriptor, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (error != EINTR) {
      break;
    }
    error = 0;
  }
  close(pair[1]);  // so that the server's end of this socket is the last one
  if (error == 0) {
    ssize_t bytes;
    do {
      bytes = recv(pair[0], &answer, sizeof answer, 0);
    } while (bytes < 0 && errno == EINTR);
    if (bytes < static_cast<ssize_t>(sizeof answer.head) ||
        static_cast<size_t>(bytes) != sizeof answer.head + answer.head.response_bytes)
      error = ENODEV;
  } else {
    error = ENODEV;  // the server has gone
  }
  close(pair[0]);
  return error;
}

void take_signal(int descriptor) {
  char byte;
  (void)recv(descriptor, &byte, 1, MSG_DONTWAIT);
}

ssize_t carry_out(int descriptor, const void* command, size_t bytes) {
  const auto* const from = static_cast<const uint8_t*>(command);
  rdma_ucm_cmd_hdr header;
  if (bytes < sizeof header || bytes > kMostCommandBytes) return fail(EINVAL);
  memcpy(&header, from, sizeof header);
  const size_t body_bytes = bytes - sizeof header;

  uint64_t response = 0;
  const int at = response_offset(header.cmd);
  if (at >= 0) {
    if (body_bytes < static_cast<size_t>(at) + sizeof response) return fail(EINVAL);
    memcpy(&response, from + sizeof header + at, sizeof response);
  }
  CommandHeader head;
  head.command_bytes = static_cast<uint32_t>(bytes);
  iovec parts[3] = {{&head, sizeof head}, {const_cast<uint8_t*>(from), bytes}, {nullptr, 0}};
  int source = -1;
  if (header.cmd == RDMA_USER_CM_CMD_SET_OPTION) {
    rdma_ucm_set_option option;
    if (body_bytes < sizeof option) return fail(EINVAL);
    memcpy(&option, from + sizeof header, sizeof option);
    if (option.optlen > kMostOptionBytes) return fail(EINVAL);
    head.option_bytes = option.optlen;
    parts[2] = {reinterpret_cast<void*>(option.optval), option.optlen};
  } else if (header.cmd == RDMA_USER_CM_CMD_MIGRATE_ID) {
    rdma_ucm_migrate_id migration;
    if (body_bytes < sizeof migration) return fail(EINVAL);
    memcpy(&migration, from + sizeof header, sizeof migration);
    source = static_cast<int>(migration.fd);
    if (is_channel(source)) head.channel = channels[source].name.load(std::memory_order_relaxed);
  }

  Answer answer;
  while (true) {
    if (const int error = ask(descriptor, parts, 3, answer); error != 0) return fail(error);
    if (answer.head.is_drained != 0) take_signal(descriptor);
    if (answer.head.is_source_drained != 0) take_signal(source);
    if (header.cmd != RDMA_USER_CM_CMD_GET_EVENT || answer.head.error != EAGAIN) break;
    if ((next_fcntl.get()(descriptor, F_GETFL) & O_NONBLOCK) != 0) return fail(EAGAIN);
    // As the device: a signal ends the wait, unless its handler restarts calls.
    char byte;
    const ssize_t waiting = recv(descriptor, &byte, 1, MSG_PEEK);
    if (waiting == 0) return fail(ENODEV);
    if (waiting < 0) return -1;
  }
  if (answer.head.error != 0) return fail(static_cast<int>(answer.head.error));
  const size_t room = header.out;
  const size_t answered = answer.head.response_bytes < room ? answer.head.response_bytes : room;
  if (at >= 0) memcpy(reinterpret_cast<void*>(response), answer.bytes, answered);
  return static_cast<ssize_t>(bytes);
}

// ---- other calls

int duplicated(int from, int to) {
  if (to < 0 || to >= kMostDescriptors || to == from) return to;
  if (!may_be_channel(from) && !may_be_channel(to)) return to;
  const bool is_it = is_channel(from);
  channels[to].name.store(is_it ? channels[from].name.load(std::memory_order_relaxed) : 0,
                          std::memory_order_relaxed);
  channels[to].cookie.store(is_it ? channels[from].cookie.load(std::memory_order_relaxed) : 0,
                            std::memory_order_relaxed);
  return to;
}

template <class Status>
int as_device(int descriptor, int result, Status* status) {
  if (result == 0 && is_channel(descriptor)) {
    status->st_mode = S_IFCHR | 0666;
    status->st_rdev = device_number.load(std::memory_order_relaxed);
  }
  return result;
}

bool has_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

}  // namespace

#define WEFT_OPEN(name)                                          \
  WEFT_EXPORTED int name(const char* path, int flags, ...) {     \
    if (is_device(path)) return open_channel(flags);             \
    if (!has_mode(flags)) return next_##name.get()(path, flags); \
    va_list arguments;                                           \
    va_start(arguments, flags);                                  \
    const mode_t mode = va_arg(arguments, mode_t);               \
    va_end(arguments);                                           \
    return next_##name.get()(path, flags, mode);                 \
  }
WEFT_OPEN(open)
WEFT_OPEN(open64)

#define WEFT_OPENAT(name)                                                \
  WEFT_EXPORTED int name(int folder, const char* path, int flags, ...) { \
    if (is_device(path)) return open_channel(flags);                     \
    if (!has_mode(flags)) return next_##name.get()(folder, path, flags); \
    va_list arguments;                                                   \
    va_start(arguments, flags);                                          \
    const mode_t mode = va_arg(arguments, mode_t);                       \
    va_end(arguments);                                                   \
    return next_##name.get()(folder, path, flags, mode);                 \
  }
WEFT_OPENAT(openat)
WEFT_OPENAT(openat64)

// What the C library's headers make of open() with _FORTIFY_SOURCE.
WEFT_EXPORTED int __open_2(const char* path, int flags) {
  return is_device(path) ? open_channel(flags) : next_open_2.get()(path, flags);
}
WEFT_EXPORTED int __open64_2(const char* path, int flags) {
  return is_device(path) ? open_channel(flags) : next_open64_2.get()(path, flags);
}
WEFT_EXPORTED int __openat_2(int folder, const char* path, int flags) {
  return is_device(path) ? open_channel(flags) : next_openat_2.get()(folder, path, flags);
}
WEFT_EXPORTED int __openat64_2(int folder, const char* path, int flags) {
  return is_device(path) ? open_channel(flags) : next_openat64_2.get()(folder, path, flags);
}

WEFT_EXPORTED ssize_t write(int descriptor, const void* data, size_t bytes) {
  if (may_be_channel(descriptor) && is_channel(descriptor)) return carry_out(descriptor, data, bytes);
  return next_write.get()(descriptor, data, bytes);
}

WEFT_EXPORTED int dup(int descriptor) noexcept { return duplicated(descriptor, next_dup.get()(descriptor)); }
WEFT_EXPORTED int dup2(int descriptor, int to) noexcept {
  return duplicated(descriptor, next_dup2.get()(descriptor, to));
}
WEFT_EXPORTED int dup3(int descriptor, int to, int flags) noexcept {
  return duplicated(descriptor, next_dup3.get()(descriptor, to, flags));
}

// The argument is an int or a pointer; passed on as a pointer it is either.
#define WEFT_FCNTL(name)                                                                               \
  WEFT_EXPORTED int name(int descriptor, int command, ...) {                                           \
    va_list arguments;                                                                                 \
    va_start(arguments, command);                                                                      \
    void* const argument = va_arg(arguments, void*);                                                   \
    va_end(arguments);                                                                                 \
    const int result = next_##name.get()(descriptor, command, argument);                               \
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? duplicated(descriptor, result) : result; \
  }
WEFT_FCNTL(fcntl)
WEFT_FCNTL(fcntl64)

// librdmacm asks whether what it has opened is a character device. C libraries before glibc 2.33 have
// __fxstat() only, and later ones have it for programs that were linked before.
WEFT_EXPORTED int fstat(int descriptor, struct stat* status) noexcept {
  Stat* const next = next_fstat.get();
  return as_device(
      descriptor,
      next != nullptr ? next(descriptor, status) : next_fxstat.get()(kStatVersion, descriptor, status),
      status);
}
WEFT_EXPORTED int fstat64(int descriptor, struct stat64* status) noexcept {
  Stat64* const next = next_fstat64.get();
  return as_device(
      descriptor,
      next != nullptr ? next(descriptor, status) : next_fxstat64.get()(kStatVersion, descriptor, status),
      status);
}
WEFT_EXPORTED int __fxstat(int version, int descriptor, struct stat* status) noexcept {
  return as_device(descriptor, next_fxstat.get()(version, descriptor, status), status);
}
WEFT_EXPORTED int __fxstat64(int version, int descriptor, struct stat64* status) noexcept {
  return as_device(descriptor, next_fxstat64.get()(version, descriptor, status), status);
}
