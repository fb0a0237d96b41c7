// The kernel's list of RDMA devices, hidden: libibverbs asks it first and looks into sysfs only where it is
// not there.

#include <dlfcn.h>
#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>

// As a kernel without ib_core answers (socket(2)); every other socket is the C library's.
extern "C" __attribute__((visibility("default"))) int socket(int domain, int type, int protocol) noexcept {
  if (domain == AF_NETLINK && protocol == NETLINK_RDMA) {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  using Socket = int (*)(int, int, int);
  static const Socket real = reinterpret_cast<Socket>(dlsym(RTLD_NEXT, "socket"));
  return real(domain, type, protocol);
}
