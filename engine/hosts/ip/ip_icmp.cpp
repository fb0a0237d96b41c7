// ICMP and ICMPv6 of a host's IP stack: echo, errors, neighbour discovery.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "hosts/ip/ip_formats.hpp"
#include "hosts/ip/ip_interface.hpp"
#include "packets/byte_order.hpp"
#include "packets/internet_checksum.hpp"

namespace weft {

namespace {

// Types of ICMP and ICMPv6.
struct IcmpTypes {
  uint8_t echo_request, echo_reply, unreachable, port_unreachable_code, time_exceeded;
};
constexpr IcmpTypes kIcmpv4Types{8, 0, 3, 3, 11};
constexpr IcmpTypes kIcmpv6Types{128, 129, 1, 4, 3};
const IcmpTypes& types_of(bool is_ipv6) { return is_ipv6 ? kIcmpv6Types : kIcmpv4Types; }

// What of the packet an error quotes: all that leaves the error below 576 bytes (RFC 1812, 4.3.2.3).
constexpr size_t kMostQuotedBytes = 512;

// What of a packet says who has sent it; it has no Ethernet header yet.
bool parse_waiting(const Packet& packet, IcmpError& out) {
  const std::span<const uint8_t> bytes = packet.bytes();
  return !bytes.empty() && ip::parse_quoted(bytes, bytes[0] >> 4 == 6, out);
}

}  // namespace

bool IpStack::send_icmp(IpHeader header, uint8_t type, uint8_t code, uint32_t rest, PacketPtr payload) {
  const bool is_ipv6 = header.destination.is_ipv6;
  header.protocol = is_ipv6 ? kProtocolIcmpv6 : kProtocolIcmp;
  if (!set_source(header)) return false;
  uint8_t* at = payload->prepend(ip::kIcmpBytes);
  at[0] = type;
  at[1] = code;
  store_big_endian(at + 2, uint16_t{0});
  store_big_endian(at + 4, rest);
  const uint16_t checksum = is_ipv6 ? ip::transport_checksum(header, payload->bytes(), payload->frame_bytes())
                                    : internet_checksum(payload->data(), payload->size());
  store_big_endian(at + 2, checksum);
  return send(header, std::move(payload));
}

IpStack::Outcome IpStack::take_icmp(Interface& interface, const IpPacket& packet) {
  if (packet.payload.size() < ip::kIcmpBytes) return Outcome::kMalformed;
  const bool is_ipv6 = packet.destination.is_ipv6;
  const uint16_t checksum = is_ipv6 ? ip::transport_checksum(packet, packet.payload, packet.payload_bytes)
                                    : internet_checksum(packet.payload.data(), packet.payload.size());
  if (checksum != 0) return Outcome::kBadChecksum;
  const IcmpTypes& types = types_of(is_ipv6);
  const uint8_t type = packet.payload[0];
  if (is_ipv6 && (type == 135 || type == 136)) return take_neighbour_message(interface, packet);
  if (type == types.echo_request) {
    if (!packet.is_group) answer_echo(packet);
    return Outcome::kTaken;
  }
  if (type == types.echo_reply) {
    const auto found = echo_.find(load_big_endian<uint16_t>(packet.payload.data() + 4));
    if (found == echo_.end()) return Outcome::kUnknown;
    found->second->on_echo_reply(engine_.now(), packet, load_big_endian<uint16_t>(packet.payload.data() + 6));
    return Outcome::kTaken;
  }
  if (type != types.unreachable && type != types.time_exceeded) return Outcome::kUnknown;
  IcmpError error;
  error.reporter = packet.source;
  error.type = type;
  error.code = packet.payload[1];
  error.is_time_exceeded = type == types.time_exceeded;
  error.is_port_unreachable = type == types.unreachable && error.code == types.port_unreachable_code;
  return take_error(packet, error);
}

IpStack::Outcome IpStack::take_error(const IpPacket& packet, IcmpError error) {
  const bool is_ipv6 = packet.destination.is_ipv6;
  if (!ip::parse_quoted(packet.payload.subspan(ip::kIcmpBytes), is_ipv6, error)) return Outcome::kMalformed;
  // About a packet that this host has not sent, so it is forged or has gone astray.
  const bool is_ours = std::any_of(interfaces_.begin(), interfaces_.end(), [&](const auto& each) {
    return each != nullptr && each->owns(error.sent.source);
  });
  return is_ours ? deliver_error(error) : Outcome::kForeign;
}

IpStack::Outcome IpStack::deliver_error(const IcmpError& error) {
  const bool is_ipv6 = error.sent.destination.is_ipv6;
  const std::span<const uint8_t> quoted = error.payload;
  if (error.sent.protocol == kProtocolUdp && quoted.size() >= ip::kUdpBytes) {
    const auto found = udp_.find(load_big_endian<uint16_t>(quoted.data()));
    if (found == udp_.end()) return Outcome::kUnknown;
    found->second->on_error(engine_.now(), error);
    return Outcome::kTaken;
  }
  if (error.sent.protocol == (is_ipv6 ? kProtocolIcmpv6 : kProtocolIcmp) && quoted.size() >= ip::kIcmpBytes) {
    // An answer of this host's has the identifier of whoever asked, which may be one of its own, too.
    if (quoted[0] != types_of(is_ipv6).echo_request) return Outcome::kUnknown;
    const auto found = echo_.find(load_big_endian<uint16_t>(quoted.data() + 4));
    if (found == echo_.end()) return Outcome::kUnknown;
    found->second->on_error(engine_.now(), error, load_big_endian<uint16_t>(quoted.data() + 6));
    return Outcome::kTaken;
  }
  const auto found = protocols_.find(error.sent.protocol);
  if (found == protocols_.end()) return Outcome::kUnknown;
  found->second->on_error(engine_.now(), error);
  return Outcome::kTaken;
}

// As a kernel does, the host tells its own sender that the destination is unreachable, without a packet (RFC
// 1122, 2.3.2.1; RFC 4861, 7.2.2).
void IpStack::give_up(const Packet& packet) {
  counters_.unresolved.add(packet.traffic());
  IcmpError error;
  if (!parse_waiting(packet, error)) return;
  const bool is_ipv6 = error.sent.destination.is_ipv6;
  error.reporter = error.sent.source;
  error.type = types_of(is_ipv6).unreachable;
  error.code = is_ipv6 ? 3 : 1;  // the address, the host
  error.is_unsent = true;
  deliver_error(error);
}

void IpStack::withdraw(const std::function<bool(const IcmpError&)>& is_meant) {
  for (const auto& interface : interfaces_) {
    if (interface == nullptr) continue;
    interface->neighbours.withdraw([&](const Packet& packet) {
      IcmpError error;
      return parse_waiting(packet, error) && is_meant(error);
    });
  }
}

void IpStack::withdraw_udp(uint16_t port) {
  withdraw([port](const IcmpError& error) {
    return error.sent.protocol == kProtocolUdp && error.payload.size() >= ip::kUdpBytes &&
           load_big_endian<uint16_t>(error.payload.data()) == port;
  });
}

void IpStack::withdraw_echo(uint16_t identifier) {
  withdraw([identifier](const IcmpError& error) {
    const bool is_ipv6 = error.sent.destination.is_ipv6;
    return error.sent.protocol == (is_ipv6 ? kProtocolIcmpv6 : kProtocolIcmp) &&
           error.payload.size() >= ip::kIcmpBytes && error.payload[0] == types_of(is_ipv6).echo_request &&
           load_big_endian<uint16_t>(error.payload.data() + 4) == identifier;
  });
}

void IpStack::answer_echo(const IpPacket& packet) {
  const bool is_ipv6 = packet.destination.is_ipv6;
  PacketPtr reply = packets().copy_of(packet.payload.subspan(ip::kIcmpBytes));
  reply->append_virtual(packet.payload_bytes - packet.payload.size());
  IpHeader header;
  header.source = packet.destination;
  header.destination = packet.source;
  header.dscp = packet.dscp;
  const auto rest = load_big_endian<uint32_t>(packet.payload.data() + 4);
  if (send_icmp(header, types_of(is_ipv6).echo_reply, 0, rest, std::move(reply))) ++counters_.echoes_answered;
}

void IpStack::send_port_unreachable(const IpPacket& packet) {
  const IcmpTypes& types = types_of(packet.destination.is_ipv6);
  PacketPtr quoted = packets().copy_of(packet.ip.first(std::min(packet.ip.size(), kMostQuotedBytes)));
  IpHeader header;
  header.source = packet.destination;
  header.destination = packet.source;
  if (send_icmp(header, types.unreachable, types.port_unreachable_code, 0, std::move(quoted)))
    ++counters_.errors_sent;
}

// Solicitations and advertisements (RFC 4861, 7.1, 7.2): their hop limit shows that they come from the link.
IpStack::Outcome IpStack::take_neighbour_message(Interface& interface, const IpPacket& packet) {
  const uint8_t* at = packet.payload.data();
  if (packet.payload.size() < 24 || packet.hop_limit != 255) return Outcome::kMalformed;
  const bool is_solicitation = at[0] == 135;
  IpAddress target;
  target.is_ipv6 = true;
  std::memcpy(target.bytes.data(), at + 8, 16);
  std::optional<MacAddress> mac;
  for (std::span<const uint8_t> options = packet.payload.subspan(24); options.size() >= 8;) {
    const size_t length = size_t{options[1]} * 8;
    if (length == 0 || length > options.size()) return Outcome::kMalformed;
    if (options[0] == (is_solicitation ? 1 : 2)) {
      mac.emplace();
      std::memcpy(mac->data(), options.data() + 2, 6);
    }
    options = options.subspan(length);
  }
  if (!is_solicitation) {
    if (!mac) return Outcome::kTaken;
    if (!interface.believes(target, *mac)) return Outcome::kMalformed;
    interface.neighbours.learn(target, *mac, false);
    return Outcome::kTaken;
  }
  if (!interface.owns(target)) return Outcome::kForeign;
  if (is_unset(packet.source) || !mac) return Outcome::kTaken;
  if (!interface.believes(packet.source, *mac)) return Outcome::kMalformed;
  interface.neighbours.learn(packet.source, *mac, true);
  constexpr uint32_t kSolicitedAndOverride = 0x60000000;
  interface.send_icmpv6(packet.source, *mac, target, 136, kSolicitedAndOverride, 2);
  return Outcome::kTaken;
}

uint16_t IpStack::bind_echo(EchoReceiver& receiver) {
  uint32_t identifier = least_free_echo_;
  while (identifier < 65536 && echo_.contains(static_cast<uint16_t>(identifier))) ++identifier;
  if (identifier == 65536) throw std::invalid_argument("host '" + name() + "' has no echo identifier left");
  echo_.emplace(static_cast<uint16_t>(identifier), &receiver);
  least_free_echo_ = identifier + 1;
  return static_cast<uint16_t>(identifier);
}

void IpStack::release_echo(uint16_t identifier) {
  if (echo_.erase(identifier) != 0) least_free_echo_ = std::min<uint32_t>(least_free_echo_, identifier);
}

bool IpStack::send_echo(IpHeader header, uint16_t identifier, uint16_t sequence, PacketPtr payload) {
  const uint8_t type = types_of(header.destination.is_ipv6).echo_request;
  return send_icmp(header, type, 0, uint32_t{identifier} << 16 | sequence, std::move(payload));
}

}  // namespace weft
