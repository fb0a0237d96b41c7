#include "verbs/cm/kernel_routes.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace weft::cm {
namespace {

constexpr uint16_t kRocePort = 4791;
constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

bool is_ipv4(const Gid& gid) { return std::equal(kMapped.begin(), kMapped.end(), gid.begin()); }

sockaddr_storage address_of(const Gid& gid, socklen_t& length) {
  sockaddr_storage storage{};
  if (is_ipv4(gid)) {
    auto& address = reinterpret_cast<sockaddr_in&>(storage);
    address.sin_family = AF_INET;
    address.sin_port = htons(kRocePort);
    std::memcpy(&address.sin_addr, gid.data() + kMapped.size(), sizeof address.sin_addr);
    length = sizeof address;
  } else {
    auto& address = reinterpret_cast<sockaddr_in6&>(storage);
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(kRocePort);
    std::memcpy(&address.sin6_addr, gid.data(), sizeof address.sin6_addr);
    length = sizeof address;
  }
  return storage;
}

Gid gid_of(const sockaddr_storage& storage) {
  Gid gid{};
  if (storage.ss_family == AF_INET) {
    std::copy(kMapped.begin(), kMapped.end(), gid.begin());
    std::memcpy(gid.data() + kMapped.size(), &reinterpret_cast<const sockaddr_in&>(storage).sin_addr, 4);
  } else {
    std::memcpy(gid.data(), &reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr, gid.size());
  }
  return gid;
}

}  // namespace

Surroundings::Route KernelRoutes::route(const Gid& destination, uint8_t port) const {
  socklen_t length = 0;
  const sockaddr_storage to = address_of(destination, length);
  const int asking = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
  if (asking < 0) return {errno, 0};
  sockaddr_storage from{};
  socklen_t from_length = sizeof from;
  const bool found = connect(asking, reinterpret_cast<const sockaddr*>(&to), length) == 0 &&
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
