// Parsing half of the codec.
#include <algorithm>
#include <cstring>

#include "packets/byte_order.hpp"
#include "packets/internet_checksum.hpp"
#include "packets/mrc_codec.hpp"
#include "packets/roce_codec.hpp"
#include "packets/udp_datagram.hpp"

namespace weft::roce {
namespace {

// What is left of a frame, and how much of that can be read: the rest is virtual. Every read is preceded by
// has().
struct Reader {
  const uint8_t* at;
  size_t left;
  size_t readable;

  bool has(size_t bytes) const { return readable >= bytes; }
  void skip(size_t bytes) {
    at += bytes;
    left -= bytes;
    readable -= bytes;
  }
  void limit(size_t bytes) {
    left = bytes;
    readable = std::min(readable, bytes);
  }
};

ParseError parse_int_shim(Reader& reader, uint16_t& ethertype, ParsedPacket& out) {
  if (!reader.has(kIntShimBytes)) return ParseError::kTruncated;
  const uint8_t* shim = reader.at;
  IntStack stack;
  wire::load_header(stack, shim);
  ethertype = static_cast<uint16_t>(wire::load_field<IntStack, "next_ethertype">(shim));
  const bool known_next = ethertype == kEtherTypeIpv4 || ethertype == kEtherTypeIpv6;
  if (wire::load_field<IntStack, "version">(shim) != kIntShimVersion ||
      wire::load_field<IntStack, "hop_slots">(shim) != kIntHops || stack.hop_count > kIntHops ||
      !known_next) {
    return ParseError::kBadIntShim;
  }
  shim += wire::kHeaderBytes<IntStack>;
  for (IntHop& hop : stack.hops) {
    wire::load_header(hop, shim);
    shim += wire::kHeaderBytes<IntHop>;
  }
  out.telemetry = stack;
  reader.skip(kIntShimBytes);
  return ParseError::kNone;
}

void set_traffic_class(ParsedPacket& out, uint8_t traffic_class) {
  out.dscp = traffic_class >> 2;
  out.ecn = traffic_class & 3;
}

// Whether the length of a header's packet may be more than what is left of the frame: it was cut.
enum class Length : uint8_t { kWhole, kCut };

template <Length kLength = Length::kWhole>
ParseError parse_ipv4(Reader& reader, ParsedPacket& out) {
  if (!reader.has(kIpv4Bytes)) return ParseError::kTruncated;
  const uint8_t* ip = reader.at;
  if (ip[0] >> 4 != 4) return ParseError::kBadIpHeader;
  if (ip[9] != kIpProtocolUdp) return ParseError::kNotRoce;
  if (ip[0] != 0x45) return ParseError::kBadIpHeader;
  if (internet_checksum(ip, kIpv4Bytes) != 0) return ParseError::kBadIpChecksum;
  size_t total_bytes = load_big_endian<uint16_t>(ip + 2);
  if (total_bytes < kIpv4Bytes) return ParseError::kBadIpHeader;
  if (total_bytes > reader.left) {
    if constexpr (kLength == Length::kWhole) return ParseError::kTruncated;
    total_bytes = reader.left;
  }
  const auto fragment = load_big_endian<uint16_t>(ip + 6);
  if ((fragment & 0x3FFF) != 0) return ParseError::kFragmented;
  set_traffic_class(out, ip[1]);
  out.identification = load_big_endian<uint16_t>(ip + 4);
  out.dont_fragment = (fragment & 0x4000) != 0;
  out.hop_limit = ip[8];
  std::memcpy(out.source_ip.bytes.data(), ip + 12, 4);
  std::memcpy(out.destination_ip.bytes.data(), ip + 16, 4);
  reader.limit(total_bytes);  // what follows is padding of the Ethernet frame
  reader.skip(kIpv4Bytes);
  return ParseError::kNone;
}

template <Length kLength = Length::kWhole>
ParseError parse_ipv6(Reader& reader, ParsedPacket& out) {
  if (!reader.has(kIpv6Bytes)) return ParseError::kTruncated;
  const uint8_t* ip = reader.at;
  const auto first = load_big_endian<uint32_t>(ip);
  if (first >> 28 != 6) return ParseError::kBadIpHeader;
  if (ip[6] != kIpProtocolUdp) return ParseError::kNotRoce;
  size_t total_bytes = kIpv6Bytes + load_big_endian<uint16_t>(ip + 4);
  if (total_bytes > reader.left) {
    if constexpr (kLength == Length::kWhole) return ParseError::kTruncated;
    total_bytes = reader.left;
  }
  set_traffic_class(out, static_cast<uint8_t>(first >> 20));
  out.flow_label = first & 0xFFFFF;
  out.hop_limit = ip[7];
  out.source_ip.is_ipv6 = out.destination_ip.is_ipv6 = true;
  std::memcpy(out.source_ip.bytes.data(), ip + 8, 16);
  std::memcpy(out.destination_ip.bytes.data(), ip + 24, 16);
  reader.limit(total_bytes);
  reader.skip(kIpv6Bytes);
  return ParseError::kNone;
}

// `ip` is where the IP header starts, for the pseudo header of the checksum.
ParseError parse_udp(Reader& reader, const uint8_t* ip, ParsedPacket& out) {
  if (!reader.has(kUdpBytes)) return ParseError::kTruncated;
  const uint8_t* udp = reader.at;
  if (load_big_endian<uint16_t>(udp + 2) != kUdpPort) return ParseError::kNotRoce;
  if (load_big_endian<uint16_t>(udp + 4) != reader.left) return ParseError::kBadUdpLength;
  if (load_big_endian<uint16_t>(udp + 6) != 0) {
    if (reader.readable < reader.left) return ParseError::kTruncated;
    const size_t address_bytes = out.source_ip.is_ipv6 ? 16 : 4;
    const uint8_t* addresses = ip + (out.source_ip.is_ipv6 ? 8 : 12);
    uint64_t sum = internet_sum(addresses, 2 * address_bytes) + kIpProtocolUdp + reader.left;
    sum += internet_sum(udp, reader.left);
    if (fold_internet_sum(sum) != 0) return ParseError::kBadUdpChecksum;
  }
  out.source_udp_port = load_big_endian<uint16_t>(udp);
  reader.skip(kUdpBytes);
  return ParseError::kNone;
}

// Sets the pad count aside, which is checked when the payload is known. Inlined into parse(), in spite of the
// other callers, which are of MRC's packets: so are parse_extensions() and parse_payload().
[[gnu::always_inline]] inline ParseError parse_bth(Reader& reader, ParsedPacket& out, size_t& pad_bytes) {
  if (!reader.has(kBthBytes)) return ParseError::kTruncated;
  const uint8_t* bth = reader.at;
  wire::load_header(out.bth, bth);
  pad_bytes = wire::load_field<Bth, "pad_count">(bth);
  if (wire::load_field<Bth, "version">(bth) != 0) return ParseError::kBadTransportVersion;
  const auto extensions = opcode_extensions(out.bth.opcode);
  if (!extensions) return ParseError::kUnknownOpcode;
  out.extensions = *extensions;
  reader.skip(kBthBytes);
  return ParseError::kNone;
}

[[gnu::always_inline]] inline ParseError parse_extensions(Reader& reader, ParsedPacket& out) {
  if (!reader.has(extension_bytes(out.extensions))) return ParseError::kTruncated;
  if (out.has(kHasDeth)) {
    wire::load_header(out.deth, reader.at);
    reader.skip(kDethBytes);
  }
  if (out.has(kHasReth)) {
    wire::load_header(out.reth, reader.at);
    reader.skip(kRethBytes);
  }
  if (out.has(kHasAtomicEth)) {
    wire::load_header(out.atomic_eth, reader.at);
    reader.skip(kAtomicEthBytes);
  }
  if (out.has(kHasAeth)) {
    wire::load_header(out.aeth, reader.at);
    reader.skip(kAethBytes);
  }
  if (out.has(kHasAtomicAckEth)) {
    out.atomic_ack_original = load_big_endian<uint64_t>(reader.at);
    reader.skip(kAtomicAckEthBytes);
  }
  if (out.has(kHasImmediate)) {
    out.immediate = load_big_endian<uint32_t>(reader.at);
    reader.skip(kImmediateBytes);
  }
  if (out.has(kHasIeth)) {
    out.invalidate_rkey = load_big_endian<uint32_t>(reader.at);
    reader.skip(kIethBytes);
  }
  if (out.has(kHasCnpReserved)) reader.skip(kCnpReservedBytes);
  return ParseError::kNone;
}

[[gnu::always_inline]] inline ParseError parse_payload(Reader& reader, size_t pad_bytes, ParsedPacket& out) {
  const bool is_virtual = reader.readable == 0;
  if (reader.left < kIcrcBytes || (reader.readable < reader.left && !is_virtual))
    return ParseError::kTruncated;
  reader.limit(reader.left - kIcrcBytes);
  if (!out.has(kHasPayload) && reader.left != 0) return ParseError::kUnexpectedPayload;
  if (reader.left % 4 != 0 || pad_bytes > reader.left) return ParseError::kBadPadCount;
  out.payload = is_virtual ? nullptr : reader.at;
  out.payload_bytes = reader.left - pad_bytes;
  return ParseError::kNone;
}

ParseError parse_aggregation(ParsedPacket& out) {
  if (out.payload == nullptr) return ParseError::kTruncated;
  if (out.payload_bytes < kAggregationHeaderBytes) return ParseError::kBadAggregationHeader;  // by its pad
  const uint8_t* at = out.payload;
  AggregationHeader header;
  wire::load_header(header, at);
  out.payload += kAggregationHeaderBytes;
  out.payload_bytes -= kAggregationHeaderBytes;
  if (wire::load_field<AggregationHeader, "version">(at) != kAggregationVersion || header.kind > kResult ||
      size_t{4} * header.lane_count != out.payload_bytes) {
    return ParseError::kBadAggregationHeader;
  }
  out.aggregation = header;
  return ParseError::kNone;
}

}  // namespace

const char* parse_error_name(ParseError error) {
  switch (error) {
    case ParseError::kNone:
      return "none";
    case ParseError::kNotRoce:
      return "not_roce";
    case ParseError::kTruncated:
      return "truncated";
    case ParseError::kBadIpHeader:
      return "bad_ip_header";
    case ParseError::kBadIpChecksum:
      return "bad_ip_checksum";
    case ParseError::kFragmented:
      return "fragmented";
    case ParseError::kBadUdpLength:
      return "bad_udp_length";
    case ParseError::kBadUdpChecksum:
      return "bad_udp_checksum";
    case ParseError::kBadIntShim:
      return "bad_int_shim";
    case ParseError::kBadTransportVersion:
      return "bad_transport_version";
    case ParseError::kUnknownOpcode:
      return "unknown_opcode";
    case ParseError::kBadPadCount:
      return "bad_pad_count";
    case ParseError::kUnexpectedPayload:
      return "unexpected_payload";
    case ParseError::kBadAggregationHeader:
      return "bad_aggregation_header";
    case ParseError::kBadIcrc:
      return "bad_icrc";
    case ParseError::kBadMrcHeader:
      return "bad_mrc_header";
    case ParseError::kCount:
      break;
  }
  return "unknown";
}

namespace {

bool has_valid_icrc(const uint8_t* ip, const uint8_t* icrc) {
  uint32_t sent;  // little-endian, as this machine is
  std::memcpy(&sent, icrc, sizeof sent);
  return sent == invariant_crc(ip, static_cast<size_t>(icrc - ip));
}

bool has_valid_mrc_values(const ParsedPacket& packet, const uint8_t* headers) {
  switch (packet.bth.opcode) {
    case mrc::kSack:
      return wire::load_field<mrc::Seth, "m">(headers) <= mrc::kMarkAlwaysSkip;
    case mrc::kEndpointRequest:
      return wire::load_field<mrc::Erth, "op">(headers) <= mrc::kEvProbe &&
             packet.bth.destination_qp == mrc::kEndpointQueuePair;
    case mrc::kEndpointResponse:
      return wire::load_field<mrc::Eeth, "op">(headers) <= mrc::kEvProbe &&
             packet.bth.destination_qp == mrc::kEndpointQueuePair;
    default:
      return true;
  }
}

// Skips MRC's headers and reads those that RC has, too; load_headers() reads the others when they are needed.
ParseError parse_mrc_extensions(Reader& reader, const uint8_t* bth, ParsedPacket& out) {
  const bool is_write = mrc::is_write(out.bth.opcode);
  const bool has_timestamp = is_write && wire::load_field<mrc::Bth, "has_timestamp">(bth) != 0;
  const size_t bytes = mrc::extension_bytes(out.bth.opcode, has_timestamp);
  if (!reader.has(bytes)) return ParseError::kTruncated;
  if (!has_valid_mrc_values(out, reader.at)) return ParseError::kBadMrcHeader;
  reader.skip(bytes - extension_bytes(out.extensions));
  return parse_extensions(reader, out);
}

// From the extension headers on. Kept out of the way of the packets of RC.
[[gnu::noinline]] ParseError parse_mrc(Reader& reader, const uint8_t* ip, const uint8_t* udp,
                                       size_t pad_bytes, bool check_icrc, ParsedPacket& out) {
  ParseError error = parse_mrc_extensions(reader, udp + kUdpBytes, out);
  if (error != ParseError::kNone) return error;
  // Switches give the code point of trimmed packets to those that are short enough to stay whole, too; an
  // iCRC that is valid proves that a packet is.
  const bool may_be_trimmed = mrc::is_trimmed(out.dscp) && mrc::is_write(out.bth.opcode);
  if (may_be_trimmed && !check_icrc) {
    out.trimmed = true;
    return ParseError::kNone;
  }
  error = parse_payload(reader, pad_bytes, out);
  if (error == ParseError::kNone && check_icrc && !has_valid_icrc(ip, reader.at + reader.left))
    error = ParseError::kBadIcrc;
  if (error != ParseError::kNone && may_be_trimmed) {
    out.payload = nullptr;
    out.payload_bytes = 0;
    out.trimmed = true;
    return ParseError::kNone;
  }
  return error;
}

// A frame refused for the lengths of its IP and UDP headers may be an MRC packet that was trimmed by a switch
// that left these as they were. Returns `error` if it is not.
[[gnu::cold, gnu::noinline]] ParseError parse_trimmed(const uint8_t* ip, uint16_t ethertype,
                                                      size_t virtual_bytes, ParseError error,
                                                      ParsedPacket& out) {
  if (error != ParseError::kTruncated && error != ParseError::kBadUdpLength &&
      error != ParseError::kBadUdpChecksum) {
    return error;
  }
  const size_t readable = out.frame_bytes - static_cast<size_t>(ip - out.frame);
  Reader reader{ip, readable + virtual_bytes, readable};
  const ParseError of_ip = ethertype == kEtherTypeIpv4 ? parse_ipv4<Length::kCut>(reader, out)
                                                       : parse_ipv6<Length::kCut>(reader, out);
  if (of_ip != ParseError::kNone || !mrc::is_trimmed(out.dscp) || !reader.has(kUdpBytes)) return error;
  if (load_big_endian<uint16_t>(reader.at + 2) != kUdpPort) return error;
  out.source_udp_port = load_big_endian<uint16_t>(reader.at);
  reader.skip(kUdpBytes);
  const uint8_t* const bth = reader.at;
  size_t pad_bytes = 0;
  if (parse_bth(reader, out, pad_bytes) != ParseError::kNone || !mrc::is_write(out.bth.opcode)) return error;
  if (parse_mrc_extensions(reader, bth, out) != ParseError::kNone) return error;
  out.trimmed = true;
  return ParseError::kNone;
}

ParseError parse(const uint8_t* frame, size_t frame_bytes, size_t virtual_bytes, ParsedPacket& out,
                 bool check_icrc) {
  out.frame = frame;
  out.frame_bytes = frame_bytes;
  Reader reader{frame, frame_bytes + virtual_bytes, frame_bytes};
  if (!reader.has(kEthernetBytes)) return ParseError::kTruncated;
  std::memcpy(out.destination_mac.data(), frame, 6);
  std::memcpy(out.source_mac.data(), frame + 6, 6);
  auto ethertype = load_big_endian<uint16_t>(frame + 12);
  reader.skip(kEthernetBytes);

  ParseError error = ParseError::kNone;
  if (ethertype == kEtherTypeIntShim) error = parse_int_shim(reader, ethertype, out);
  if (error != ParseError::kNone) return error;

  const uint8_t* ip = reader.at;
  switch (ethertype) {
    case kEtherTypeIpv4:
      error = parse_ipv4(reader, out);
      break;
    case kEtherTypeIpv6:
      error = parse_ipv6(reader, out);
      break;
    default:
      return ParseError::kNotRoce;
  }
  if (error != ParseError::kNone) [[unlikely]]
    return parse_trimmed(ip, ethertype, virtual_bytes, error, out);
  const uint8_t* udp = reader.at;
  error = parse_udp(reader, ip, out);
  if (error != ParseError::kNone) [[unlikely]]
    return parse_trimmed(ip, ethertype, virtual_bytes, error, out);
  size_t pad_bytes = 0;
  error = parse_bth(reader, out, pad_bytes);
  if (error != ParseError::kNone) return error;
  if (out.has(kIsMrc)) [[unlikely]]
    return parse_mrc(reader, ip, udp, pad_bytes, check_icrc, out);
  error = parse_extensions(reader, out);
  if (error != ParseError::kNone) return error;
  error = parse_payload(reader, pad_bytes, out);
  if (error != ParseError::kNone) return error;

  const size_t udp_bytes = load_big_endian<uint16_t>(udp + 4);
  if (check_icrc) {
    if (!has_valid_icrc(ip, udp + udp_bytes - kIcrcBytes)) return ParseError::kBadIcrc;
  }
  if (is_aggregation(out.bth, udp_bytes)) return parse_aggregation(out);
  return ParseError::kNone;
}

}  // namespace

ParseError parse_frame(const uint8_t* frame, size_t frame_bytes, ParsedPacket& out) {
  return parse(frame, frame_bytes, 0, out, true);
}

// A packet of a segment has the headers of the segment's first, and lacks as many bytes at its end as that
// has more of them. What lies beyond its length is no part of it.
constexpr size_t kMostOnceBytes = 28;

ParseError parse_packet(Packet& packet, ParsedPacket& out) {
  const bool check_icrc = !packet.as_length();
  const size_t virtual_bytes = packet.virtual_bytes() + (packet.segment_offset() == 0 ? 0 : kMostOnceBytes);
  ParseError error = parse(packet.data(), packet.size(), virtual_bytes, out, check_icrc);
  if (error != ParseError::kNone && error != ParseError::kNotRoce && packet.virtual_bytes() != 0) {
    packet.materialise();
    out = ParsedPacket();
    error = parse(packet.data(), packet.size(), 0, out, check_icrc);
  }
  out.as_length = packet.as_length();
  out.traffic_kind = packet.traffic_kind();
  out.received_ps = packet.received_ps;
  out.packets = packet.packets();
  out.ends_segment = packet.ends_segment();
  out.segment_offset = packet.segment_offset();
  return error;
}

// A frame that was cut is told from a whole one by UDP's length, so IP's does not matter.
bool parse_datagram(const Packet& packet, uint16_t port, ParsedPacket& out, UdpDatagram& datagram) {
  out.frame = packet.data();
  out.frame_bytes = packet.size();
  Reader reader{packet.data(), packet.frame_bytes(), packet.size()};
  if (!reader.has(kEthernetBytes)) return false;
  std::memcpy(out.destination_mac.data(), reader.at, 6);
  std::memcpy(out.source_mac.data(), reader.at + 6, 6);
  const auto ethertype = load_big_endian<uint16_t>(reader.at + 12);
  reader.skip(kEthernetBytes);
  ParseError error = ParseError::kNotRoce;
  if (ethertype == kEtherTypeIpv4) error = parse_ipv4<Length::kCut>(reader, out);
  if (ethertype == kEtherTypeIpv6) error = parse_ipv6<Length::kCut>(reader, out);
  if (error != ParseError::kNone || !reader.has(kUdpBytes)) return false;
  if (load_big_endian<uint16_t>(reader.at + 2) != port) return false;
  out.source_udp_port = load_big_endian<uint16_t>(reader.at);
  datagram = {reader.at, reader.left, reader.readable, load_big_endian<uint16_t>(reader.at + 4)};
  return true;
}

namespace {

uint16_t folded_udp_sum(const RoceHeaders& headers, const uint8_t* udp, size_t readable_bytes,
                        size_t length_bytes) {
  const size_t address_bytes = headers.source_ip.is_ipv6 ? 16 : 4;
  const uint64_t addresses = internet_sum(headers.source_ip.bytes.data(), address_bytes) +
                             internet_sum(headers.destination_ip.bytes.data(), address_bytes);
  return fold_internet_sum(addresses + kIpProtocolUdp + length_bytes +
                           internet_sum(udp, std::min(readable_bytes, length_bytes)));
}

}  // namespace

bool has_valid_checksum(const ParsedPacket& packet, const UdpDatagram& datagram) {
  if (load_big_endian<uint16_t>(datagram.header + 6) == 0) return true;
  return folded_udp_sum(packet, datagram.header, datagram.readable_bytes, datagram.length_bytes) == 0;
}

// 0 would say that there is none (RFC 768).
uint16_t udp_checksum(const RoceHeaders& headers, const uint8_t* udp, size_t readable_bytes,
                      size_t length_bytes) {
  const uint16_t sum = folded_udp_sum(headers, udp, readable_bytes, length_bytes);
  return sum == 0 ? 0xFFFF : sum;
}

}  // namespace weft::roce
