// Builds and parses RoCEv2 frames. Parsing validates everything a NIC checks before it looks at a queue pair
// and copies no payload; every refusal has a name, which receivers count.
#pragma once

#include <cstddef>
#include <cstdint>

#include "packets/packet.hpp"
#include "packets/roce_formats.hpp"
#include "time/time.hpp"

namespace weft::roce {

enum class ParseError : uint8_t {
  kNone,
  kNotRoce,      // not IPv4/IPv6 over UDP to port 4791
  kTruncated,    // a header or length field points past the end of the frame
  kBadIpHeader,  // IP version or header length (RoCEv2 carries no IPv4 options)
  kBadIpChecksum,
  kFragmented,           // RoCEv2 is never fragmented
  kBadUdpLength,         // disagrees with the IP length
  kBadUdpChecksum,       // present (non-zero) and wrong
  kBadIntShim,           // version, slot count, hop count or next EtherType
  kBadTransportVersion,  // BTH TVer is not 0
  kUnknownOpcode,
  kBadPadCount,        // payload with pad is no multiple of four, pad exceeds payload, or pad without payload
  kUnexpectedPayload,  // an opcode without payload carries one
  kBadAggregationHeader,  // version, kind, lane count or pad
  kBadIcrc,
  kBadMrcHeader,  // a value of m or op that is reserved, or an endpoint operation to another queue pair than
                  // 2
  kCount,
};

// Snake-case name, as used for drop counters ("bad_icrc").
const char* parse_error_name(ParseError error);

// A parsed packet: the headers by value and the payload as a view into the frame, which must outlive it.
struct ParsedPacket : RoceHeaders {
  const uint8_t* frame = nullptr;
  size_t frame_bytes = 0;
  uint16_t extensions = 0;           // Extension bits of the opcode
  const uint8_t* payload = nullptr;  // without pad; the lanes of an aggregation packet; null if it is virtual
  size_t payload_bytes = 0;
  bool as_length = false;  // made with a virtual payload: its bytes stand for nothing
  bool trimmed = false;  // MRC: a switch cut the payload off; the headers are whole, nothing vouches for them
  uint8_t traffic_kind = 0;  // the packet's
  TimePs received_ps = 0;
  // Of a segment: how many packets these headers stand for, how many came before them, and whether the
  // segment ends with them. Position and opcode are those of the whole.
  uint32_t packets = 1;
  uint32_t segment_offset = 0;
  bool ends_segment = true;

  bool has(Extension extension) const { return (extensions & extension) != 0; }
};

// Whether a packet to UDP port 4791 is one of Weft's aggregation packets rather than ordinary RoCEv2.
bool is_aggregation(const Bth& bth, size_t udp_length_bytes);

// Parses one Ethernet frame into `out`, a new one: complete only if the result is kNone; after other results
// it holds what was read up to the fault.
ParseError parse_frame(const uint8_t* frame, size_t frame_bytes, ParsedPacket& out);
// Of a packet made as a length no iCRC is checked. Virtual bytes that a header lies in are written out.
ParseError parse_packet(Packet& packet, ParsedPacket& out);

// Length of the Ethernet frame (without FCS) of these headers over a payload of `payload_bytes`.
// Throws std::invalid_argument if the opcode is unknown.
size_t frame_bytes(const RoceHeaders& headers, size_t payload_bytes);

// Writes the frame to `out`, which has frame_bytes(headers, payload_bytes) bytes: lengths, pad, checksums and
// iCRC are computed, the UDP checksum is 0. `payload` null stands for zeros. Throws std::invalid_argument for
// values that do not fit their field, a payload where the opcode has none, aggregation headers whose lane
// count is not the payload's, or addresses of two IP versions.
void write_frame(const RoceHeaders& headers, const uint8_t* payload, size_t payload_bytes, uint8_t* out);

// A pooled packet with the frame.
PacketPtr build_packet(PacketPool& pool, const RoceHeaders& headers, const uint8_t* payload = nullptr,
                       size_t payload_bytes = 0);

// The invariant CRC (annex A17.3.3) of a packet from the first byte of its IP header up to and without its
// last four bytes, in host order; it is sent little-endian. `ip_bytes` is the length without those four. The
// caller vouches for a complete IP, UDP and BTH header.
uint32_t invariant_crc(const uint8_t* ip, size_t ip_bytes);

}  // namespace weft::roce
