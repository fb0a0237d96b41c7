#include "links/interface_drops.hpp"

#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>
#include <utility>

namespace weft {

namespace {

// Long enough for a busy kernel; an answer is made while the request is sent.
constexpr timeval kPatience{.tv_sec = 1, .tv_usec = 0};
constexpr size_t kAnswerBytes = 32 * 1024;

struct Request {
  nlmsghdr header;
  ifinfomsg interface;
};

std::pair<dev_t, ino_t> this_namespace() {
  struct stat status{};
  if (stat("/proc/thread-self/ns/net", &status) != 0)
    throw std::system_error(errno, std::generic_category(), "/proc/thread-self/ns/net");
  return {status.st_dev, status.st_ino};
}

uint64_t dropped_of(const nlmsghdr& message) {
  const auto* interface = static_cast<const ifinfomsg*>(NLMSG_DATA(&message));
  int left = static_cast<int>(message.nlmsg_len - NLMSG_LENGTH(sizeof *interface));
  for (const rtattr* attribute = IFLA_RTA(interface); RTA_OK(attribute, left);
       attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type != IFLA_STATS64) continue;
    rtnl_link_stats64 statistics{};
    std::memcpy(&statistics, RTA_DATA(attribute), std::min(sizeof statistics, RTA_PAYLOAD(attribute)));
    return statistics.tx_dropped;
  }
  return 0;
}

}  // namespace

std::shared_ptr<InterfaceDrops> InterfaceDrops::of_this_namespace() {
  static std::mutex mutex;
  static std::map<std::pair<dev_t, ino_t>, std::weak_ptr<InterfaceDrops>> known;
  const std::lock_guard lock(mutex);
  const auto key = this_namespace();
  // A namespace that is gone may have left its number to another one, but then nobody holds its object.
  if (std::shared_ptr<InterfaceDrops> found = known[key].lock()) return found;
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "socket(AF_NETLINK)");
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  auto made = std::make_shared<InterfaceDrops>(fd);
  known[key] = made;
  return made;
}

InterfaceDrops::~InterfaceDrops() { ::close(fd_); }

uint64_t InterfaceDrops::of(int interface_index) {
  const std::lock_guard lock(mutex_);
  Request request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_GETLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.header.nlmsg_seq = ++sequence_;
  request.interface.ifi_index = interface_index;
  if (send(fd_, &request, sizeof request, 0) < 0) return 0;
  alignas(nlmsghdr) std::array<char, kAnswerBytes> answer;
  while (true) {
    const ssize_t received = recv(fd_, answer.data(), answer.size(), 0);
    if (received < 0) {
      if (errno == EINTR) continue;
      return 0;
    }
    const auto* message = reinterpret_cast<const nlmsghdr*>(answer.data());
    // An answer to a request before this one, which had waited in vain, is passed over.
    if (!NLMSG_OK(message, static_cast<size_t>(received)) || message->nlmsg_seq != sequence_) continue;
    return message->nlmsg_type == RTM_NEWLINK ? dropped_of(*message) : 0;
  }
}

}  // namespace weft
