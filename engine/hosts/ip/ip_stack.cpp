#include "hosts/ip/ip_stack.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "hosts/ip/ip_formats.hpp"
#include "hosts/ip/ip_interface.hpp"
#include "packets/byte_order.hpp"
#include "time/random.hpp"

namespace weft {
namespace {

#define WEFT_IP_DROP_COUNTER(enumerator, name, statistic) &IpCounters::statistic,
constexpr std::array<uint64_t IpCounters::*, kIpDrops.size()> kDropCounters{
    WEFT_IP_DROPS(WEFT_IP_DROP_COUNTER)};

bool has_prefix(const IpAddress& address, const IpRoute& route) {
  if (address.is_ipv6 != route.prefix.is_ipv6) return false;
  const auto whole = static_cast<size_t>(route.prefix_bits / 8);
  if (std::memcmp(address.bytes.data(), route.prefix.bytes.data(), whole) != 0) return false;
  const int rest = route.prefix_bits % 8;
  return rest == 0 || (address.bytes[whole] ^ route.prefix.bytes[whole]) >> (8 - rest) == 0;
}

}  // namespace

IpStack::IpStack(Nic& nic) : engine_(nic.engine()), nic_(nic) {
  // Drawn from the seed, as ECMP hashes source ports: another seed has other collisions.
  Rng rng(nic.entropy_seed(), nic.name() + " ports");
  first_ephemeral_port_ = static_cast<uint32_t>(rng.below(kEphemeralPorts));
  nic.set_non_roce_receiver(this);
}

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
  // Longest prefixes first, so that the first match is the route; hosts have a few routes.
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
  const auto found = queues.find(data_class_of(dscp));
  return found == queues.end() ? 0 : found->second->size();
}

void IpStack::register_protocol(uint8_t number, IpProtocol* protocol) {
  if (protocol == nullptr) {
    protocols_.erase(number);
    return;
  }
  // The stack answers these itself.
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
  if (ip::is_group(header.destination)) {
    interface.send_to(header.destination.is_ipv6 || header.destination.bytes[0] != 0xFF
                          ? ip::multicast_mac(header.destination)
                          : ip::kBroadcastMac,
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

bool IpStack::set_source(IpHeader& header) {
  if (!is_unset(header.source)) return true;
  const std::optional<IpAddress> own = source_for(header.destination);
  if (!own) {
    ++counters_.no_route_packets;
    return false;
  }
  header.source = *own;
  return true;
}

bool IpStack::send_frame(int interface, PacketPtr frame) {
  const int data_class = data_class_of(*frame);
  return queue(interface_at(interface), std::move(frame), data_class);
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

// --- receiving ---

void IpStack::receive_non_roce(int port, PacketPtr packet) {
  const auto number = static_cast<size_t>(port);
  if (number >= interfaces_.size() || interfaces_[number] == nullptr) return drop(IpDrop::kUnknown, *packet);
  Interface& interface = *interfaces_[number];
  const TrafficCounter traffic = packet->traffic();
  was_tapped_ = !taps_.empty();
  for (FrameTap* tap : std::vector(taps_)) tap->on_frame(engine_.now(), port, *packet);
  const Outcome outcome = take(interface, *packet);
  if (outcome != Outcome::kTaken && !was_tapped_)
    return drop(static_cast<IpDrop>(static_cast<int>(outcome) - 1), *packet);
  counters_.received.add(traffic);
  engine_.conservation().leave(PacketEnd::kDelivered, traffic);
}

void IpStack::drop(IpDrop reason, const Packet& frame) {
  ++(counters_.*kDropCounters[static_cast<size_t>(reason)]);
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
  if (!interface.believes(arp->sender_ip, arp->sender_mac)) return Outcome::kMalformed;
  interface.neighbours.learn(arp->sender_ip, arp->sender_mac, is_ours && !is_unset(arp->sender_ip));
  if (!is_ours) return Outcome::kForeign;
  if (arp->is_request) {
    const ip::Arp answer{.is_request = false,
                         .sender_mac = interface.nic_port.mac,
                         .sender_ip = arp->target_ip,
                         .target_ip = arp->sender_ip};
    queue(interface, ip::build_arp(packets(), answer, arp->sender_mac, arp->sender_mac), kNeighbourClass);
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
  packet.is_group = ip::is_group(packet.destination);
  if (!packet.is_group && !interface.owns(packet.destination)) return Outcome::kForeign;
  // Nobody is a group, so that no answer goes to one (RFC 1122, 3.2.1.3; RFC 4291, 2.7).
  if (ip::is_group(packet.source)) return Outcome::kMalformed;
  if (packet.protocol == kProtocolUdp) return take_udp(packet);
  if (packet.protocol == (is_ipv6 ? kProtocolIcmpv6 : kProtocolIcmp)) return take_icmp(interface, packet);
  const auto found = protocols_.find(packet.protocol);
  if (found == protocols_.end()) return Outcome::kUnknown;
  found->second->on_packet(engine_.now(), packet);
  return Outcome::kTaken;
}

}  // namespace weft
