// UDP of a host's IP stack.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "hosts/ip/ip_formats.hpp"
#include "hosts/ip/ip_interface.hpp"
#include "packets/byte_order.hpp"

namespace weft {

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

uint16_t IpStack::ephemeral_port(uint32_t number) const {
  constexpr uint32_t kFirst = 65536 - kEphemeralPorts;
  return static_cast<uint16_t>(kFirst + (uint64_t{first_ephemeral_port_} + number) % kEphemeralPorts);
}

uint16_t IpStack::bind_udp(uint16_t port, UdpReceiver& receiver) {
  // The first that is free from one on that the seed draws (RFC 6056, 3.3.1), so that a run has the ports,
  // and with them the paths, of the same run before.
  for (uint32_t tried = 0; port == 0 && tried < kEphemeralPorts; ++tried)
    if (!udp_.contains(ephemeral_port(tried))) port = ephemeral_port(tried);
  if (port == 0) throw std::invalid_argument("host '" + name() + "' has no UDP port left");
  if (port == roce::kUdpPort || !udp_.emplace(port, &receiver).second)
    throw std::invalid_argument("host '" + name() + "': UDP port " + std::to_string(port) +
                                (port == roce::kUdpPort ? " is RoCEv2's" : " is taken"));
  return port;
}

void IpStack::release_udp(uint16_t port) { udp_.erase(port); }

bool IpStack::send_udp(IpHeader header, uint16_t source_port, uint16_t destination_port, PacketPtr payload) {
  header.protocol = kProtocolUdp;
  if (!set_source(header)) return false;
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
