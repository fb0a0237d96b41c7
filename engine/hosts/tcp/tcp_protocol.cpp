#include "hosts/tcp/tcp_protocol.hpp"

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/ip/ip_formats.hpp"
#include "packets/byte_order.hpp"
#include "tcp/connection.hpp"
#include "tcp/segment_format.hpp"

namespace weft {

TcpProtocol::TcpProtocol(IpStack& stack) : stack_(stack) { stack.register_protocol(kProtocolTcp, this); }

TcpProtocol::~TcpProtocol() { stack_.register_protocol(kProtocolTcp, nullptr); }

void TcpProtocol::listen(uint16_t port, TcpListener& listener) {
  if (!listeners_.emplace(port, &listener).second)
    throw std::invalid_argument("host '" + stack_.name() + "': TCP port " + std::to_string(port) +
                                " is taken");
}

void TcpProtocol::add(const IpAddress& peer, uint16_t peer_port, uint16_t own_port, TcpReceiver& receiver) {
  if (!connections_.emplace(key_of(peer, peer_port, own_port), &receiver).second)
    throw std::invalid_argument("host '" + stack_.name() + "' has a TCP connection from port " +
                                std::to_string(own_port) + " to there already");
}

void TcpProtocol::remove(const IpAddress& peer, uint16_t peer_port, uint16_t own_port) {
  connections_.erase(key_of(peer, peer_port, own_port));
}

void TcpProtocol::send(const IpAddress& peer, uint8_t dscp, const tcp::Segment& segment,
                       std::span<const uint8_t> payload) {
  const std::optional<IpAddress> source = stack_.source_for(peer);
  if (!source) {
    ++counters_.not_sent_segments;
    return;
  }
  const size_t header_bytes = tcp::kLeastHeaderBytes + tcp::options_bytes(segment.options);
  PacketPtr packet = stack_.allocate(header_bytes + payload.size());
  uint8_t* to = packet->data();
  tcp::write_header(segment, to);
  if (!payload.empty()) std::memcpy(to + header_bytes, payload.data(), payload.size());
  IpHeader header;
  header.source = *source;
  header.destination = peer;
  header.protocol = kProtocolTcp;
  header.dscp = dscp;
  header.ecn = static_cast<uint8_t>(segment.ecn);
  const uint16_t checksum = ip::transport_checksum(header, packet->bytes(), packet->bytes().size());
  store_big_endian(to + tcp::kChecksumOffset, checksum);
  if (!stack_.send(header, std::move(packet))) ++counters_.not_sent_segments;
}

TcpReceiver* TcpProtocol::receiver_of(const IpPacket& packet, const tcp::Segment& segment) {
  const auto found = connections_.find(key_of(packet.source, segment.source_port, segment.destination_port));
  if (found != connections_.end()) return found->second;
  const bool opens = segment.has(tcp::kSyn) && !segment.has(tcp::kAck) && !segment.has(tcp::kReset);
  TcpReceiver* receiver = opens ? accepted(packet, segment) : nullptr;
  if (receiver == nullptr) ++counters_.unexpected_segments;
  return receiver;
}

TcpReceiver* TcpProtocol::accepted(const IpPacket& packet, const tcp::Segment& segment) {
  const auto listener = listeners_.find(segment.destination_port);
  if (listener == listeners_.end()) return nullptr;
  TcpReceiver* receiver = listener->second->accept(packet, segment);
  if (receiver == nullptr) ++counters_.refused_openings;
  return receiver;
}

void TcpProtocol::on_packet(TimePs now, const IpPacket& packet) {
  if (packet.is_group) return;  // RFC 9293, section 3.9.2.3
  tcp::Segment segment;
  if (packet.payload.size() < packet.payload_bytes || tcp::read_header(packet.payload, segment) != nullptr) {
    ++counters_.malformed_segments;
    return;
  }
  if (ip::transport_checksum(packet, packet.payload, packet.payload_bytes) != 0) {
    ++counters_.bad_checksum_segments;
    return;
  }
  segment.ecn = static_cast<tcp::Ecn>(packet.ecn);
  if (TcpReceiver* receiver = receiver_of(packet, segment)) {
    receiver->on_segment(now, segment, packet.payload.last(segment.payload_bytes));
    return;
  }
  if (const auto reset = tcp::reset_for(segment)) send(packet.source, packet.dscp, *reset, {});
}

}  // namespace weft
