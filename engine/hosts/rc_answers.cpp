// The packets that a responder answers with: acknowledgements, NAKs, results, congestion notifications.
#include <utility>

#include "hosts/end_to_end_credits.hpp"
#include "hosts/rc_responder.hpp"

namespace weft {

PacketPtr RcResponder::pull_control(TimePs /*now*/) {
  if (!marks_.empty()) return build_answer_of_like_marks();
  if (pending_answer_ != Answer::kNone) return build_answer();
  if (!selective_answers_.empty()) return build_selective_answer();
  if (reads_ != nullptr && reads_->has_result()) return build_result();
  if (notifier_.has_cnp()) return build_cnp();
  return nullptr;
}

PacketPtr RcResponder::build_answer_of_like_marks() {
  const Marked stretch = marks_.pop();
  answered_end_ = stretch.last + 1;
  headers_.bth.psn = psn_map_.psn(stretch.last);
  headers_.aeth = {ack_syndrome(), msn_};
  counters_.acknowledgements_sent += acknowledgements_;
  return build_acknowledgement(stretch.marked);
}

// The receive of a message in progress counts until the message does.
uint8_t RcResponder::ack_syndrome() {
  if (!config_.end_to_end_credits) return roce::kSyndromeAckNoCredits;
  promised_credits_ = credit_code(receives_.size());
  return promised_credits_;
}

// Acknowledges all that has arrived by now, however many packets asked for it.
PacketPtr RcResponder::build_answer() {
  const bool is_ack = pending_answer_ == Answer::kAck;
  pending_answer_ = Answer::kNone;
  const bool read_failed = !is_ack && reads_ != nullptr && reads_->failed_psn();
  const uint64_t refused = read_failed ? *reads_->failed_psn() : expected_sequence_;
  headers_.bth.psn = psn_map_.psn(is_ack ? expected_sequence_ - 1 : refused);
  headers_.aeth = {is_ack ? ack_syndrome() : pending_syndrome_, msn_};
  if (!is_ack) acknowledgements_ = 1;
  if (is_ack) {
    counters_.acknowledgements_sent += acknowledgements_;
  } else if (pending_syndrome_ == roce::kSyndromeNakSequence) {
    ++counters_.sequence_naks_sent;
  } else if (pending_syndrome_ < roce::kSyndromeNakSequence) {
    ++counters_.rnr_naks_sent;
  } else {
    ++counters_.fatal_naks_sent;
  }
  const bool marked = mark_ && expected_sequence_ > answered_end_;
  answered_end_ = expected_sequence_;
  return build_acknowledgement(marked);
}

// One for each packet behind a gap; packets in order are acknowledged all at once, if they are marked alike.
PacketPtr RcResponder::build_selective_answer() {
  const SelectiveAnswers::Answer answer = selective_answers_.take(expected_sequence_);
  const bool gap = arrivals_.has_gap() && answer.end == expected_sequence_;
  headers_.aeth = {static_cast<uint8_t>(gap ? roce::kSyndromeNakSequence : roce::kSyndromeAckNoCredits),
                   psn_map_.psn(answer.answered)};
  headers_.bth.psn = psn_map_.psn(gap ? answer.end : answer.end - 1);
  if (gap) acknowledgements_ = 1;
  (gap ? counters_.sequence_naks_sent : counters_.acknowledgements_sent) += acknowledgements_;
  return build_acknowledgement(answer.marked);
}

// BECN reports the mark to the sender (InfiniBand specification, annex A10: a CNP, or an ACK).
PacketPtr RcResponder::build_acknowledgement(bool marked) {
  headers_.bth.opcode = roce::kRcAcknowledge;
  headers_.bth.becn = marked;
  headers_.telemetry = std::exchange(echo_, std::nullopt);
  if (headers_.telemetry) headers_.telemetry->echo = true;
  PacketPtr packet = build_packet();
  packet->set_packets(std::exchange(acknowledgements_, 1));
  return packet;
}

// The result of an atomic, which acknowledges it.
PacketPtr RcResponder::build_result() {
  const ReadResponder::Result result = reads_->next_result();
  headers_.bth.opcode = roce::kRcAtomicAcknowledge;
  headers_.bth.becn = false;
  headers_.bth.psn = psn_map_.psn(result.psn);
  headers_.aeth = {roce::kSyndromeAckNoCredits, result.msn};
  headers_.atomic_ack_original = result.original;
  headers_.telemetry.reset();
  ++counters_.acknowledgements_sent;
  return build_packet();
}

PacketPtr RcResponder::build_cnp() {
  notifier_.take(headers_);
  ++counters_.cnps_sent;
  return build_packet();
}

PacketPtr RcResponder::build_packet() {
  return as_length_ ? template_.build_as_length(pool_, headers_, 0) : template_.build(pool_, headers_);
}

}  // namespace weft
