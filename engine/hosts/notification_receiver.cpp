#include "hosts/notification_receiver.hpp"

#include <algorithm>
#include <utility>

#include "observe/probe.hpp"
#include "packets/byte_order.hpp"
#include "packets/internet_checksum.hpp"
#include "packets/roce_codec.hpp"

namespace weft {
namespace {

constexpr size_t kEthernetBytes = 14;
constexpr size_t kIpv4Bytes = 20;
constexpr size_t kIpv6Bytes = 40;
constexpr size_t kUdpBytes = 8;
constexpr uint8_t kUdp = 17;

roce::IpAddress address_at(const uint8_t* at, bool is_ipv6) {
  roce::IpAddress address;
  address.is_ipv6 = is_ipv6;
  std::copy_n(at, is_ipv6 ? 16 : 4, address.bytes.begin());
  return address;
}

}  // namespace

std::optional<ReceivedNotification> parse_switch_notification(std::span<const uint8_t> frame) {
  if (frame.size() < kEthernetBytes + kIpv4Bytes) return std::nullopt;
  const auto ethertype = load_big_endian<uint16_t>(frame.data() + 12);
  const uint8_t* const ip = frame.data() + kEthernetBytes;
  const bool is_ipv6 = ethertype == roce::kEtherTypeIpv6;
  const size_t ip_bytes = is_ipv6 ? kIpv6Bytes : kIpv4Bytes;
  if (frame.size() < kEthernetBytes + ip_bytes + kUdpBytes + switch_notification::kHeaderBytes)
    return std::nullopt;
  const bool is_udp = is_ipv6 ? ip[0] >> 4 == 6 && ip[6] == kUdp
                              : ethertype == roce::kEtherTypeIpv4 && ip[0] == 0x45 && ip[9] == kUdp &&
                                    internet_checksum(ip, kIpv4Bytes) == 0;
  const uint8_t* const udp = ip + ip_bytes;
  if (!is_udp || load_big_endian<uint16_t>(udp + 2) != switch_notification::kUdpPort ||
      load_big_endian<uint16_t>(udp + 4) != kUdpBytes + switch_notification::kHeaderBytes)
    return std::nullopt;
  ReceivedNotification found{.source = address_at(ip + (is_ipv6 ? 8 : 12), is_ipv6),
                             .destination = address_at(ip + (is_ipv6 ? 24 : 16), is_ipv6),
                             .header = {}};
  wire::load_header(found.header, udp + kUdpBytes);
  if (found.header.version != switch_notification::kVersion) return std::nullopt;
  return found;
}

NotificationReceiver::NotificationReceiver(Nic& nic) : nic_(nic), next_(nic.non_roce_receiver()) {
  nic.set_non_roce_receiver(this);
}

NotificationReceiver::~NotificationReceiver() { nic_.set_non_roce_receiver(next_); }

void NotificationReceiver::receive_non_roce(int port, PacketPtr packet) {
  const std::optional<ReceivedNotification> found = parse_switch_notification(packet->bytes());
  const TrafficCounter traffic = packet->traffic();
  const std::vector<roce::IpAddress>& own = nic_.port_config(port).addresses;
  if (found && std::ranges::find(own, found->destination) != own.end() &&
      nic_.notify(port, found->source, found->header)) {
    nic_.engine().conservation().leave(PacketEnd::kDelivered, traffic);
    return;
  }
  if (next_ != nullptr) return next_->receive_non_roce(port, std::move(packet));
  const auto reason = static_cast<size_t>(roce::ParseError::kNotRoce);
  nic_.engine().conservation().drop(DropPlace::kNic, kFirstParseErrorDrop + reason, traffic);
}

}  // namespace weft
