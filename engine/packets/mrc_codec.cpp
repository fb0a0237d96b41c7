#include "packets/mrc_codec.hpp"

#include <stdexcept>
#include <string>

#include "packets/roce_writing.hpp"

namespace weft::mrc {
namespace {

constexpr uint8_t kIpProtocolIpv6 = 41;

using roce::RoceHeaders;
using roce::writing::Layout;

const uint16_t* extensions_of(uint8_t opcode) {
  const uint16_t& extensions = roce::kOpcodeExtensions[opcode];
  return extensions != roce::kUndefinedOpcode && (extensions & roce::kIsMrc) != 0 ? &extensions : nullptr;
}

Layout layout_of(const RoceHeaders& headers, const Headers& mrc, size_t payload_bytes) {
  const uint16_t* const extensions = extensions_of(headers.bth.opcode);
  if (extensions == nullptr) {
    throw std::invalid_argument(
        "BTH opcode " + std::to_string(headers.bth.opcode) +
        " is none of MRC's (valid: WRITE 198 to 203, acknowledge 209, endpoint operations "
        "216 and 217, SACK 220, NACK 221, reliability probe 222)");
  }
  const size_t udp_bytes = roce::kUdpBytes + roce::kBthBytes +
                           extension_bytes(headers.bth.opcode, mrc.has_timestamp) + payload_bytes +
                           roce::writing::pad_bytes(payload_bytes) + roce::kIcrcBytes;
  const size_t before_udp_bytes = roce::kEthernetBytes + (headers.telemetry ? roce::kIntShimBytes : 0) +
                                  (mrc.outer_destination ? roce::kIpv6Bytes : 0) +
                                  (headers.source_ip.is_ipv6 ? roce::kIpv6Bytes : roce::kIpv4Bytes);
  return {*extensions, udp_bytes, before_udp_bytes + udp_bytes};
}

template <class Header>
void check_widths(const char* name, const Header& header) {
  if (!wire::is_too_wide(header)) return;
  wire::for_each_member<Header>([&](const char* field, size_t bits, auto member) {
    const uint64_t value = wire::as_bits(header.*member);
    if ((value & ~wire::mask_of(bits)) == 0) return;
    throw std::invalid_argument(std::string("mrc.") + name + "." + field + " is " + std::to_string(value) +
                                ", which is more than " + std::to_string(bits) + " bits");
  });
}

void require_at_most(const char* name, uint64_t value, uint64_t most, const char* valid) {
  if (value <= most) return;
  throw std::invalid_argument(std::string("mrc.") + name + " is " + std::to_string(value) +
                              " (valid: " + valid + ")");
}

void check_values(const RoceHeaders& headers, const Headers& mrc) {
  if (headers.aggregation) throw std::invalid_argument("an MRC packet has no aggregation header");
  const uint8_t opcode = headers.bth.opcode;
  if (mrc.has_timestamp && !is_write(opcode)) {
    throw std::invalid_argument("mrc.has_timestamp: BTH opcode " + std::to_string(opcode) +
                                " has no TSETH (valid: writes, 198 to 203)");
  }
  // Without an iCRC, as segments and packets made as a length are, a receiver would take it for a trimmed
  // one.
  if (is_write(opcode) && is_trimmed(headers.dscp)) {
    throw std::invalid_argument(
        "dscp is " + std::to_string(headers.dscp) +
        ", which switches give to trimmed packets (valid for MRC's WRITEs: any but 12, 16)");
  }
  if (is_endpoint_operation(opcode) && headers.bth.destination_qp != kEndpointQueuePair) {
    throw std::invalid_argument("an endpoint operation goes to queue pair 2, not to " +
                                std::to_string(headers.bth.destination_qp));
  }
  check_widths("tseth", mrc.tseth);
  check_widths("seth", mrc.seth);
  check_widths("cc_state", mrc.cc_state);
  check_widths("neth", mrc.neth);
  check_widths("peth", mrc.peth);
  check_widths("erth", mrc.erth);
  check_widths("eeth", mrc.eeth);
  if (mrc.outer_destination &&
      (headers.telemetry || !headers.source_ip.is_ipv6 || !mrc.outer_destination->is_ipv6))
    throw std::invalid_argument("an outer IPv6 header goes around IPv6 alone, without INT");
  require_at_most("seth.m", mrc.seth.m, kMarkAlwaysSkip, "0 none, 1 skip once, 2 always skip");
  require_at_most("erth.op", mrc.erth.op, kEvProbe, "0 port status update, 1 EV probe");
  require_at_most("eeth.op", mrc.eeth.op, kEvProbe, "0 port status update, 1 EV probe");
}

uint8_t* store_extensions(const RoceHeaders& headers, const Headers& mrc, uint16_t extensions, uint8_t* at) {
  switch (headers.bth.opcode) {
    case kSack:
      return wire::store_header(mrc.cc_state, wire::store_header(mrc.seth, at));
    case kNack:
      return wire::store_header(mrc.neth, at);
    case kReliabilityProbe:
      return wire::store_header(mrc.peth, at);
    case kEndpointRequest:
      return wire::store_header(mrc.erth, at);
    case kEndpointResponse:
      return wire::store_header(mrc.eeth, at);
    case kAcknowledge:
      return wire::store_header(headers.aeth, at);
    default:
      at = wire::store_header(mrc.meth, at);
      if (mrc.has_timestamp) at = wire::store_header(mrc.tseth, at);
      return roce::writing::write_extensions(headers, extensions, at);
  }
}

// Around the inner header, with the same class, flow label and hop limit.
uint8_t* write_outer_ipv6(const RoceHeaders& headers, const roce::IpAddress& destination, size_t udp_bytes,
                          uint8_t* at) {
  RoceHeaders outer = headers;
  outer.destination_ip = destination;
  uint8_t* const end = roce::writing::write_ip(outer, roce::kIpv6Bytes + udp_bytes, at);
  at[6] = kIpProtocolIpv6;
  return end;
}

struct Written {
  const uint8_t* ip;
  uint8_t* end;  // where the payload begins
};

Written write_headers(const RoceHeaders& headers, const Headers& mrc, const Layout& layout,
                      size_t payload_bytes, uint8_t* out) {
  roce::writing::check_values(headers, layout.extensions, payload_bytes, layout.udp_bytes);
  check_values(headers, mrc);
  uint8_t* ip = roce::writing::write_ethernet(headers, out);
  if (mrc.outer_destination) [[unlikely]]
    ip = write_outer_ipv6(headers, *mrc.outer_destination, layout.udp_bytes, ip);
  uint8_t* const udp = roce::writing::write_ip(headers, layout.udp_bytes, ip);
  roce::writing::write_udp(headers, layout.udp_bytes, udp);
  uint8_t* const at = udp + roce::kUdpBytes;
  const roce::Bth& bth = headers.bth;
  uint8_t* const end = wire::store_header(Bth{.opcode = bth.opcode,
                                              .partition_key = bth.partition_key,
                                              .destination_qp = bth.destination_qp,
                                              .acknowledge_request = bth.acknowledge_request,
                                              .retransmission = mrc.retransmission,
                                              .has_timestamp = mrc.has_timestamp,
                                              .psn = bth.psn},
                                          at);
  wire::store_field<Bth, "pad_count">(at, roce::writing::pad_bytes(payload_bytes));
  return {ip, store_extensions(headers, mrc, layout.extensions, end)};
}

void write_frame(const RoceHeaders& headers, const Headers& mrc, const Layout& layout, const uint8_t* payload,
                 size_t payload_bytes, uint8_t* out) {
  const auto [ip, payload_at] = write_headers(headers, mrc, layout, payload_bytes, out);
  roce::writing::write_payload(payload, payload_bytes, ip, payload_at);
}

}  // namespace

size_t extension_bytes(uint8_t opcode, bool has_timestamp) {
  switch (opcode) {
    case kSack:
      return kSethBytes + kCcStateBytes;
    case kNack:
      return kNethBytes;
    case kReliabilityProbe:
      return kPethBytes;
    case kEndpointRequest:
      return kErthBytes;
    case kEndpointResponse:
      return kEethBytes;
    case kAcknowledge:
      return roce::kAethBytes;
    default:
      return kMethBytes + (has_timestamp ? kTsethBytes : 0) +
             roce::extension_bytes(roce::kOpcodeExtensions[opcode]);
  }
}

Headers load_headers(const roce::ParsedPacket& packet) {
  Headers headers;
  const uint8_t* at = packet.frame + roce::kEthernetBytes + (packet.telemetry ? roce::kIntShimBytes : 0) +
                      (packet.source_ip.is_ipv6 ? roce::kIpv6Bytes : roce::kIpv4Bytes) + roce::kUdpBytes;
  headers.retransmission = wire::load_field<Bth, "retransmission">(at) != 0;
  const bool is_write_packet = is_write(packet.bth.opcode);
  headers.has_timestamp = is_write_packet && wire::load_field<Bth, "has_timestamp">(at) != 0;
  at += roce::kBthBytes;
  if (is_write_packet) {
    wire::load_header(headers.meth, at);
    if (headers.has_timestamp) wire::load_header(headers.tseth, at + kMethBytes);
    return headers;
  }
  switch (packet.bth.opcode) {
    case kSack:
      wire::load_header(headers.seth, at);
      wire::load_header(headers.cc_state, at + kSethBytes);
      break;
    case kNack:
      wire::load_header(headers.neth, at);
      break;
    case kReliabilityProbe:
      wire::load_header(headers.peth, at);
      break;
    case kEndpointRequest:
      wire::load_header(headers.erth, at);
      break;
    case kEndpointResponse:
      wire::load_header(headers.eeth, at);
      break;
    default:  // an acknowledgement has its AETH only
      break;
  }
  return headers;
}

size_t frame_bytes(const RoceHeaders& headers, const Headers& mrc, size_t payload_bytes) {
  return layout_of(headers, mrc, payload_bytes).frame_bytes;
}

void write_frame(const RoceHeaders& headers, const Headers& mrc, const uint8_t* payload, size_t payload_bytes,
                 uint8_t* out) {
  write_frame(headers, mrc, layout_of(headers, mrc, payload_bytes), payload, payload_bytes, out);
}

PacketPtr build_packet(PacketPool& pool, const RoceHeaders& headers, const Headers& mrc,
                       const uint8_t* payload, size_t payload_bytes) {
  const Layout layout = layout_of(headers, mrc, payload_bytes);
  PacketPtr packet = pool.allocate(layout.frame_bytes);
  write_frame(headers, mrc, layout, payload, payload_bytes, packet->data());
  return packet;
}

PacketPtr build_as_length(PacketPool& pool, const RoceHeaders& headers, const Headers& mrc,
                          size_t payload_bytes) {
  const Layout layout = layout_of(headers, mrc, payload_bytes);
  const size_t virtual_bytes = payload_bytes + roce::writing::pad_bytes(payload_bytes) + roce::kIcrcBytes;
  PacketPtr packet = pool.allocate(layout.frame_bytes - virtual_bytes);
  write_headers(headers, mrc, layout, payload_bytes, packet->data());
  packet->append_virtual(virtual_bytes);
  return packet;
}

}  // namespace weft::mrc
