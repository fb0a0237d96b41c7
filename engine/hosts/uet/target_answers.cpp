// What a target answers, and the credit that it grants.
#include <algorithm>

#include "hosts/uet/target.hpp"
#include "paths/path_choice.hpp"

namespace weft::uet {
namespace {

constexpr uint8_t kAckRequestsClear = 1;  // `req` of an ACK

}  // namespace

// The oldest go first: what they say later ones say again, or a timeout asks for.
void Target::answer(Kind kind, const Arrived& arrived, uint8_t nack_code, uint16_t opaque) {
  if (answers_.size() >= kMaxOutstanding) answers_.pop();
  answers_.push({.sequence = arrived.sequence,
                 .arrived_ps = arrived.now,
                 .entropy = static_cast<uint16_t>(arrived.packet.source_udp_port & kEntropyMask),
                 .initiator_pdc = arrived.initiator_pdc,
                 .opaque = opaque,
                 .kind = kind,
                 .nack_code = nack_code,
                 .marked = arrived.packet.ecn == roce::kCe});
}

void Target::nack(uint8_t code, const Arrived& arrived) {
  switch (code) {
    case kNackTrimmed:
    case kNackTrimmedLastHop:
      ++counters_.trim_nacks_sent;
      break;
    case kNackNoPdc:
      ++counters_.pdc_nacks_sent;
      break;
    case kNackNoMessage:
      ++common_counters_.rnr_naks_sent;
      break;
    case kNackRodOutOfOrder:
      ++counters_.order_nacks_sent;
      break;
    case kNackNoResource:
      ++counters_.other_nacks_sent;
      break;
    default:
      // It ends the connection, or says nothing that matters: not on the word of headers that no checksum
      // covers.
      if (arrived.packet.trimmed) {
        ++counters_.late_packets;
        return;
      }
      ++counters_.other_nacks_sent;
  }
  answer(Kind::kNack, arrived, code);
}

PacketPtr Target::build_ack(TimePs now, const Answer& answer) {
  const bool is_refusal = answer.kind == Kind::kRefusal;
  Ack ack{.type = kAckCc,
          .next_header = kResponse,
          .m = answer.marked,
          .probe = answer.kind == Kind::kProbeAck,
          .req = is_refusal ? kAckRequestsClear : uint8_t{0},
          .ack_psn_offset = static_cast<int16_t>(answer.opaque),
          .spdcid = answer.initiator_pdc == initiator_pdc_ ? pdc_ : uint16_t{0},
          .dpdcid = answer.initiator_pdc};
  AckCc cc{.cc_type = pacer_ != nullptr ? kCredit : kNscc};
  set_arrivals(ack, cc, arrivals_, psn_map_, answer.sequence);
  if (is_refusal) {
    // All before the request that is refused has arrived; what has arrived behind it does not matter.
    ack.cack_psn = psn_map_.psn(error_sequence_ - 1);
    ack.ack_psn_offset = 0;
    cc.sack_psn_offset = 1;
    cc.sack_bitmap = 0;
  }
  const NsccState state = nscc_state(now - answer.arrived_ps, received_bytes_, waiting_packets_);
  const Response response{.opcode = is_refusal ? kOwnResponse : kDefaultResponse,
                          .return_code = is_refusal ? error_code_ : uint8_t{kReturnOk},
                          .message_id = is_refusal ? error_message_id_ : uint16_t{0}};
  ++common_counters_.acknowledgements_sent;
  if (pacer_ == nullptr) return build_frame(pool_, headers_, Body(), ack, cc, state, response);
  const CreditState credit{
      .credit = static_cast<uint32_t>(credit_granted_bytes_ / kCreditUnitBytes) & kCreditMask,
      .ooo_count = static_cast<uint16_t>(waiting_packets_)};
  if (answer.initiator_pdc == initiator_pdc_) credit_due_ = false;
  return build_frame(pool_, headers_, Body(), ack, cc, credit, response);
}

PacketPtr Target::build_nack(const Answer& answer) {
  const Nack nack{.m = answer.marked,
                  .nack_code = answer.nack_code,
                  .nack_psn = psn_map_.psn(answer.sequence),
                  .spdcid = is_open_ ? pdc_ : uint16_t{0},
                  .dpdcid = answer.initiator_pdc};
  return build_frame(pool_, headers_, Body(), nack);
}

PacketPtr Target::build_credit() {
  credit_due_ = false;
  ++counters_.credits_sent;
  const Control control{
      .ctl_type = kCreditGrant,
      .isrod = is_ordered_,
      .spdcid = pdc_,
      .dpdcid = initiator_pdc_,
      .ctl_payload = static_cast<uint32_t>(credit_granted_bytes_ / kCreditUnitBytes) & kCreditMask};
  set_entropy(headers_, common_.source_udp_port & kEntropyMask);
  PacketPtr packet = build_frame(pool_, headers_, Body(), control);
  packet->set_traffic_kind(weft::Packet::kControlTraffic);
  return packet;
}

// It goes back with the entropy of the packet that it answers, by which the initiator knows which
// transmission is meant.
PacketPtr Target::pull_control(TimePs now) {
  if (answers_.empty()) return credit_due_ ? build_credit() : nullptr;
  const Answer answer = take_answer(answers_, arrivals_);
  set_entropy(headers_, answer.entropy);
  PacketPtr packet = answer.kind == Kind::kNack ? build_nack(answer) : build_ack(now, answer);
  packet->set_traffic_kind(weft::Packet::kControlTraffic);
  return packet;
}

// Retransmissions and duplicates, too, took the time of the link; of a trimmed packet the rest did not.
void Target::count_for_credit(const roce::ParsedPacket& packet, const RequestPacket& request) {
  if (!is_open_ || request.pds.spdcid != initiator_pdc_) return;
  credit_arrived_bytes_ +=
      packet.trimmed ? 0 : packet.frame_bytes + (packet.as_length ? packet.payload_bytes : 0);
  const uint64_t known_bytes = credit_granted_bytes_ + credit_advance_bytes_;
  if (credit_arrived_bytes_ > known_bytes) {
    pacer_->arrived_in_advance(credit_arrived_bytes_ - known_bytes);
    credit_advance_bytes_ += credit_arrived_bytes_ - known_bytes;
  }
  const uint64_t target_bytes = credit_bytes(request.cc.credit_target, credit_target_bytes_);
  credit_target_bytes_ = std::max(credit_target_bytes_, target_bytes);
  pacer_->want(*this);
}

// An initiator that has credit for a packet and sends none has fallen silent, or has not got the credit: then
// it sends a packet without.
uint64_t Target::credit_wanted_bytes(TimePs now) const {
  if (!is_open_ || credit_target_bytes_ <= credit_granted_bytes_) return 0;
  const bool has_credit = credit_granted_bytes_ >= credit_arrived_bytes_ + largest_frame_bytes_;
  if (has_credit && now - heard_ps_ > common_.retransmission_timeout_ps) return 0;
  return credit_target_bytes_ - credit_granted_bytes_;
}

void Target::grant_credit(uint64_t bytes) {
  credit_granted_bytes_ += bytes;
  credit_due_ = true;
  owner_.on_credit_due();
}

}  // namespace weft::uet
