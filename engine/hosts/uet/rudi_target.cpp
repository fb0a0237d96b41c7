#include "hosts/uet/rudi_target.hpp"

#include "paths/path_choice.hpp"

namespace weft::uet {

RudiTarget::RudiTarget(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
                       UetCounters& counters, PacketPool& pool, const MemoryRegistry& memory)
    : common_(common),
      config_(config),
      common_counters_(common_counters),
      counters_(counters),
      pool_(pool),
      memory_(memory),
      headers_(headers_to_peer(common)) {}

uint8_t RudiTarget::place(const roce::ParsedPacket& packet, const WriteHeader& request,
                          ReadPart& part) const {
  // An immediate would be reported as often as it comes.
  if (request.has_header_data) return kReturnUnsupportedOperation;
  if (request.opcode == kRead) return grant_read(packet, request, common_.path_mtu_bytes, memory_, part);
  if (request.opcode != kWrite) return kReturnUnsupportedOperation;
  if (!has_right_size(packet, request, common_.path_mtu_bytes)) return kReturnUnsupportedSize;
  return place_write(packet, request, memory_);
}

void RudiTarget::on_request(const roce::ParsedPacket& packet) {
  if (is_stopped_) {
    ++common_counters_.dropped_in_error;
    return;
  }
  const RudiRequestPacket request = load_rudi_request(first_header(packet));
  Answer answer{.packet_id = request.pds.pkt_id,
                .entropy = static_cast<uint16_t>(packet.source_udp_port & kEntropyMask),
                .message_id = request.write.message_id,
                .is_nack = packet.trimmed,
                .marked = packet.ecn == roce::kCe,
                .retransmitted = request.pds.retx};
  if (answer.marked) ++common_counters_.ce_marked_packets;
  ReadPart part;
  if (packet.trimmed) {
    ++counters_.trim_nacks_sent;
    answer.code = packet.dscp == kDscpTrimmedLastHop ? kNackTrimmedLastHop : kNackTrimmed;
  } else {
    answer.code = place(packet, request.write, part);
  }
  const bool is_granted = !packet.trimmed && answer.code == kReturnOk;
  if (is_granted) {
    ++common_counters_.data_packets_received;
    common_counters_.data_bytes_received += packet.payload_bytes;
  } else if (!packet.trimmed) {
    ++common_counters_.fatal_naks_sent;
  }
  // The initiator repeats what is not answered.
  if (is_granted && request.write.opcode == kRead) {
    if (reads_.size() >= kMaxOutstanding) reads_.pop();
    return reads_.push({answer, part});
  }
  push(answer);
}

void RudiTarget::push(const Answer& answer) {
  if (answers_.size() >= kMaxOutstanding) answers_.pop();
  answers_.push(answer);
}

// It goes back with the entropy of the packet that it answers, by which the initiator knows which
// transmission is meant.
PacketPtr RudiTarget::pull_control() {
  if (answers_.empty()) return nullptr;
  const Answer answer = answers_.pop();
  headers_.dscp = config_.control_dscp;
  headers_.ecn = roce::kNotEct;
  set_entropy(headers_, answer.entropy);
  PacketPtr packet;
  if (answer.is_nack) {
    const Nack nack{.m = answer.marked,
                    .retx = answer.retransmitted,
                    .nt = true,
                    .nack_code = answer.code,
                    .nack_psn = answer.packet_id};
    packet = build_frame(pool_, headers_, Body(), nack);
  } else {
    const Response response{
        .opcode = kOwnResponse, .return_code = answer.code, .message_id = answer.message_id};
    packet = build_frame(pool_, headers_, Body(), header_of(answer, uet::kResponse), response);
    ++common_counters_.acknowledgements_sent;
  }
  packet->set_traffic_kind(weft::Packet::kControlTraffic);
  return packet;
}

Rudi RudiTarget::header_of(const Answer& answer, uint8_t next_header) {
  return {.type = kRudiResponse,
          .next_header = next_header,
          .m = answer.marked,
          .retx = answer.retransmitted,
          .pkt_id = answer.packet_id};
}

// They travel as other data do: switches mark and trim them.
PacketPtr RudiTarget::pull_data() {
  while (!reads_.empty()) {
    Read read = reads_.pop();
    const std::optional<Body> body = body_of(read.part, memory_);
    if (!body) {  // deregistered since it was granted
      ++common_counters_.fatal_naks_sent;
      read.answer.code = kReturnPermissionViolation;
      push(read.answer);
      continue;
    }
    headers_.dscp = read.answer.retransmitted ? config_.retransmission_dscp : config_.data_dscp;
    headers_.ecn = roce::kEct0;
    set_entropy(headers_, read.answer.entropy);
    PacketPtr packet =
        build_frame(pool_, headers_, *body, header_of(read.answer, kResponseData), response_with(read.part));
    packet->set_traffic_kind(read.part.traffic_kind);
    common_counters_.data_bytes_sent += read.part.bytes;
    ++common_counters_.data_packets_sent;
    last_pulled_ = {read.part.bytes, read.part.message_offset == 0};
    return packet;
  }
  return nullptr;
}

void RudiTarget::stop() {
  is_stopped_ = true;
  answers_ = {};
  reads_ = {};
}

}  // namespace weft::uet
