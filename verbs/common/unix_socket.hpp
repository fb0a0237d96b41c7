// Connecting to a Unix socket by its path, of any length.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

namespace weft::verbs {

// Result: 0 or an errno. sun_path has room for 107 bytes (unix(7)), and a user's directories may be longer:
// the path is then written by an open descriptor of its directory. System calls are made directly, because
// preloaded libraries replace the functions.
inline int connect_to(int socket, const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  int directory = -1;
  if (strlen(path) < sizeof address.sun_path) {
    strcpy(address.sun_path, path);
  } else {
    const char* const slash = strrchr(path, '/');
    char parent[4096];  // PATH_MAX
    const size_t length = slash == nullptr ? 0 : static_cast<size_t>(slash - path);
    if (length == 0 || length >= sizeof parent) return ENAMETOOLONG;
    memcpy(parent, path, length);
    parent[length] = 0;
    directory = static_cast<int>(syscall(SYS_openat, AT_FDCWD, parent, O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
    if (directory < 0) return errno;
    const int written =
        snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d%s", directory, slash);
    if (written < 0 || static_cast<size_t>(written) >= sizeof address.sun_path) {
      syscall(SYS_close, directory);
      return ENAMETOOLONG;
    }
  }
  const int error = syscall(SYS_connect, socket, &address, sizeof address) == 0 ? 0 : errno;
  if (directory >= 0) syscall(SYS_close, directory);
  return error;
}

}  // namespace weft::verbs
