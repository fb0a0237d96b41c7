#include "packets/uet_frame.hpp"

#include <algorithm>

#include "packets/byte_order.hpp"
#include "packets/roce_writing.hpp"
#include "packets/udp_datagram.hpp"

namespace weft::uet {
namespace {

constexpr uint8_t kSynBit = 0x04;  // of the second byte of requests and control packets
constexpr size_t kPdsBytes = wire::kHeaderBytes<Request>;
constexpr size_t kWriteBytes = wire::kHeaderBytes<Standard>;
static_assert(kWriteBytes == wire::kHeaderBytes<Continuation>);
static_assert(kPdsBytes == wire::kHeaderBytes<SynRequest>);
static_assert(wire::kHeaderBytes<NsccState> == wire::kHeaderBytes<CreditState>);
constexpr size_t kSmallestBytes = wire::kHeaderBytes<Rudi>;  // of what is looked into

bool has_syn(const uint8_t* at) { return (at[1] & kSynBit) != 0; }

// Up to the semantic header.
size_t request_bytes(uint8_t type) {
  return kPdsBytes + (has_cc_state(type) ? wire::kHeaderBytes<RequestCcState> : 0);
}

// Reads whom a packet is for, and how many bytes of headers it has; 0 if they are not all there.
roce::ParseError find_destination(const uint8_t* at, size_t bytes, Destination& to, size_t& header_bytes) {
  if (bytes < kSmallestBytes) return roce::ParseError::kTruncated;
  switch (type_of(at)) {
    case kRudRequest:
    case kRodRequest:
    case kRudCcRequest:
    case kRodCcRequest:
      header_bytes = request_bytes(type_of(at)) + kWriteBytes;
      // Data of a READ come over a PDC that is there, and take no credit.
      if (is_response(at) && !has_syn(at) && !has_cc_state(type_of(at)))
        header_bytes = kPdsBytes + wire::kHeaderBytes<ResponseData>;
      else if (next_header_of(at) != kRequestStandard)
        return roce::ParseError::kUnknownOpcode;
      break;
    case kRudiRequest:
      header_bytes = wire::kHeaderBytes<Rudi> + kWriteBytes;
      if (next_header_of(at) != kRequestStandard) return roce::ParseError::kUnknownOpcode;
      break;
    case kUudRequest:
      header_bytes = wire::kHeaderBytes<Uud> + kWriteBytes;
      if (next_header_of(at) != kRequestStandard) return roce::ParseError::kUnknownOpcode;
      break;
    case kRudiResponse:
      header_bytes = wire::kHeaderBytes<Rudi>;
      if (next_header_of(at) == kResponse)
        header_bytes += wire::kHeaderBytes<Response>;
      else if (is_response(at))
        header_bytes += wire::kHeaderBytes<ResponseData>;
      else
        return roce::ParseError::kUnknownOpcode;
      break;
    case kAckCc:
      header_bytes = wire::kHeaderBytes<Ack> + wire::kHeaderBytes<AckCc> + wire::kHeaderBytes<NsccState>;
      if (next_header_of(at) == kResponse)
        header_bytes += wire::kHeaderBytes<Response>;
      else if (next_header_of(at) != kNone)
        return roce::ParseError::kUnknownOpcode;
      break;
    case kNack:
      header_bytes = wire::kHeaderBytes<Nack>;
      break;
    case kControl:
      // Without semantic header: whose PDC it establishes nobody could say.
      if (has_syn(at)) return roce::ParseError::kUnknownOpcode;
      header_bytes = wire::kHeaderBytes<Control>;
      break;
    default:
      return roce::ParseError::kUnknownOpcode;
  }
  if (bytes < header_bytes) return roce::ParseError::kTruncated;
  if (type_of(at) == kAckCc && wire::load_field<AckCc, "cc_type">(at + wire::kHeaderBytes<Ack>) > kCredit)
    return roce::ParseError::kUnknownOpcode;
  if (type_of(at) == kRudiResponse || (type_of(at) == kNack && wire::load_field<Nack, "nt">(at) != 0)) {
    to = {DestinationKind::kPacketId, static_cast<uint32_t>(wire::load_field<Nack, "nack_psn">(at))};
    static_assert(wire::kFieldsAt<Nack>[9] == wire::kFieldsAt<Rudi>[7]);
    return roce::ParseError::kNone;
  }
  if (!needs_no_pdc(type_of(at)) && (!is_request(type_of(at)) || !has_syn(at))) {
    // All types have it in the same place.
    to = {DestinationKind::kPdc, static_cast<uint32_t>(wire::load_field<Request, "dpdcid">(at))};
    static_assert(wire::kFieldsAt<Request>[10] == wire::kFieldsAt<Ack>[11]);
    static_assert(wire::kFieldsAt<Request>[10] == wire::kFieldsAt<Nack>[11]);
    static_assert(wire::kFieldsAt<Request>[10] == wire::kFieldsAt<Control>[11]);
    return roce::ParseError::kNone;
  }
  const uint8_t* const write = at + header_bytes - kWriteBytes;
  if (wire::load_field<Standard, "version">(write) != 0) return roce::ParseError::kBadTransportVersion;
  to = {DestinationKind::kQueuePair,
        static_cast<uint32_t>(wire::load_field<Standard, "pid_on_fep">(write) << 12 |
                              wire::load_field<Standard, "resource_index">(write))};
  return roce::ParseError::kNone;
}

template <class Header>
void load_common(WriteHeader& write, const Header& header) {
  write.opcode = header.opcode;
  write.has_header_data = header.hd;
  write.ends_message = header.eom;
  write.message_id = header.message_id;
  write.buffer_offset = header.buffer_offset;
  write.memory_key = header.match_bits;
  write.request_length = header.request_length;
}

WriteHeader load_write(const uint8_t* at) {
  WriteHeader write;
  write.starts_message = (at[1] & 1) != 0;
  if (write.starts_message) {
    Standard header;
    wire::load_header(header, at);
    load_common(write, header);
    write.header_data = header.header_data;
  } else {
    Continuation header;
    wire::load_header(header, at);
    load_common(write, header);
    write.payload_length = header.payload_length;
    write.message_offset = header.message_offset;
  }
  return write;
}

}  // namespace

RequestPacket load_request(const uint8_t* at) {
  RequestPacket request;
  request.syn = has_syn(at);
  if (request.syn) {
    SynRequest header;
    wire::load_header(header, at);
    request.pds = {header.type,
                   header.next_header,
                   header.retx,
                   header.ackreq,
                   header.clear_psn_offset,
                   header.psn,
                   header.spdcid,
                   0};
    request.psn_offset = header.psn_offset;
  } else {
    wire::load_header(request.pds, at);
  }
  const uint8_t type = type_of(at);
  request.asks_for_credit = has_cc_state(type);
  if (request.asks_for_credit) wire::load_header(request.cc, at + kPdsBytes);
  request.write = load_write(at + request_bytes(type));
  return request;
}

RudiRequestPacket load_rudi_request(const uint8_t* at) {
  RudiRequestPacket request;
  wire::load_header(request.pds, at);
  request.write = load_write(at + wire::kHeaderBytes<Rudi>);
  return request;
}

WriteHeader load_datagram(const uint8_t* at) { return load_write(at + wire::kHeaderBytes<Uud>); }

RudiResponsePacket load_rudi_response(const uint8_t* at) {
  RudiResponsePacket answer;
  wire::load_header(answer.pds, at);
  at += wire::kHeaderBytes<Rudi>;
  if (answer.pds.next_header == kResponseData) {
    wire::load_header(answer.data.emplace(), at);
    answer.return_code = answer.data->return_code;
  } else {
    answer.return_code = static_cast<uint8_t>(wire::load_field<Response, "return_code">(at));
  }
  return answer;
}

ResponsePacket load_response(const uint8_t* at) {
  ResponsePacket packet;
  wire::load_header(packet.pds, at);
  wire::load_header(packet.response, at + kPdsBytes);
  return packet;
}

AckPacket load_ack(const uint8_t* at) {
  AckPacket ack;
  wire::load_header(ack.pds, at);
  at += wire::kHeaderBytes<Ack>;
  wire::load_header(ack.cc, at);
  at += wire::kHeaderBytes<AckCc>;
  ack.has_credit = ack.cc.cc_type == kCredit;
  if (ack.has_credit)
    wire::load_header(ack.credit, at);
  else
    wire::load_header(ack.nscc, at);
  ack.has_response = ack.pds.next_header == kResponse;
  if (ack.has_response) wire::load_header(ack.response, at + wire::kHeaderBytes<NsccState>);
  return ack;
}

roce::ParseError parse_frame(const weft::Packet& packet, roce::ParsedPacket& out, Destination& to) {
  roce::UdpDatagram datagram;
  if (!roce::parse_datagram(packet, kUdpPort, out, datagram)) return roce::ParseError::kNotRoce;
  if (datagram.length_bytes < roce::kUdpBytes) return roce::ParseError::kBadUdpLength;
  out.trimmed = is_trimmed(out.dscp) && datagram.length_bytes > datagram.bytes;
  if (!out.trimmed && datagram.length_bytes != datagram.bytes) return roce::ParseError::kBadUdpLength;
  out.bth.opcode = kNoOpcode;
  size_t header_bytes = 0;
  const uint8_t* const at = datagram.header + roce::kUdpBytes;
  const roce::ParseError error =
      find_destination(at, datagram.readable_bytes - roce::kUdpBytes, to, header_bytes);
  if (error != roce::ParseError::kNone) return error;
  // Nothing vouches for what a trimmed packet says; only requests and data of READs lose a payload.
  const bool may_be_trimmed = is_request(type_of(at)) || needs_no_pdc(type_of(at)) ||
                              (type_of(at) == kRudiResponse && is_response(at));
  if (out.trimmed && !may_be_trimmed) return roce::ParseError::kTruncated;
  if (!out.trimmed && !roce::has_valid_checksum(out, datagram)) return roce::ParseError::kBadUdpChecksum;
  const size_t before_payload = roce::kUdpBytes + header_bytes;
  out.payload_bytes = out.trimmed ? 0 : datagram.bytes - before_payload;
  const bool is_there = datagram.readable_bytes == datagram.bytes && out.payload_bytes > 0;
  if (!is_there && datagram.readable_bytes > before_payload && !out.trimmed)
    return roce::ParseError::kTruncated;  // half of it is virtual
  out.payload = is_there ? at + header_bytes : nullptr;
  out.as_length = packet.as_length();
  out.traffic_kind = packet.traffic_kind();
  out.received_ps = packet.received_ps;
  out.packets = packet.packets();
  return roce::ParseError::kNone;
}

namespace details {

OpenFrame begin_frame(const roce::RoceHeaders& to, size_t header_bytes, const Body& body, uint8_t* out) {
  const size_t udp_bytes = roce::kUdpBytes + header_bytes + body.bytes;
  uint8_t* const udp = roce::writing::write_ip(to, udp_bytes, roce::writing::write_ethernet(to, out));
  uint8_t* const at = roce::writing::write_udp(to, udp_bytes, udp);
  store_big_endian<uint16_t>(udp + 2, kUdpPort);
  return {udp, at};
}

void finish_frame(const OpenFrame& frame, const roce::RoceHeaders& to, size_t header_bytes,
                  const Body& body) {
  const size_t real_bytes = body.as_length ? 0 : body.bytes;
  if (body.payload != nullptr)
    std::copy_n(body.payload, real_bytes, frame.at + header_bytes);
  else
    std::fill_n(frame.at + header_bytes, real_bytes, uint8_t{0});
  const size_t before_payload = roce::kUdpBytes + header_bytes;
  store_big_endian<uint16_t>(frame.udp + 6, roce::udp_checksum(to, frame.udp, before_payload + real_bytes,
                                                               before_payload + body.bytes));
}

}  // namespace details
}  // namespace weft::uet
