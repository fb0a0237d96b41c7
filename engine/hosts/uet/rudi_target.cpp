#include "hosts/uet/rudi_target.hpp"

#include "hosts/uet/placing.hpp"
#include "paths/path_choice.hpp"

namespace weft::uet {

RudiTarget::RudiTarget(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
                       UetCounters& counters, PacketPool& pool, const MemoryRegistry& memory)
    : common_(common),
      common_counters_(common_counters),
      counters_(counters),
      pool_(pool),
      memory_(memory),
      headers_(headers_to_peer(common)) {
  headers_.dscp = config.control_dscp;
  headers_.ecn = roce::kNotEct;
}

uint8_t RudiTarget::place(const roce::ParsedPacket& packet, const WriteHeader& write) const {
  // An immediate would be reported as often as it comes.
  if (write.opcode != kWrite || write.has_header_data) return kReturnUnsupportedOperation;
  if (!has_right_size(packet, write, common_.path_mtu_bytes)) return kReturnUnsupportedSize;
  return place_write(packet, write, memory_);
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
  if (packet.trimmed) {
    ++counters_.trim_nacks_sent;
    answer.code = packet.dscp == kDscpTrimmedLastHop ? kNackTrimmedLastHop : kNackTrimmed;
  } else {
    answer.code = place(packet, request.write);
  }
  if (!packet.trimmed && answer.code == kReturnOk) {
    ++common_counters_.data_packets_received;
    common_counters_.data_bytes_received += packet.payload_bytes;
  } else if (!packet.trimmed) {
    ++common_counters_.fatal_naks_sent;
  }
  // The initiator repeats what is not answered.
  if (answers_.size() >= kMaxOutstanding) answers_.pop();
  answers_.push(answer);
}

// It goes back with the entropy of the packet that it answers, by which the initiator knows which
// transmission is meant.
PacketPtr RudiTarget::pull_control() {
  if (answers_.empty()) return nullptr;
  const Answer answer = answers_.pop();
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
    const Rudi pds{.type = kRudiResponse,
                   .next_header = uet::kResponse,
                   .m = answer.marked,
                   .retx = answer.retransmitted,
                   .pkt_id = answer.packet_id};
    const Response response{
        .opcode = kOwnResponse, .return_code = answer.code, .message_id = answer.message_id};
    packet = build_frame(pool_, headers_, Body(), pds, response);
    ++common_counters_.acknowledgements_sent;
  }
  packet->set_traffic_kind(weft::Packet::kControlTraffic);
  return packet;
}

void RudiTarget::stop() {
  is_stopped_ = true;
  answers_ = {};
}

}  // namespace weft::uet
