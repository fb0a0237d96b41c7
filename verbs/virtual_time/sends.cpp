// Calls by which the kernel may wake another process, and not at once: what goes through a network is on its
// way when the call returns.
#include <errno.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/next_function.hpp"
#include "run.hpp"

using namespace weft::verbs;

namespace {

void note() {
  if (is_timed()) reaches_others();
}

}  // namespace

// A command of librdmacm's is written; one that has no event for a program that does not wait is a look.
static constinit Next<ssize_t(int, const void*, size_t)> next_write{"write"};
WEFT_EXPORTED ssize_t write(int descriptor, const void* data, size_t bytes) {
  if (!is_timed()) return next_write(descriptor, data, bytes);
  keep_looks();
  reaches_others();
  const ssize_t written = next_write(descriptor, data, bytes);
  if (written < 0 && errno == EAGAIN) {
    restore_looks();
    look(__builtin_return_address(0), Wait::kMemory);
  }
  return written;
}

#define WEFT_SENDS(result, name, parameters, arguments)        \
  static constinit Next<result parameters> next_##name{#name}; \
  WEFT_EXPORTED result name parameters {                       \
    note();                                                    \
    return next_##name arguments;                              \
  }

WEFT_SENDS(ssize_t, writev, (int descriptor, const iovec* parts, int count), (descriptor, parts, count))
WEFT_SENDS(ssize_t, send, (int descriptor, const void* data, size_t bytes, int flags),
           (descriptor, data, bytes, flags))
WEFT_SENDS(ssize_t, sendto,
           (int descriptor, const void* data, size_t bytes, int flags, const sockaddr* to, socklen_t length),
           (descriptor, data, bytes, flags, to, length))
WEFT_SENDS(ssize_t, sendmsg, (int descriptor, const msghdr* message, int flags), (descriptor, message, flags))
WEFT_SENDS(int, sendmmsg, (int descriptor, mmsghdr* messages, unsigned count, int flags),
           (descriptor, messages, count, flags))
WEFT_SENDS(ssize_t, sendfile, (int to, int from, off_t* offset, size_t bytes), (to, from, offset, bytes))
WEFT_SENDS(int, connect, (int descriptor, const sockaddr* to, socklen_t length), (descriptor, to, length))
WEFT_SENDS(int, shutdown, (int descriptor, int how), (descriptor, how))
WEFT_SENDS(int, close, (int descriptor), (descriptor))
