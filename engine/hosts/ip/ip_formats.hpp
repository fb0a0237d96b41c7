// Headers of Ethernet, ARP, IPv4, IPv6, ICMP and UDP, read and written for a host's own stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "hosts/ip/ip_packet.hpp"
#include "packets/packet.hpp"

namespace weft::ip {

constexpr size_t kEthernetBytes = 14;
constexpr size_t kIpv4Bytes = 20;
constexpr size_t kIpv6Bytes = 40;
constexpr size_t kIcmpBytes = 8;
constexpr size_t kUdpBytes = 8;
constexpr size_t kArpBytes = 28;

enum class ParseError : uint8_t { kNone, kTruncated, kBadHeader, kBadChecksum, kFragment };

// Reads the IP packet of a frame whose EtherType is IPv4's or IPv6's; the IPv4 header's checksum must be
// right (RFC 1122, 3.2.1.2). Extension headers of IPv6 are not followed: the first one is the protocol.
ParseError parse(const Packet& frame, IpPacket& out);
// The same of the packet that an ICMP error quotes, of which only the beginning may be there.
bool parse_quoted(std::span<const uint8_t> bytes, bool is_ipv6, IcmpError& out);

inline size_t header_bytes(bool is_ipv6) { return is_ipv6 ? kIpv6Bytes : kIpv4Bytes; }

// Puts an IP header before a packet that is its payload.
void prepend_header(Packet& packet, const IpHeader& header, uint16_t identification);
void prepend_ethernet(Packet& packet, const MacAddress& destination, const MacAddress& source,
                      uint16_t ether_type);

// The checksum of UDP, TCP or ICMPv6 over the pseudo header (RFC 768, RFC 8200 8.1) and a payload of
// `payload_bytes`, of which those that cannot be read are zeros: 0 if the payload has a right one, else what
// to write in place of zeros. ICMP over IPv4 has no pseudo header: internet_checksum() is its own.
uint16_t transport_checksum(const IpHeader& header, std::span<const uint8_t> payload, size_t payload_bytes);

// Multicast MAC of an IPv6 group (RFC 2464, 7), and the group that a neighbour listens to (RFC 4291, 2.7.1).
MacAddress multicast_mac(const IpAddress& group);
IpAddress solicited_node(const IpAddress& address);

constexpr MacAddress kBroadcastMac{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
// Whether packets to an address go to several hosts.
bool is_group(const IpAddress& address);

struct Arp {
  bool is_request = false;
  MacAddress sender_mac{};
  IpAddress sender_ip;
  IpAddress target_ip;
};
std::optional<Arp> parse_arp(std::span<const uint8_t> frame);
PacketPtr build_arp(PacketPool& pool, const Arp& arp, const MacAddress& target_mac,
                    const MacAddress& destination_mac);

// Whether a frame would be RoCEv2's if it were well-formed: UDP to port 4791, or the INT shim before IP.
bool is_meant_for_roce(std::span<const uint8_t> frame);

}  // namespace weft::ip
