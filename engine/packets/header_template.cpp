#include "packets/header_template.hpp"

#include <cstring>

#include "packets/byte_order.hpp"
#include "packets/internet_checksum.hpp"
#include "packets/roce_writing.hpp"

namespace weft::roce {

using namespace writing;

HeaderTemplate::HeaderTemplate(const RoceHeaders& headers)
    : ip_bytes_(headers.source_ip.is_ipv6 ? kIpv6Bytes : kIpv4Bytes) {
  RoceHeaders plain = headers;
  plain.telemetry.reset();
  plain.aggregation.reset();
  plain.flow_label = 0;
  const Layout layout = layout_of(plain, 0);
  check_values(plain, layout.extensions, 0, layout.udp_bytes);
  write_ethernet(plain, ethernet_.data());
  uint8_t* const ip = from_ip_.data();
  uint8_t* const udp = write_ip(plain, 0, ip);
  if (!headers.source_ip.is_ipv6) {
    std::memset(ip + 2, 0, 2);
    std::memset(ip + 10, 0, 2);
    ip_sum_ = internet_sum(ip, kIpv4Bytes);
  }
  store_big_endian<uint16_t>(udp + 2, kUdpPort);
  store_big_endian<uint16_t>(udp + 6, 0);
  write_bth({.migrated = headers.bth.migrated,
             .partition_key = headers.bth.partition_key,
             .fecn = headers.bth.fecn,
             .destination_qp = headers.bth.destination_qp},
            0, udp + kUdpBytes);
}

HeaderTemplate::Written HeaderTemplate::write(const RoceHeaders& headers, const Layout& layout,
                                              size_t payload_bytes, uint8_t* out) const {
  check_values(headers, layout.extensions, payload_bytes, layout.udp_bytes);
  std::memcpy(out, ethernet_.data(), kEthernetBytes);
  uint8_t* ip = out + kEthernetBytes;
  if (headers.telemetry) {
    const auto ip_type = load_big_endian<uint16_t>(out + kEthernetBytes - 2);
    store_big_endian<uint16_t>(out + kEthernetBytes - 2, kEtherTypeIntShim);
    ip = write_int_shim(*headers.telemetry, ip_type, ip);
  }
  const auto udp_length = static_cast<uint16_t>(layout.udp_bytes);
  if (ip_bytes_ == kIpv4Bytes) {
    std::memcpy(ip, from_ip_.data(), kIpv4Bytes + kUdpBytes + kBthBytes);
    const auto total_length = static_cast<uint16_t>(kIpv4Bytes + udp_length);
    store_big_endian<uint16_t>(ip + 2, total_length);
    store_big_endian<uint16_t>(ip + 10, fold_internet_sum(ip_sum_ + total_length));
  } else {
    std::memcpy(ip, from_ip_.data(), kIpv6Bytes + kUdpBytes + kBthBytes);
    store_big_endian<uint32_t>(ip, load_big_endian<uint32_t>(from_ip_.data()) | headers.flow_label);
    store_big_endian<uint16_t>(ip + 4, udp_length);
  }
  uint8_t* const udp = ip + ip_bytes_;
  store_big_endian<uint16_t>(udp, headers.source_udp_port);
  store_big_endian<uint16_t>(udp + 4, udp_length);
  uint8_t* const bth = udp + kUdpBytes;
  bth[0] = headers.bth.opcode;
  bth[1] |= static_cast<uint8_t>((headers.bth.solicited ? 0x80 : 0) | pad_bytes(payload_bytes) << 4);
  bth[4] |= headers.bth.becn ? 0x40 : 0;
  bth[8] = headers.bth.acknowledge_request ? 0x80 : 0;
  store_big_endian_24(bth + 9, headers.bth.psn);
  uint8_t* at = write_extensions(headers, layout.extensions, bth + kBthBytes);
  if (headers.aggregation) at = write_aggregation(*headers.aggregation, at);
  return {ip, at};
}

PacketPtr HeaderTemplate::build(PacketPool& pool, const RoceHeaders& headers, const uint8_t* payload,
                                size_t payload_bytes) const {
  const Layout layout = layout_of(headers, payload_bytes);
  PacketPtr packet = pool.allocate(layout.frame_bytes);
  const auto [ip, payload_at] = write(headers, layout, payload_bytes, packet->data());
  write_payload(payload, payload_bytes, ip, payload_at);
  return packet;
}

PacketPtr HeaderTemplate::build_as_length(PacketPool& pool, const RoceHeaders& headers,
                                          size_t payload_bytes) const {
  const size_t virtual_bytes = payload_bytes + pad_bytes(payload_bytes) + kIcrcBytes;
  const Layout layout = layout_of(headers, payload_bytes);
  PacketPtr packet = pool.allocate(layout.frame_bytes - virtual_bytes);
  write(headers, layout, payload_bytes, packet->data());
  packet->append_virtual(virtual_bytes);
  return packet;
}

}  // namespace weft::roce
