#include "hosts/ip/ip_formats.hpp"

#include <algorithm>
#include <cstring>

#include "packets/byte_order.hpp"
#include "packets/internet_checksum.hpp"

namespace weft::ip {
namespace {

constexpr uint16_t kArpEthernet = 1;
constexpr uint16_t kArpRequest = 1;
constexpr uint16_t kArpAnswer = 2;
constexpr uint16_t kMoreFragmentsOrOffset = 0x3FFF;
constexpr uint16_t kDontFragment = 0x4000;
constexpr MacAddress kNoMac{};

IpAddress ipv4_address(const uint8_t* at) {
  IpAddress address;
  std::memcpy(address.bytes.data(), at, 4);
  return address;
}

IpAddress ipv6_address(const uint8_t* at) {
  IpAddress address;
  std::memcpy(address.bytes.data(), at, 16);
  address.is_ipv6 = true;
  return address;
}

// Of a packet that may be cut behind the header; false if the header is not there or makes no sense.
bool read_header(std::span<const uint8_t> bytes, bool is_ipv6, IpHeader& out, size_t& header_bytes,
                 size_t& total_bytes) {
  if (bytes.size() < ip::header_bytes(is_ipv6)) return false;
  const uint8_t* at = bytes.data();
  if (at[0] >> 4 != (is_ipv6 ? 6 : 4)) return false;
  uint8_t traffic_class = at[1];
  if (is_ipv6) {
    header_bytes = kIpv6Bytes;
    total_bytes = kIpv6Bytes + load_big_endian<uint16_t>(at + 4);
    traffic_class = static_cast<uint8_t>(load_big_endian<uint16_t>(at) >> 4);
    out.protocol = at[6];
    out.hop_limit = at[7];
    out.source = ipv6_address(at + 8);
    out.destination = ipv6_address(at + 24);
  } else {
    header_bytes = size_t{at[0] & 0x0Fu} * 4;
    total_bytes = load_big_endian<uint16_t>(at + 2);
    if (header_bytes < kIpv4Bytes || header_bytes > bytes.size()) return false;
    out.hop_limit = at[8];
    out.protocol = at[9];
    out.source = ipv4_address(at + 12);
    out.destination = ipv4_address(at + 16);
  }
  out.dscp = traffic_class >> 2;
  out.ecn = traffic_class & 3;
  return total_bytes >= header_bytes;
}

}  // namespace

ParseError parse(const Packet& frame, IpPacket& out) {
  const std::span<const uint8_t> bytes = frame.bytes();
  if (bytes.size() < kEthernetBytes) return ParseError::kTruncated;
  const bool is_ipv6 = load_big_endian<uint16_t>(bytes.data() + 12) == roce::kEtherTypeIpv6;
  const std::span<const uint8_t> ip = bytes.subspan(kEthernetBytes);
  if (ip.size() < header_bytes(is_ipv6)) return ParseError::kTruncated;
  size_t header = 0;
  size_t total = 0;
  if (!read_header(ip, is_ipv6, out, header, total)) return ParseError::kBadHeader;
  if (total > frame.frame_bytes() - kEthernetBytes) return ParseError::kTruncated;
  if (!is_ipv6) {
    if (internet_checksum(ip.data(), header) != 0) return ParseError::kBadChecksum;
    if ((load_big_endian<uint16_t>(ip.data() + 6) & kMoreFragmentsOrOffset) != 0)
      return ParseError::kFragment;
  }
  out.ip = ip.first(std::min(total, ip.size()));
  out.payload = out.ip.subspan(header);
  out.payload_bytes = total - header;
  out.received_ps = frame.received_ps;
  return ParseError::kNone;
}

bool parse_quoted(std::span<const uint8_t> bytes, bool is_ipv6, IcmpError& out) {
  size_t header = 0;
  size_t total = 0;
  if (!read_header(bytes, is_ipv6, out.sent, header, total)) return false;
  out.payload = bytes.subspan(header);
  return true;
}

void prepend_header(Packet& packet, const IpHeader& header, uint16_t identification) {
  const bool is_ipv6 = header.destination.is_ipv6;
  const size_t payload_bytes = packet.frame_bytes();
  const auto traffic_class = static_cast<uint8_t>(header.dscp << 2 | header.ecn);
  uint8_t* at = packet.prepend(header_bytes(is_ipv6));
  if (is_ipv6) {
    store_big_endian(at, uint32_t{6} << 28 | uint32_t{traffic_class} << 20);
    store_big_endian(at + 4, static_cast<uint16_t>(payload_bytes));
    at[6] = header.protocol;
    at[7] = header.hop_limit;
    std::memcpy(at + 8, header.source.bytes.data(), 16);
    std::memcpy(at + 24, header.destination.bytes.data(), 16);
    return;
  }
  at[0] = 0x45;
  at[1] = traffic_class;
  store_big_endian(at + 2, static_cast<uint16_t>(kIpv4Bytes + payload_bytes));
  store_big_endian(at + 4, identification);
  store_big_endian(at + 6, kDontFragment);
  at[8] = header.hop_limit;
  at[9] = header.protocol;
  store_big_endian(at + 10, uint16_t{0});
  std::memcpy(at + 12, header.source.bytes.data(), 4);
  std::memcpy(at + 16, header.destination.bytes.data(), 4);
  store_big_endian(at + 10, internet_checksum(at, kIpv4Bytes));
}

void prepend_ethernet(Packet& packet, const MacAddress& destination, const MacAddress& source,
                      uint16_t ether_type) {
  uint8_t* at = packet.prepend(kEthernetBytes);
  std::memcpy(at, destination.data(), 6);
  std::memcpy(at + 6, source.data(), 6);
  store_big_endian(at + 12, ether_type);
}

uint16_t transport_checksum(const IpHeader& header, std::span<const uint8_t> payload, size_t payload_bytes) {
  const size_t address_bytes = header.destination.is_ipv6 ? 16 : 4;
  uint64_t sum = internet_sum(header.source.bytes.data(), address_bytes);
  sum += internet_sum(header.destination.bytes.data(), address_bytes);
  sum += payload_bytes + header.protocol;
  sum += internet_sum(payload.data(), payload.size());
  return fold_internet_sum(sum);
}

bool is_group(const IpAddress& address) {
  if (address.is_ipv6) return address.bytes[0] == 0xFF;
  return (address.bytes[0] & 0xF0) == 0xE0 || std::memcmp(address.bytes.data(), kBroadcastMac.data(), 4) == 0;
}

MacAddress multicast_mac(const IpAddress& group) {
  const auto& bytes = group.bytes;
  if (group.is_ipv6) return {0x33, 0x33, bytes[12], bytes[13], bytes[14], bytes[15]};
  return {0x01, 0x00, 0x5E, static_cast<uint8_t>(bytes[1] & 0x7F), bytes[2], bytes[3]};
}

IpAddress solicited_node(const IpAddress& address) {
  IpAddress group;
  group.is_ipv6 = true;
  group.bytes = {0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xFF};
  std::copy(address.bytes.begin() + 13, address.bytes.end(), group.bytes.begin() + 13);
  return group;
}

std::optional<Arp> parse_arp(std::span<const uint8_t> frame) {
  if (frame.size() < kEthernetBytes + kArpBytes) return std::nullopt;
  const uint8_t* at = frame.data() + kEthernetBytes;
  const auto operation = load_big_endian<uint16_t>(at + 6);
  if (load_big_endian<uint16_t>(at) != kArpEthernet ||
      load_big_endian<uint16_t>(at + 2) != roce::kEtherTypeIpv4 || at[4] != 6 || at[5] != 4 ||
      (operation != kArpRequest && operation != kArpAnswer))
    return std::nullopt;
  Arp arp{.is_request = operation == kArpRequest,
          .sender_mac = {},
          .sender_ip = ipv4_address(at + 14),
          .target_ip = ipv4_address(at + 24)};
  std::memcpy(arp.sender_mac.data(), at + 8, 6);
  return arp;
}

PacketPtr build_arp(PacketPool& pool, const Arp& arp, const MacAddress& target_mac,
                    const MacAddress& destination_mac) {
  PacketPtr packet = pool.allocate(kArpBytes);
  uint8_t* at = packet->data();
  store_big_endian(at, kArpEthernet);
  store_big_endian(at + 2, uint16_t{roce::kEtherTypeIpv4});
  at[4] = 6;
  at[5] = 4;
  store_big_endian(at + 6, arp.is_request ? kArpRequest : kArpAnswer);
  std::memcpy(at + 8, arp.sender_mac.data(), 6);
  std::memcpy(at + 14, arp.sender_ip.bytes.data(), 4);
  std::memcpy(at + 18, (arp.is_request ? kNoMac : target_mac).data(), 6);
  std::memcpy(at + 24, arp.target_ip.bytes.data(), 4);
  prepend_ethernet(*packet, destination_mac, arp.sender_mac, kEtherTypeArp);
  return packet;
}

bool is_meant_for_roce(std::span<const uint8_t> frame) {
  if (frame.size() < kEthernetBytes) return false;
  const auto ether_type = load_big_endian<uint16_t>(frame.data() + 12);
  if (ether_type == roce::kEtherTypeIntShim) return true;
  const bool is_ipv6 = ether_type == roce::kEtherTypeIpv6;
  if (!is_ipv6 && ether_type != roce::kEtherTypeIpv4) return false;
  IpHeader header;
  size_t header_bytes = 0;
  size_t total_bytes = 0;
  const std::span<const uint8_t> ip = frame.subspan(kEthernetBytes);
  if (!read_header(ip, is_ipv6, header, header_bytes, total_bytes) || header.protocol != kProtocolUdp)
    return false;
  return ip.size() >= header_bytes + 4 &&
         load_big_endian<uint16_t>(ip.data() + header_bytes + 2) == roce::kUdpPort;
}

}  // namespace weft::ip
