// Descriptors that become readable when something has happened (eventfd(2)).
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace weft {

// Throws std::system_error.
inline int open_event_fd() {
  const int event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (event_fd < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  return event_fd;
}

inline void make_readable(int event_fd) {
  const uint64_t one = 1;
  // Fails only when the counter is full, and then the descriptor is readable as it should be.
  [[maybe_unused]] const ssize_t written = write(event_fd, &one, sizeof one);
}

inline void make_unreadable(int event_fd) {
  uint64_t ignored = 0;
  [[maybe_unused]] const ssize_t got = read(event_fd, &ignored, sizeof ignored);
}

}  // namespace weft
