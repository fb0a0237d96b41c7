#include "verbs/cm/kernel_routes.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "verbs/cm/socket_addresses.hpp"

namespace weft::cm {

Surroundings::Route KernelRoutes::route(const Gid& destination, uint8_t port) const {
  sockaddr_storage to{};
  set_gid(to, destination);
  // Nothing is sent, but a destination needs some port.
  set_port(to, 1);
  const int asking = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
  if (asking < 0) return {errno, 0};
  sockaddr_storage from{};
  socklen_t from_length = sizeof from;
  const bool found = connect(asking, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
                     getsockname(asking, reinterpret_cast<sockaddr*>(&from), &from_length) == 0;
  const int error = errno;
  close(asking);
  if (!found) return {error, 0};
  const Gid source = gid_of(from);
  for (const DevicePort& each : ports_) {
    const bool leads = std::any_of(each.addresses.begin(), each.addresses.end(),
                                   [&](const DeviceAddress& address) { return address.gid == source; });
    if (!leads) continue;
    if (port != 0 && port != each.number) return {EHOSTUNREACH, 0};
    return {0, each.number};
  }
  return {ENETUNREACH, 0};  // by an interface that is no port of the device
}

}  // namespace weft::cm
