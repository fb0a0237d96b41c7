#include "hosts/ip/ip_interface.hpp"

#include <cstring>
#include <utility>

#include "hosts/ip/ip_formats.hpp"
#include "packets/byte_order.hpp"

namespace weft {

// Somebody who claims to be this host, or a group, is a liar, or has been configured wrongly.
bool IpStack::Interface::believes(const IpAddress& address, const MacAddress& mac) {
  if (!owns(address) && !ip::is_group(address) && (mac[0] & 1) == 0) return true;
  ++stack.counters_.neighbours_refused;
  return false;
}

void IpStack::Interface::send_to(const MacAddress& mac, PacketPtr packet, bool is_ipv6) {
  ip::prepend_ethernet(*packet, mac, nic_port.mac, is_ipv6 ? roce::kEtherTypeIpv6 : roce::kEtherTypeIpv4);
  stack.queue(*this, std::move(packet), data_class_of(*packet));
}

void IpStack::Interface::ask_for(const IpAddress& address) {
  const IpAddress* own = own_address(address.is_ipv6);
  if (own == nullptr) return;
  if (address.is_ipv6) {
    const IpAddress group = ip::solicited_node(address);
    send_icmpv6(group, ip::multicast_mac(group), address, 135, 0, 1);
    return;
  }
  const ip::Arp request{
      .is_request = true, .sender_mac = nic_port.mac, .sender_ip = *own, .target_ip = address};
  stack.queue(*this, ip::build_arp(stack.packets(), request, MacAddress{}, ip::kBroadcastMac),
              kNeighbourClass);
}

// A solicitation (135) or an advertisement (136) of `target`, with the link-layer address in an option (RFC
// 4861, 4.3, 4.4, 4.6.1).
bool IpStack::Interface::send_icmpv6(const IpAddress& destination, const MacAddress& mac,
                                     const IpAddress& target, uint8_t type, uint32_t flags, uint8_t option) {
  constexpr size_t kBytes = 8 + 16 + 8;
  PacketPtr packet = stack.allocate(kBytes);
  uint8_t* at = packet->data();
  std::memset(at, 0, kBytes);
  at[0] = type;
  store_big_endian(at + 4, flags);
  std::memcpy(at + 8, target.bytes.data(), 16);
  at[24] = option;
  at[25] = 1;
  std::memcpy(at + 26, nic_port.mac.data(), 6);
  IpHeader header;
  header.source = *own_address(true);
  header.destination = destination;
  header.protocol = kProtocolIcmpv6;
  header.hop_limit = 255;
  store_big_endian(at + 2, ip::transport_checksum(header, packet->bytes(), kBytes));
  ip::prepend_header(*packet, header, 0);
  ip::prepend_ethernet(*packet, mac, nic_port.mac, roce::kEtherTypeIpv6);
  return stack.queue(*this, std::move(packet), kNeighbourClass);
}

}  // namespace weft
