#include "links/bound_socket.hpp"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace weft {

namespace {

constexpr int kSendBufferBytes = 8 * 1024 * 1024;

void set_option(int fd, int level, int name, int value, const char* what) {
  if (setsockopt(fd, level, name, &value, sizeof value) != 0)
    throw std::system_error(errno, std::generic_category(), what);
}

int query_mtu(int fd, const std::string& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  if (ioctl(fd, SIOCGIFMTU, &request) != 0)
    throw std::system_error(errno, std::generic_category(), "SIOCGIFMTU");
  return request.ifr_mtu;
}

}  // namespace

BoundSocket::BoundSocket(const PacketSocketConfig& config) {
  if (config.interface.empty() || config.interface.size() >= IFNAMSIZ)
    throw std::invalid_argument("interface name '" + config.interface + "' (1 to 15 characters)");
  if (config.ring_bytes == 0 || config.ring_bytes > (1ull << 31))
    throw std::invalid_argument("ring_bytes is " + std::to_string(config.ring_bytes) + " (1 to 2^31)");
  try {
    open(config);
  } catch (const std::system_error& error) {
    release();
    std::string doing = error.what();  // the code's message is at its end, and would be there twice
    const std::string ending = ": " + error.code().message();
    if (doing.ends_with(ending)) doing.resize(doing.size() - ending.size());
    throw std::system_error(error.code(), "packet socket on interface '" + config.interface + "': " + doing);
  }
}

BoundSocket::~BoundSocket() { release(); }

void BoundSocket::open(const PacketSocketConfig& config) {
  // Protocol 0: nothing arrives before everything is set up and bind() names the interface.
  fd_ = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "socket(AF_PACKET)");
  interface_index_ = static_cast<int>(if_nametoindex(config.interface.c_str()));
  if (interface_index_ == 0) throw std::system_error(errno, std::generic_category(), "no such interface");
  mtu_bytes_ = query_mtu(fd_, config.interface);
  drops_ = InterfaceDrops::of_this_namespace();
  ring_ = std::make_unique<PacketRing>(fd_, static_cast<size_t>(mtu_bytes_) + ETHER_HDR_LEN + kVlanTagBytes,
                                       config.ring_bytes);
  set_option(fd_, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING");
  // Not PACKET_QDISC_BYPASS: what is sent past the queueing layer is seen by no sniffer on this interface,
  // and a veth pair has no queue to save anyway. A larger send buffer needs privileges that a socket does
  // not; without, the system's limit stays.
  setsockopt(fd_, SOL_SOCKET, SO_SNDBUFFORCE, &kSendBufferBytes, sizeof kSendBufferBytes);
  if (config.promiscuous) {
    packet_mreq membership{};
    membership.mr_ifindex = interface_index_;
    membership.mr_type = PACKET_MR_PROMISC;
    if (setsockopt(fd_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof membership) != 0)
      throw std::system_error(errno, std::generic_category(), "PACKET_MR_PROMISC");
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = interface_index_;
  if (bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::system_error(errno, std::generic_category(), "bind");
}

void BoundSocket::release() {
  ring_.reset();
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace weft
