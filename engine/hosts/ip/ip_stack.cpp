#include "hosts/ip/ip_stack.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "hosts/ip/ip_formats.hpp"
#include "packets/byte_order.hpp"
#include "packets/frame_dscp.hpp"
#include "packets/internet_checksum.hpp"

namespace weft {
namespace {

constexpr MacAddress kBroadcast{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
constexpr MacAddress kNoMac{};

// As network cards do that trust DSCPs: the upper three bits are the class.
int class_of(uint8_t dscp) { return std::min(dscp >> 3, roce::kDataClasses - 1); }

bool has_prefix(const IpAddress& address, const IpRoute& route) {
  if (address.is_ipv6 != route.prefix.is_ipv6) return false;
  const auto whole = static_cast<size_t>(route.prefix_bits / 8);
  if (std::memcmp(address.bytes.data(), route.prefix.bytes.data(), whole) != 0) return false;
  const int rest = route.prefix_bits % 8;
  return rest == 0 || (address.bytes[whole] ^ route.prefix.bytes[whole]) >> (8 - rest) == 0;
}

bool is_group_address(const IpAddress& address) {
  if (address.is_ipv6) return address.bytes[0] == 0xFF;
  return (address.bytes[0] & 0xF0) == 0xE0 || std::memcmp(address.bytes.data(), kBroadcast.data(), 4) == 0;
}

}  // namespace

struct IpStack::Interface final : Neighbours::Owner {
  Interface(IpStack& stack_, int number_, const IpInterfaceConfig& config_)
      : stack(stack_),
        number(number_),
        config(config_),
        nic_port(stack.nic_.port_config(number_)),
        neighbours(stack.engine_, *this) {}

  const IpAddress* own_address(bool is_ipv6) const {
    for (const IpAddress& address : nic_port.addresses)
      if (address.is_ipv6 == is_ipv6) return &address;
    return nullptr;
  }
  bool owns(const IpAddress& address) const {
    return std::find(nic_port.addresses.begin(), nic_port.addresses.end(), address) !=
           nic_port.addresses.end();
  }
  bool hears(const MacAddress& mac) const { return mac == nic_port.mac || (mac[0] & 1) != 0; }

  void ask_for(const IpAddress& address) override;
  void send_to(const MacAddress& mac, PacketPtr packet, bool is_ipv6) override;
  void give_up(PacketPtr /*packet*/) override { ++stack.counters_.unresolved_packets; }
  bool send_icmpv6(const IpAddress& destination, const MacAddress& mac, const IpAddress& target, uint8_t type,
                   uint32_t flags, uint8_t option);

  IpStack& stack;
  const int number;
  const IpInterfaceConfig config;
  const NicPortConfig& nic_port;
  Neighbours neighbours;
  std::map<int, std::unique_ptr<FrameQueue>> queues;  // by class
};

IpStack::IpStack(Nic& nic) : engine_(nic.engine()), nic_(nic) { nic.set_non_roce_receiver(this); }

IpStack::~IpStack() { nic_.set_non_roce_receiver(nullptr); }

void IpStack::add_interface(int port, const IpInterfaceConfig& config) {
  nic_.port_config(port);  // throws if there is none
  const auto number = static_cast<size_t>(port);
  if (interfaces_.size() <= number) interfaces_.resize(number + 1);
  if (interfaces_[number] != nullptr)
    throw std::invalid_argument("host '" + name() + "': port " + std::to_string(port) +
                                " is an interface already");
  interfaces_[number] = std::make_unique<Interface>(*this, port, config);
}

IpStack::Interface& IpStack::interface_at(int number) {
  if (number < 0 || static_cast<size_t>(number) >= interfaces_.size() ||
      interfaces_[static_cast<size_t>(number)] == nullptr)
    throw std::invalid_argument("host '" + name() + "' has no interface " + std::to_string(number));
  return *interfaces_[static_cast<size_t>(number)];
}

void IpStack::add_route(const IpRoute& route) {
  interface_at(route.interface);
  if (const int most = route.prefix.is_ipv6 ? 128 : 32; route.prefix_bits < 0 || route.prefix_bits > most)
    throw std::invalid_argument("a route's prefix of " + std::to_string(route.prefix_bits) +
                                " bits (valid: 0 to " + std::to_string(most) + ")");
  const auto shorter = std::find_if(routes_.begin(), routes_.end(), [&](const IpRoute& other) {
    return other.prefix_bits < route.prefix_bits;
  });
  routes_.insert(shorter, route);
}

void IpStack::add_neighbour(int interface, const IpAddress& address, const MacAddress& mac) {
  interface_at(interface).neighbours.set_static(address, mac);
}

void IpStack::forget_neighbours() {
  for (const auto& interface : interfaces_)
    if (interface != nullptr) interface->neighbours.forget();
}

const IpRoute* IpStack::route_to(const IpAddress& destination) const {
  for (const IpRoute& route : routes_)
    if (has_prefix(destination, route)) return &route;
  return nullptr;
}

std::optional<IpAddress> IpStack::source_for(const IpAddress& destination) const {
  const IpRoute* route = route_to(destination);
  if (route == nullptr) return std::nullopt;
  const IpAddress* own = interfaces_[static_cast<size_t>(route->interface)]->own_address(destination.is_ipv6);
  return own == nullptr ? std::nullopt : std::optional(*own);
}

size_t IpStack::largest_payload_bytes(const IpAddress& destination) const {
  const IpRoute* route = route_to(destination);
  if (route == nullptr) return 0;
  return interfaces_[static_cast<size_t>(route->interface)]->config.mtu_bytes -
         ip::header_bytes(destination.is_ipv6);
}

size_t IpStack::waiting_packets(const IpAddress& destination, uint8_t dscp) const {
  const IpRoute* route = route_to(destination);
  if (route == nullptr) return 0;
  const auto& queues = interfaces_[static_cast<size_t>(route->interface)]->queues;
  const auto found = queues.find(class_of(dscp));
  return found == queues.end() ? 0 : found->second->size();
}

void IpStack::register_protocol(uint8_t number, IpProtocol* protocol) {
  if (protocol == nullptr) {
    protocols_.erase(number);
    return;
  }
  const bool is_own = number == kProtocolIcmp || number == kProtocolIcmpv6 || number == kProtocolUdp;
  if (is_own || !protocols_.emplace(number, protocol).second)
    throw std::invalid_argument("host '" + name() + "': protocol " + std::to_string(number) + " is taken");
}

// --- sending ---

bool IpStack::send(IpHeader header, PacketPtr payload) {
  const IpRoute* route = route_to(header.destination);
  const IpAddress* own = nullptr;
  if (route != nullptr)
    own = interfaces_[static_cast<size_t>(route->interface)]->own_address(header.destination.is_ipv6);
  if (own == nullptr) {
    ++counters_.no_route_packets;
    return false;
  }
  Interface& interface = *interfaces_[static_cast<size_t>(route->interface)];
  if (payload->frame_bytes() + ip::header_bytes(header.destination.is_ipv6) > interface.config.mtu_bytes) {
    ++counters_.too_big_packets;
    return false;
  }
  if (is_unset(header.source)) header.source = *own;
  ip::prepend_header(*payload, header, next_identification_++);
  if (is_group_address(header.destination)) {
    interface.send_to(header.destination.is_ipv6 || header.destination.bytes[0] != 0xFF
                          ? ip::multicast_mac(header.destination)
                          : kBroadcast,
                      std::move(payload), header.destination.is_ipv6);
    return true;
  }
  if (waiting_packets(header.destination, header.dscp) >= interface.config.queue_packets) {
    ++counters_.queue_full_packets;
    return false;
  }
  interface.neighbours.send(is_unset(route->gateway) ? header.destination : route->gateway,
                            std::move(payload));
  return true;
}

bool IpStack::send_frame(int interface, PacketPtr frame) {
  const int data_class = class_of(dscp_of(frame->bytes()).value_or(0));
  return queue(interface_at(interface), std::move(frame), data_class);
}

void IpStack::Interface::send_to(const MacAddress& mac, PacketPtr packet, bool is_ipv6) {
  ip::prepend_ethernet(*packet, mac, nic_port.mac, is_ipv6 ? roce::kEtherTypeIpv6 : roce::kEtherTypeIpv4);
  const int data_class = class_of(dscp_of(packet->bytes()).value_or(0));
  stack.queue(*this, std::move(packet), data_class);
}

FrameQueue& IpStack::queue_of(Interface& interface, int data_class) {
  auto& queue = interface.queues[data_class];
  if (queue == nullptr) {
    queue = std::make_unique<FrameQueue>(data_class, interface.config.queue_packets);
    nic_.attach_sender(*queue, interface.number);
  }
  return *queue;
}

bool IpStack::queue(Interface& interface, PacketPtr frame, int data_class) {
  const TrafficCounter traffic = frame->traffic();
  if (!queue_of(interface, data_class).push(frame)) {
    ++counters_.queue_full_packets;
    return false;
  }
  counters_.queued.add(traffic);
  return true;
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
  stack.queue(*this, ip::build_arp(stack.packets(), request, kNoMac, kBroadcast), 0);
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
  return stack.queue(*this, std::move(packet), 0);
}

// --- receiving ---

void IpStack::receive_non_roce(int port, PacketPtr packet) {
  const auto number = static_cast<size_t>(port);
  if (number >= interfaces_.size() || interfaces_[number] == nullptr) return drop(IpDrop::kUnknown, *packet);
  Interface& interface = *interfaces_[number];
  const TrafficCounter traffic = packet->traffic();
  was_tapped_ = tap_ != nullptr;
  if (was_tapped_) tap_->on_frame(engine_.now(), port, *packet);
  const Outcome outcome = take(interface, *packet);
  if (outcome != Outcome::kTaken && !was_tapped_)
    return drop(static_cast<IpDrop>(static_cast<int>(outcome) - 1), *packet);
  counters_.received.add(traffic);
  engine_.conservation().leave(PacketEnd::kDelivered, traffic);
}

void IpStack::drop(IpDrop reason, const Packet& frame) {
  switch (reason) {
    case IpDrop::kForeign:
      ++counters_.foreign_packets;
      break;
    case IpDrop::kMalformed:
      ++counters_.malformed_packets;
      break;
    case IpDrop::kBadChecksum:
      ++counters_.bad_checksum_packets;
      break;
    case IpDrop::kFragment:
      ++counters_.fragment_packets;
      break;
    case IpDrop::kUnknown:
      ++counters_.unknown_packets;
      break;
    case IpDrop::kClosedPort:
      ++counters_.closed_port_packets;
      break;
    case IpDrop::kCount:
      break;
  }
  engine_.conservation().drop(DropPlace::kIp, static_cast<size_t>(reason), frame.traffic());
}

IpStack::Outcome IpStack::take(Interface& interface, const Packet& frame) {
  const std::span<const uint8_t> bytes = frame.bytes();
  if (bytes.size() < ip::kEthernetBytes) return Outcome::kMalformed;
  MacAddress destination;
  std::memcpy(destination.data(), bytes.data(), destination.size());
  if (!interface.hears(destination)) return Outcome::kForeign;
  switch (load_big_endian<uint16_t>(bytes.data() + 12)) {
    case kEtherTypeArp:
      return take_arp(interface, frame);
    case roce::kEtherTypeIpv4:
      return take_ip(interface, frame, false);
    case roce::kEtherTypeIpv6:
      return take_ip(interface, frame, true);
    default:
      return Outcome::kUnknown;
  }
}

// RFC 826: who asks for us is to be known; of others, what is known already is brought up to date.
IpStack::Outcome IpStack::take_arp(Interface& interface, const Packet& frame) {
  const std::optional<ip::Arp> arp = ip::parse_arp(frame.bytes());
  if (!arp) return Outcome::kMalformed;
  const bool is_ours = interface.owns(arp->target_ip);
  interface.neighbours.learn(arp->sender_ip, arp->sender_mac, is_ours && !is_unset(arp->sender_ip));
  if (!is_ours) return Outcome::kForeign;
  if (arp->is_request) {
    const ip::Arp answer{.is_request = false,
                         .sender_mac = interface.nic_port.mac,
                         .sender_ip = arp->target_ip,
                         .target_ip = arp->sender_ip};
    queue(interface, ip::build_arp(packets(), answer, arp->sender_mac, arp->sender_mac), 0);
  }
  return Outcome::kTaken;
}

IpStack::Outcome IpStack::take_ip(Interface& interface, const Packet& frame, bool is_ipv6) {
  IpPacket packet;
  switch (ip::parse(frame, packet)) {
    case ip::ParseError::kNone:
      break;
    case ip::ParseError::kBadChecksum:
      return Outcome::kBadChecksum;
    case ip::ParseError::kFragment:
      return Outcome::kFragment;
    case ip::ParseError::kTruncated:
    case ip::ParseError::kBadHeader:
      return Outcome::kMalformed;
  }
  packet.interface = interface.number;
  packet.is_group = is_group_address(packet.destination);
  if (!packet.is_group && !interface.owns(packet.destination)) return Outcome::kForeign;
  // Nobody is a group, so that no answer goes to one (RFC 1122, 3.2.1.3; RFC 4291, 2.7).
  if (is_group_address(packet.source)) return Outcome::kMalformed;
  if (packet.protocol == kProtocolUdp) return take_udp(packet);
  if (packet.protocol == (is_ipv6 ? kProtocolIcmpv6 : kProtocolIcmp)) return take_icmp(interface, packet);
  const auto found = protocols_.find(packet.protocol);
  if (found == protocols_.end()) return Outcome::kUnknown;
  found->second->on_packet(engine_.now(), packet);
  return Outcome::kTaken;
}

IpStack::Outcome IpStack::take_udp(const IpPacket& packet) {
  if (packet.payload.size() < ip::kUdpBytes) return Outcome::kMalformed;
  const uint8_t* udp = packet.payload.data();
  const size_t length = load_big_endian<uint16_t>(udp + 4);
  if (length < ip::kUdpBytes || length > packet.payload_bytes) return Outcome::kMalformed;
  const std::span<const uint8_t> readable = packet.payload.first(std::min(length, packet.payload.size()));
  const bool has_checksum = load_big_endian<uint16_t>(udp + 6) != 0;
  if ((has_checksum || packet.destination.is_ipv6) && ip::transport_checksum(packet, readable, length) != 0)
    return Outcome::kBadChecksum;
  const Datagram datagram{.packet = packet,
                          .source_port = load_big_endian<uint16_t>(udp),
                          .destination_port = load_big_endian<uint16_t>(udp + 2),
                          .payload = readable.subspan(ip::kUdpBytes),
                          .payload_bytes = length - ip::kUdpBytes};
  const auto found = udp_.find(datagram.destination_port);
  if (found == udp_.end()) {
    if (!packet.is_group && !was_tapped_) send_port_unreachable(packet);
    return Outcome::kClosedPort;
  }
  found->second->on_datagram(engine_.now(), datagram);
  return Outcome::kTaken;
}

// --- ICMP ---

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

}  // namespace

bool IpStack::send_icmp(IpHeader header, uint8_t type, uint8_t code, uint32_t rest, PacketPtr payload) {
  const bool is_ipv6 = header.destination.is_ipv6;
  header.protocol = is_ipv6 ? kProtocolIcmpv6 : kProtocolIcmp;
  if (is_unset(header.source)) {
    const std::optional<IpAddress> own = source_for(header.destination);
    if (!own) {
      ++counters_.no_route_packets;
      return false;
    }
    header.source = *own;
  }
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
    if (mac) interface.neighbours.learn(target, *mac, false);
    return Outcome::kTaken;
  }
  if (!interface.owns(target)) return Outcome::kForeign;
  if (is_unset(packet.source) || !mac) return Outcome::kTaken;
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

// --- UDP ---

uint16_t IpStack::bind_udp(uint16_t port, UdpReceiver& receiver) {
  // The first that is free, so that a run has the ports, and with them the paths, of the same run before.
  for (uint32_t tried = 49152; port == 0 && tried < 65536; ++tried)
    if (!udp_.contains(static_cast<uint16_t>(tried))) port = static_cast<uint16_t>(tried);
  if (port == 0) throw std::invalid_argument("host '" + name() + "' has no UDP port left");
  if (port == roce::kUdpPort || !udp_.emplace(port, &receiver).second)
    throw std::invalid_argument("host '" + name() + "': UDP port " + std::to_string(port) +
                                (port == roce::kUdpPort ? " is RoCEv2's" : " is taken"));
  return port;
}

void IpStack::release_udp(uint16_t port) { udp_.erase(port); }

bool IpStack::send_udp(IpHeader header, uint16_t source_port, uint16_t destination_port, PacketPtr payload) {
  header.protocol = kProtocolUdp;
  if (is_unset(header.source)) {
    const std::optional<IpAddress> own = source_for(header.destination);
    if (!own) {
      ++counters_.no_route_packets;
      return false;
    }
    header.source = *own;
  }
  const size_t length = payload->frame_bytes() + ip::kUdpBytes;
  uint8_t* at = payload->prepend(ip::kUdpBytes);
  store_big_endian(at, source_port);
  store_big_endian(at + 2, destination_port);
  store_big_endian(at + 4, static_cast<uint16_t>(length));
  store_big_endian(at + 6, uint16_t{0});
  const uint16_t checksum = ip::transport_checksum(header, payload->bytes(), length);
  store_big_endian(at + 6, checksum == 0 ? uint16_t{0xFFFF} : checksum);
  return send(header, std::move(payload));
}

}  // namespace weft
