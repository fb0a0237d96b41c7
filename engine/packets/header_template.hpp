// The headers of a queue pair's packets, written once: of one packet to the next little more changes than
// opcode, PSN and lengths.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "packets/packet.hpp"
#include "packets/roce_formats.hpp"
#include "packets/roce_writing.hpp"

namespace weft::roce {

class HeaderTemplate {
 public:
  // Throws std::invalid_argument as write_frame() does.
  explicit HeaderTemplate(const RoceHeaders& headers);

  // A packet as build_packet() makes it. MAC and IP addresses, DSCP, ECN, hop limit, identification,
  // fragmentation, partition key, destination queue pair, FECN and the migration bit are the template's;
  // `headers` must have the same. Throws std::invalid_argument as build_packet() does.
  PacketPtr build(PacketPool& pool, const RoceHeaders& headers, const uint8_t* payload = nullptr,
                  size_t payload_bytes = 0) const;
  // The same with its payload as a length: payload, pad and iCRC are virtual bytes. Nothing checks its iCRC.
  PacketPtr build_as_length(PacketPool& pool, const RoceHeaders& headers, size_t payload_bytes) const;

 private:
  struct Written {
    const uint8_t* ip;
    uint8_t* end;  // where the payload begins
  };
  // Everything before a payload of this length.
  Written write(const RoceHeaders& headers, const writing::Layout& layout, size_t payload_bytes,
                uint8_t* out) const;

  std::array<uint8_t, kEthernetBytes> ethernet_{};
  std::array<uint8_t, kIpv6Bytes + kUdpBytes + kBthBytes> from_ip_{};  // to the BTH; shorter of IPv4
  size_t ip_bytes_;
  uint64_t ip_sum_ = 0;  // IPv4: of the header's words without length and checksum
};

}  // namespace weft::roce
