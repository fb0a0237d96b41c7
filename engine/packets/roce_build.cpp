// Building half of the codec, and the invariant CRC.
#include <algorithm>
#include <cstring>

#include "packets/crc32.hpp"
#include "packets/roce_codec.hpp"
#include "packets/roce_writing.hpp"

namespace weft::roce {

using namespace writing;

namespace {

struct WrittenHeaders {
  const uint8_t* ip;
  uint8_t* end;  // where the payload begins
};

// Everything before a payload of this length.
WrittenHeaders write_headers(const RoceHeaders& headers, const Layout& layout, size_t payload_bytes,
                             uint8_t* out) {
  const uint16_t extensions = layout.extensions;
  const size_t udp_length_bytes = layout.udp_bytes;
  check_values(headers, extensions, payload_bytes, udp_length_bytes);

  uint8_t* const ip = write_ethernet(headers, out);
  uint8_t* const udp = write_ip(headers, udp_length_bytes, ip);
  uint8_t* at = write_udp(headers, udp_length_bytes, udp);
  at = write_bth(headers.bth, pad_bytes(payload_bytes), at);
  at = write_extensions(headers, extensions, at);
  if (headers.aggregation) at = write_aggregation(*headers.aggregation, at);
  return {ip, at};
}

void write_frame(const RoceHeaders& headers, const Layout& layout, const uint8_t* payload,
                 size_t payload_bytes, uint8_t* out) {
  const auto [ip, payload_at] = write_headers(headers, layout, payload_bytes, out);
  write_payload(payload, payload_bytes, ip, payload_at);
}

}  // namespace

bool is_aggregation(const Bth& bth, size_t udp_length_bytes) {
  if (bth.opcode != kUdSendOnly) return false;
  if (bth.destination_qp != kAggregationQueuePair && bth.destination_qp != kMulticastQueuePair) return false;
  constexpr size_t kWithoutLanes = kUdpBytes + kBthBytes + kDethBytes + kAggregationHeaderBytes + kIcrcBytes;
  return std::any_of(kAggregationLaneCounts.begin(), kAggregationLaneCounts.end(),
                     [&](size_t lanes) { return udp_length_bytes == kWithoutLanes + 4 * lanes; });
}

size_t frame_bytes(const RoceHeaders& headers, size_t payload_bytes) {
  return layout_of(headers, payload_bytes).frame_bytes;
}

void write_frame(const RoceHeaders& headers, const uint8_t* payload, size_t payload_bytes, uint8_t* out) {
  write_frame(headers, layout_of(headers, payload_bytes), payload, payload_bytes, out);
}

PacketPtr build_packet(PacketPool& pool, const RoceHeaders& headers, const uint8_t* payload,
                       size_t payload_bytes) {
  const Layout layout = layout_of(headers, payload_bytes);
  PacketPtr packet = pool.allocate(layout.frame_bytes);
  write_frame(headers, layout, payload, payload_bytes, packet->data());
  return packet;
}

uint32_t invariant_crc(const uint8_t* ip, size_t ip_bytes) {
  const bool is_ipv6 = ip[0] >> 4 == 6;
  const size_t ip_header_bytes = is_ipv6 ? kIpv6Bytes : kIpv4Bytes;
  const size_t header_bytes = ip_header_bytes + kUdpBytes + kBthBytes;
  // Eight bytes stand for the local route header, which RoCEv2 does not have; the fields that switches change
  // count as all ones. What fits is copied as a whole, so that an acknowledgement takes one pass.
  constexpr size_t kRouteBytes = 8;
  constexpr size_t kCopiedBytes = kIpv6Bytes + kUdpBytes + kBthBytes + kRethBytes + kImmediateBytes;
  uint8_t masked[kRouteBytes + kCopiedBytes];
  std::memset(masked, 0xFF, kRouteBytes);
  uint8_t* const copy = masked + kRouteBytes;
  const size_t copied_bytes = ip_bytes <= kCopiedBytes ? ip_bytes : header_bytes;
  std::memcpy(copy, ip, copied_bytes);
  if (is_ipv6) {
    copy[0] |= 0x0F;  // traffic class and flow label
    std::memset(copy + 1, 0xFF, 3);
    copy[7] = 0xFF;  // hop limit
  } else {
    copy[1] = 0xFF;              // type of service
    copy[8] = 0xFF;              // time to live
    copy[10] = copy[11] = 0xFF;  // header checksum
  }
  copy[ip_header_bytes + 6] = copy[ip_header_bytes + 7] = 0xFF;  // UDP checksum
  copy[ip_header_bytes + kUdpBytes + 4] = 0xFF;                  // FECN, BECN and reserved bits of the BTH
  const uint32_t state = crc32_update(kCrc32Initial, masked, kRouteBytes + copied_bytes);
  if (copied_bytes == ip_bytes) return ~state;
  return ~crc32_update(state, ip + copied_bytes, ip_bytes - copied_bytes);
}

}  // namespace weft::roce
