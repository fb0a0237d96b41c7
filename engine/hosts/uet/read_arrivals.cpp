#include "hosts/uet/read_arrivals.hpp"

#include <algorithm>

#include "hosts/uet/placing.hpp"

namespace weft::uet {

// Data that an initiator may have asked for and not received: half of what a target remembers, so that lost
// ACKs do not fill that at once.
constexpr uint64_t kMostMissing = kMaxOutstanding / 2;

ReadArrivals::ReadArrivals(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
                           UetCounters& counters, PacketPool& pool)
    : common_(common),
      config_(config),
      common_counters_(common_counters),
      counters_(counters),
      pool_(pool),
      is_ordered_(config.service == UetService::kRod),
      headers_(headers_to_peer(common)),
      psn_map_(common.initial_psn) {
  headers_.dscp = config.control_dscp;
  headers_.ecn = roce::kNotEct;
}

bool ReadArrivals::may_ask(const Message& read, bool first) const {
  if (missing_packets_ >= kMostMissing) return false;
  if (!first) return true;
  const bool is_taken = std::ranges::any_of(reads_, [&](const Read& each) { return each.id == read.id; });
  return !is_taken && reads_.size() < common_.max_outstanding_reads;
}

void ReadArrivals::note_asked(const Message& read, bool first) {
  if (first) {
    const uint64_t packets = read.end_sequence - read.first_sequence;
    reads_.push_back({.first_sequence = read.first_sequence,
                      .id = read.id,
                      .target = read.target,
                      .length_bytes = read.length_bytes,
                      .missing_packets = packets,
                      .arrived = std::vector<bool>(packets),
                      .owner = read.owner});
  }
  // Packets are sent in order first, and a READ stays as long as it has some to send.
  ++reads_.back().asked_packets;
  ++missing_packets_;
}

uint64_t ReadArrivals::done_end(uint64_t accepted) const {
  return reads_.empty() ? accepted : std::min(accepted, reads_.front().first_sequence);
}

// Those under way are still not done.
void ReadArrivals::stop() {
  for (Read& read : reads_) {
    read.target = nullptr;
    read.owner.reset();
  }
  answers_ = {};
}

void ReadArrivals::answer(TimePs now, const roce::ParsedPacket& packet, uint64_t sequence,
                          uint16_t target_pdc, uint8_t nack_code) {
  if (answers_.size() >= kMaxOutstanding) answers_.pop();
  answers_.push({.sequence = sequence,
                 .arrived_ps = now,
                 .entropy = static_cast<uint16_t>(packet.source_udp_port & kEntropyMask),
                 .initiator_pdc = target_pdc,
                 .nack_code = nack_code,
                 .marked = packet.ecn == roce::kCe});
}

bool ReadArrivals::on_response(TimePs now, const roce::ParsedPacket& packet) {
  const ResponsePacket response = load_response(first_header(packet));
  const uint16_t target_pdc = response.pds.spdcid;
  if (packet.ecn == roce::kCe) ++common_counters_.ce_marked_packets;
  const int64_t signed_sequence = psn_map_.sequence(response.pds.psn, arrivals_.expected());
  const auto sequence = static_cast<uint64_t>(std::max<int64_t>(0, signed_sequence));
  const uint64_t expected = arrivals_.expected();
  if (signed_sequence < static_cast<int64_t>(expected) || arrivals_.contains(sequence)) {
    ++common_counters_.duplicate_packets;
    if (signed_sequence >= 0) answer(now, packet, sequence, target_pdc);
    return false;
  }
  if (sequence - expected >= kMaxOutstanding) {
    ++common_counters_.out_of_window_packets;
    return false;
  }
  if (is_ordered_) {
    const GapNotices::Fate fate = gaps_.meet(sequence, expected);
    if (fate != GapNotices::Fate::kTake) {
      ++common_counters_.out_of_sequence_packets;
      if (fate == GapNotices::Fate::kDrop) return false;
      ++counters_.order_nacks_sent;
      answer(now, packet, expected, target_pdc, kNackRodOutOfOrder);
      return false;
    }
  }
  if (packet.trimmed) {
    gaps_.tell(sequence);
    ++counters_.trim_nacks_sent;
    const bool at_last_hop = packet.dscp == kDscpTrimmedLastHop;
    answer(now, packet, sequence, target_pdc, at_last_hop ? kNackTrimmedLastHop : kNackTrimmed);
    return false;
  }
  if (!place(packet, response.response)) {
    ++counters_.wrong_responses;
    return false;
  }
  ++common_counters_.data_packets_received;
  common_counters_.data_bytes_received += packet.payload_bytes;
  received_bytes_ += packet.payload_bytes;
  --missing_packets_;
  const bool in_order = sequence == expected;
  if (!in_order) ++common_counters_.out_of_sequence_packets;
  const bool had_gap = arrivals_.has_gap();
  arrivals_.insert(sequence, {});
  ++waiting_packets_;
  if (!in_order || had_gap || response.pds.ackreq || packet.ecn == roce::kCe)
    answer(now, packet, sequence, target_pdc);
  while (arrivals_.pop()) --waiting_packets_;
  return true;
}

// What nobody has asked for, or has come before, is dropped without an answer.
bool ReadArrivals::place(const roce::ParsedPacket& packet, const ResponseData& response) {
  const auto read = std::ranges::find(reads_, response.read_request_message_id, &Read::id);
  if (read == reads_.end() || response.opcode != kResponseWithData || response.return_code != kReturnOk)
    return false;
  const uint64_t index = response.message_offset / common_.path_mtu_bytes;
  if (index >= read->asked_packets || read->arrived[index]) return false;
  if (!place_read_data(packet, response, read->target, read->length_bytes, common_.path_mtu_bytes))
    return false;
  read->arrived[index] = true;
  if (--read->missing_packets == 0) reads_.erase(read);
  return true;
}

PacketPtr ReadArrivals::build_ack(TimePs now, uint16_t pdc, const Answer& answer) {
  Ack ack{.type = kAckCc,
          .next_header = kResponse,
          .m = answer.marked,
          .spdcid = pdc,
          .dpdcid = answer.initiator_pdc};
  AckCc cc{.cc_type = kNscc};
  set_arrivals(ack, cc, arrivals_, psn_map_, answer.sequence);
  const Response response{.opcode = kDefaultResponse, .return_code = kReturnOk};
  ++common_counters_.acknowledgements_sent;
  return build_frame(pool_, headers_, Body(), ack, cc,
                     nscc_state(now - answer.arrived_ps, received_bytes_, waiting_packets_), response);
}

PacketPtr ReadArrivals::pull_control(TimePs now, uint16_t pdc) {
  if (answers_.empty()) return nullptr;
  const Answer answer = take_answer(answers_, arrivals_);
  set_entropy(headers_, answer.entropy);
  PacketPtr packet;
  if (answer.nack_code == 0) {
    packet = build_ack(now, pdc, answer);
  } else {
    const Nack nack{.m = answer.marked,
                    .nack_code = answer.nack_code,
                    .nack_psn = psn_map_.psn(answer.sequence),
                    .spdcid = pdc,
                    .dpdcid = answer.initiator_pdc};
    packet = build_frame(pool_, headers_, Body(), nack);
  }
  packet->set_traffic_kind(weft::Packet::kControlTraffic);
  return packet;
}

}  // namespace weft::uet
