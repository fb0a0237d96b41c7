// Frames of UET: Ethernet, IP and UDP to port 4793 around a packet, and the headers that queue pairs read
// from one. Unlike packets/uet_codec.hpp, which reads every header, this reads what the engine's queue pairs
// send each other, without allocating.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "packets/header_fields.hpp"
#include "packets/mrc_formats.hpp"
#include "packets/packet.hpp"
#include "packets/roce_codec.hpp"
#include "packets/uet_formats.hpp"

namespace weft::uet {

// Code points of UET's packets: the specification leaves them to the operator; MRC's are taken.
using mrc::is_trimmed;
using mrc::kDscpControl;
using mrc::kDscpTrimmable;
using mrc::kDscpTrimmableRetransmission;
using mrc::kDscpTrimmed;
using mrc::kDscpTrimmedLastHop;

// Units of fields, assumed: docs/spec/uet.md.
constexpr uint32_t kReceivedUnitBytes = 256;  // of NsccState::rcvd_bytes
constexpr uint32_t kMprUnitPsns = 128;        // of AckCc::mpr
constexpr int64_t kServiceUnitPs = 128'000;   // of NsccState::service_time
constexpr uint32_t kSackBits = 64;
constexpr uint16_t kMaxPsnOffset = 0xFFF;  // of SynRequest

// `ctl_type` of a control packet.
enum ControlType : uint8_t { kClearCommand = 2, kCloseCommand = 4, kProbe = 6, kCreditGrant = 7 };

// `nack_code`.
enum NackCode : uint8_t {
  kNackTrimmed = 0x01,
  kNackTrimmedLastHop = 0x02,
  kNackNoPdc = 0x04,
  kNackNoMessage = 0x09,
  kNackNoResource = 0x0A,
  kNackPsnOutOfWindow = 0x0B,
  kNackRodOutOfOrder = 0x0D,
  kNackInvalidDpdcid = 0x0E,
  kNackInvalidSyn = 0x15,
};

// `return_code` of a response.
enum ReturnCode : uint8_t {
  kReturnNull = 0,
  kReturnOk = 1,
  kReturnNoMatch = 5,
  kReturnUnsupportedOperation = 6,
  kReturnUnsupportedSize = 7,
  kReturnPermissionViolation = 23,
  kReturnOperationViolation = 24,
  kReturnBadKey = 28,
  kReturnTooLong = 34,
};

// `opcode` of a response.
enum ResponseOpcode : uint8_t { kDefaultResponse = 0, kOwnResponse = 1, kResponseWithData = 2 };

// `clear_psn_offset` of a packet: all before `accepted` is acknowledged, so no response to it is needed.
constexpr int16_t clear_offset(uint64_t accepted, uint64_t sequence) {
  return static_cast<int16_t>(static_cast<int64_t>(accepted) - 1 - static_cast<int64_t>(sequence));
}

// 32-bit sequence numbers on the wire, 64-bit ones inside a queue pair: as PsnMap of packets/psn.hpp.
class WidePsnMap {
 public:
  explicit WidePsnMap(uint32_t initial_psn) : initial_psn_(initial_psn) {}
  uint32_t psn(uint64_t sequence) const { return static_cast<uint32_t>(initial_psn_ + sequence); }
  // The sequence nearest to `near`; negative for a PSN from before the start.
  int64_t sequence(uint32_t psn_value, uint64_t near) const {
    return static_cast<int64_t>(near) + static_cast<int32_t>(psn_value - psn(near));
  }

 private:
  uint32_t initial_psn_;
};

// Of a WRITE, SEND or READ, first packet or later one: what Standard and Continuation say.
struct WriteHeader {
  uint8_t opcode = 0;
  bool has_header_data = false;
  bool starts_message = false;
  bool ends_message = false;
  uint16_t message_id = 0;
  uint64_t buffer_offset = 0;
  uint64_t memory_key = 0;
  uint64_t header_data = 0;     // of a first packet
  uint16_t payload_length = 0;  // of a later one
  uint32_t message_offset = 0;  // of a later one
  uint32_t request_length = 0;
};

// A request that a PDC carries, but for its payload.
struct RequestPacket {
  Request pds;  // with syn, its dpdcid is 0
  bool syn = false;
  uint16_t psn_offset = 0;  // with syn
  bool asks_for_credit = false;
  RequestCcState cc;  // if it does
  WriteHeader write;
};

// A request of RUDI, but for its payload, and what answers it.
struct RudiRequestPacket {
  Rudi pds;
  WriteHeader write;
};
struct RudiResponsePacket {
  Rudi pds;
  uint8_t return_code = kReturnNull;
  std::optional<ResponseData> data;  // if it carries data of a READ
};

// Data of a READ, but for its payload.
struct ResponsePacket {
  Request pds;
  ResponseData response;
};

// An acknowledgement.
struct AckPacket {
  Ack pds;
  AckCc cc;
  NsccState nscc;
  bool has_credit = false;
  CreditState credit;  // if it has, instead of NSCC's state
  Response response;
  bool has_response = false;
};

// UDP's payload of a packet that parse_frame() has accepted.
inline const uint8_t* first_header(const roce::ParsedPacket& packet) {
  return packet.frame + roce::kEthernetBytes +
         (packet.source_ip.is_ipv6 ? roce::kIpv6Bytes : roce::kIpv4Bytes) + roce::kUdpBytes;
}
inline uint8_t type_of(const uint8_t* header) { return header[0] >> 3; }
inline uint8_t next_header_of(const uint8_t* header) {
  return static_cast<uint8_t>((header[0] << 8 | header[1]) >> 7 & 15);
}
// Of packets that carry messages over a PDC, without and with the state of receiver credits.
constexpr bool is_request(uint8_t type) {
  return type == kRudRequest || type == kRodRequest || type == kRudCcRequest || type == kRodCcRequest;
}
// Of packets that carry messages without one.
constexpr bool needs_no_pdc(uint8_t type) { return type == kRudiRequest || type == kUudRequest; }
constexpr bool has_cc_state(uint8_t type) { return type == kRudCcRequest || type == kRodCcRequest; }
// Whether a request, or an answer of RUDI, is the data of a READ.
inline bool is_response(const uint8_t* header) { return next_header_of(header) == kResponseData; }

// `at` is the first header of a packet of the type that parse_frame() has accepted.
RequestPacket load_request(const uint8_t* at);
ResponsePacket load_response(const uint8_t* at);
AckPacket load_ack(const uint8_t* at);
RudiRequestPacket load_rudi_request(const uint8_t* at);
RudiResponsePacket load_rudi_response(const uint8_t* at);
// Of a packet of UUD.
WriteHeader load_datagram(const uint8_t* at);

// Whom a packet is for: a PDC; a queue pair, whose number stands in PIDonFEP and resource index, if the
// packet establishes a PDC or needs none; or, if it answers one that needed none, who has sent that one.
enum class DestinationKind : uint8_t { kPdc, kQueuePair, kPacketId };
struct Destination {
  DestinationKind kind = DestinationKind::kPdc;
  uint32_t number = 0;
};

// BTH opcode of packets that parse_frame() accepts: no transport of RoCEv2 has it.
constexpr uint8_t kNoOpcode = 0xFF;

// Reads a frame to UDP port 4793 into `out`, a new one: addresses, code points, UDP's source port, and as
// payload what follows the headers of a request. kNotRoce if it is no such frame; otherwise an error says
// that it is one and is malformed. UDP's checksum must be right unless the packet was trimmed, which `out`
// says.
roce::ParseError parse_frame(const weft::Packet& packet, roce::ParsedPacket& out, Destination& to);

// What follows the headers of a packet.
struct Body {
  const uint8_t* payload = nullptr;  // null: zeros
  size_t bytes = 0;
  bool as_length = false;  // zeros that take no memory
};

namespace details {

// Where UDP's header is, and where the first of UET's goes.
struct OpenFrame {
  uint8_t* udp;
  uint8_t* at;
};
OpenFrame begin_frame(const roce::RoceHeaders& to, size_t header_bytes, const Body& body, uint8_t* out);
// Writes what follows the headers, unless it is virtual, and UDP's checksum.
void finish_frame(const OpenFrame& frame, const roce::RoceHeaders& to, size_t header_bytes, const Body& body);

}  // namespace details

// Length of a frame, from Ethernet on, with these headers and so much payload.
template <class... Headers>
constexpr size_t frame_bytes(bool is_ipv6, size_t payload_bytes) {
  return roce::kEthernetBytes + (is_ipv6 ? roce::kIpv6Bytes : roce::kIpv4Bytes) + roce::kUdpBytes +
         (size_t{0} + ... + wire::kHeaderBytes<Headers>)+payload_bytes;
}

// Writes a frame, but for virtual bytes, with these headers, addressed and marked as `to` says. UDP's
// checksum covers virtual bytes as the zeros that they stand for.
template <class... Headers>
void write_frame(const roce::RoceHeaders& to, const Body& body, uint8_t* out, const Headers&... headers) {
  constexpr size_t kHeaderBytes = (size_t{0} + ... + wire::kHeaderBytes<Headers>);
  const details::OpenFrame frame = details::begin_frame(to, kHeaderBytes, body, out);
  uint8_t* at = frame.at;
  ((at = wire::store_header(headers, at)), ...);
  details::finish_frame(frame, to, kHeaderBytes, body);
}

template <class... Headers>
PacketPtr build_frame(PacketPool& pool, const roce::RoceHeaders& to, const Body& body,
                      const Headers&... headers) {
  const size_t virtual_bytes = body.as_length ? body.bytes : 0;
  PacketPtr packet = pool.allocate(frame_bytes<Headers...>(to.source_ip.is_ipv6, body.bytes - virtual_bytes));
  write_frame(to, body, packet->data(), headers...);
  if (body.as_length) packet->append_virtual(virtual_bytes);
  return packet;
}

}  // namespace weft::uet
