// What an initiator learns of the packets that it has sent, and what it repeats.
#include <algorithm>
#include <utility>

#include "hosts/uet/initiator.hpp"
#include "hosts/uet/return_status.hpp"
#include "hosts/uet/stream_answers.hpp"

namespace weft::uet {

void Initiator::on_ack(TimePs now, const roce::ParsedPacket& packet) {
  if (error_ != CompletionStatus::kSuccess) return;
  const AckPacket ack = load_ack(first_header(packet));
  const bool is_other_pdc = state_ == PdcState::kClosed || ack.pds.dpdcid != pdc_ ||
                            (state_ != PdcState::kSyn && ack.pds.spdcid != target_pdc_);
  if (is_other_pdc) {
    ++counters_.late_packets;
    return;
  }
  ++common_counters_.acknowledgements_received;
  const std::optional<SentStream::Arrivals> arrivals = read_arrivals(ack, psn_map_, sent_, packet.hop_limit);
  if (!arrivals) {
    ++common_counters_.invalid_acknowledgements;
    return;
  }
  if (state_ == PdcState::kSyn) {
    // One of an earlier PDC with the same identifier, or of another queue pair's.
    const int64_t end = psn_map_.sequence(ack.pds.cack_psn, sent_.accepted()) + 1;
    if (end < static_cast<int64_t>(pdc_start_)) {
      ++counters_.late_packets;
      return;
    }
    if (ack.pds.spdcid == 0) {
      // All that it answers the target has from the last PDC: the new one begins behind that.
      pdc_start_ = static_cast<uint64_t>(end);
    } else {
      state_ = PdcState::kEstablished;
      target_pdc_ = ack.pds.spdcid;
    }
  }
  if (ack.has_credit) ledger_.grant(ack.credit.credit);
  if (ack.has_response && ack.response.return_code > kReturnOk) {
    ++common_counters_.fatal_naks_received;
    clear_wanted_ = true;
    // All before what is refused has arrived, whatever ACKs are lost.
    const int64_t refused = psn_map_.sequence(ack.pds.cack_psn, sent_.accepted()) + 1;
    if (refused >= static_cast<int64_t>(sent_.accepted())) {
      refused_sequence_ = static_cast<uint64_t>(refused);
      sent_.acknowledge(now, {.end = refused_sequence_,
                              .first = refused_sequence_,
                              .hop_limit = packet.hop_limit,
                              .misses_end = true});
    }
    fail(status_of_return_code(ack.response.return_code));
    return deliver_completions(now);
  }
  if (!acknowledge(now, *arrivals) && !ack.pds.probe) ++common_counters_.stale_acknowledgements;
  if (ack.pds.probe) on_probe_answer(now, static_cast<uint16_t>(ack.pds.ack_psn_offset));
  detect_losses(now);
  follow_rate(now);
  if (state_ == PdcState::kClosing && sent_.accepted() > pdc_close_) {
    close_pdc();
    ++counters_.pdcs_closed;
  }
  // It was opened for what has arrived before, so the target does not know it.
  if (state_ == PdcState::kSyn && ack.pds.spdcid == 0 && !is_waiting()) close_pdc();
  deliver_completions(now);
}

void Initiator::on_response(TimePs now, const roce::ParsedPacket& packet) {
  if (error_ != CompletionStatus::kSuccess) {
    ++common_counters_.dropped_in_error;
    return;
  }
  const ResponsePacket response = load_response(first_header(packet));
  const bool is_other_pdc = reads_ == nullptr || state_ == PdcState::kClosed || response.pds.dpdcid != pdc_ ||
                            (state_ != PdcState::kSyn && response.pds.spdcid != target_pdc_);
  if (is_other_pdc) {
    ++counters_.late_packets;
    return;
  }
  if (!reads_->on_response(now, packet)) return;
  if (!is_waiting()) progress_ps_ = now;
  retries_ = 0;
  deliver_completions(now);
}

void Initiator::on_credit(TimePs now, const Control& control) {
  const bool is_other_pdc = state_ == PdcState::kClosed || control.dpdcid != pdc_ ||
                            (state_ != PdcState::kSyn && control.spdcid != target_pdc_);
  if (is_other_pdc) {
    ++counters_.late_packets;
    return;
  }
  ++counters_.credits_received;
  if (ledger_.grant(control.ctl_payload & kCreditMask) && starved_ps_ != kNever) starved_ps_ = now;
}

bool Initiator::acknowledge(TimePs now, const SentStream::Arrivals& arrivals) {
  if (!Sender::acknowledge(now, arrivals)) return false;
  if (sent_.accepted() > unreceived_sequence_) rnr_retries_ = 0;
  return true;
}

void Initiator::on_probe_answer(TimePs now, uint16_t opaque) {
  const auto newer_probes = static_cast<uint16_t>(probe_opaque_ - opaque);
  TimePs& probe_sent_ps = probes_sent_ps_[opaque % kProbes];
  if (newer_probes >= kProbes || probe_sent_ps == kNever) return;
  const TimePs sent_ps = std::exchange(probe_sent_ps, kNever);
  sent_.on_probe_answer(now, sent_ps);
  // On one path, what was sent before the probe and has not arrived does not come any more.
  if (is_ordered_ && is_waiting() && newest_sent_ps_ < sent_ps) {
    go_back(now);
    probes_sent_ps_.fill(kNever);
  }
  retries_ = 0;
}

void Initiator::on_nack(TimePs now, const roce::ParsedPacket& packet) {
  if (error_ != CompletionStatus::kSuccess) return;
  Nack nack;
  wire::load_header(nack, first_header(packet));
  if (state_ == PdcState::kClosed || nack.dpdcid != pdc_) {
    ++counters_.late_packets;
    return;
  }
  const std::optional<uint64_t> sequence = sequence_out(psn_map_.sequence(nack.nack_psn, sent_.accepted()));
  if (!sequence) return;
  silence_.end();
  const uint16_t entropy = packet.source_udp_port & kEntropyMask;
  switch (nack.nack_code) {
    case kNackTrimmed:
    case kNackTrimmedLastHop:
      note_trimming(now, nack.nack_code, entropy);
      break;
    case kNackNoPdc:
      ++counters_.pdc_nacks_received;
      blocked_until_ps_ = now + common_.retransmission_timeout_ps;
      break;
    case kNackNoMessage:
      return on_not_ready(now, *sequence, entropy);
    case kNackNoResource:
      ++counters_.other_nacks_received;
      blocked_until_ps_ = now + common_.retransmission_timeout_ps;
      break;
    case kNackRodOutOfOrder:
      ++counters_.order_nacks_received;
      return on_gap(now, *sequence, packet.hop_limit);
    case kNackInvalidDpdcid:
      ++counters_.other_nacks_received;
      return reopen(now);
    case kNackPsnOutOfWindow:
      ++counters_.other_nacks_received;
      break;
    default:
      // The target's state contradicts ours.
      ++counters_.other_nacks_received;
      fail(CompletionStatus::kRemoteOperationError);
      return deliver_completions(now);
  }
  lose(now, *sequence, entropy);
  detect_losses(now);  // it forgets what is refused again and again
}

// The target has no receive for the packet's SEND. Others that were on their way when the wait began meet the
// same: they cost no retry of their own.
void Initiator::on_not_ready(TimePs now, uint64_t sequence, uint16_t entropy) {
  ++common_counters_.rnr_naks_received;
  if (is_ordered_)
    restart(now);
  else if (!sent_.take_refused_for_lost(sequence, entropy))
    return;
  note_news(now);
  unreceived_sequence_ = sequence;
  if (now < blocked_until_ps_) return;
  if (common_.rnr_retry_limit != kRetriesForEver && rnr_retries_ == common_.rnr_retry_limit) {
    fail(CompletionStatus::kRnrRetryExceeded);
    return deliver_completions(now);
  }
  ++rnr_retries_;
  blocked_until_ps_ = now + rnr_timer_ps(common_.rnr_timer_code);
}

// ROD: the target has all before this packet.
void Initiator::on_gap(TimePs now, uint64_t sequence, uint8_t hop_limit) {
  if (!is_ordered_) return;
  if (sequence > sent_.accepted())
    acknowledge(now, {.end = sequence, .first = sequence, .hop_limit = hop_limit});
  go_back(now);
  deliver_completions(now);
}

// The target has heard nothing for long, and has given up the PDC: what has not arrived goes over another.
void Initiator::reopen(TimePs now) {
  if (state_ == PdcState::kSyn) return;  // it says nothing about a PDC that it has not named
  if (state_ == PdcState::kClosing || retries_ == common_.retry_limit) {
    fail(CompletionStatus::kRemoteOperationError);
    return deliver_completions(now);
  }
  note_retry(now);
  ++counters_.pdcs_reopened;
  probes_sent_ps_.fill(kNever);
  close_pdc();
  if (is_ordered_)
    restart(now);
  else
    sent_.lose_all();
}

TimePs Initiator::answer_deadline() const {
  // Without a PDC nothing is under way that an answer could come for.
  if (state_ == PdcState::kClosed) return kNever;
  return std::max(timeout_deadline(), blocked_until_ps_ + retransmission_timeout_ps());
}

TimePs Initiator::question_deadline() const {
  if (state_ == PdcState::kClosed) return kNever;
  return may_probe() ? silence_deadline(patience_ps(), doublings(), blocked_until_ps_)
                     : repetition_deadline(std::max(blocked_until_ps_, gate_.next_send_ps()));
}

TimePs Initiator::idle_deadline() const {
  if (state_ != PdcState::kEstablished || !messages_.empty()) return kNever;
  return progress_ps_ + config_.pdc_idle_ps;
}

// Nothing is in flight that would be missed, so the grant is.
TimePs Initiator::credit_deadline() const {
  if (starved_ps_ == kNever || is_waiting()) return kNever;
  return std::max(starved_ps_, progress_ps_) + common_.retransmission_timeout_ps;
}

// All requests have arrived, so the data are overdue, or the target is no more.
TimePs Initiator::read_deadline() const {
  if (reads_ == nullptr || !reads_->is_waiting() || is_waiting()) return kNever;
  return progress_ps_ + retransmission_timeout_ps();
}

TimePs Initiator::next_deadline() const {
  const TimePs of_congestion_ps = gate_.congestion_control().next_deadline();
  if (error_ != CompletionStatus::kSuccess) return of_congestion_ps;
  return std::min({answer_deadline(), question_deadline(), idle_deadline(), credit_deadline(),
                   read_deadline(), sending_deadline(), of_congestion_ps});
}

void Initiator::on_deadline(TimePs now) {
  end_wait(now);
  CongestionControl& congestion_control = gate_.congestion_control();
  if (now >= congestion_control.next_deadline()) congestion_control.on_deadline(now);
  if (error_ != CompletionStatus::kSuccess) return;
  if (now >= sent_.loss_deadline_ps()) detect_losses(now);
  if (now >= question_deadline()) silence_.ask(now);
  if (now >= answer_deadline()) on_timeout(now);
  if (now >= read_deadline()) ask_after_reads(now);
  if (now >= credit_deadline()) {
    ledger_.forgive(largest_frame_bytes_);
    starved_ps_ = kNever;
  }
  if (now >= idle_deadline()) {
    pdc_close_ = messages_.add_close();
    state_ = PdcState::kClosing;
  }
  gate_.follow_rate();
  deliver_completions(now);
}

// Data may take longer than a round trip: only if the probe before was not answered, something is lost.
void Initiator::ask_after_reads(TimePs now) {
  if (retries_ > 0) ++common_counters_.timeouts;
  if (retries_ == common_.retry_limit) return fail(CompletionStatus::kRetryExceeded);
  note_retry(now);
  silence_.ask(now);
}

void Initiator::on_timeout(TimePs now) {
  if (!take_timeout(now)) return fail(CompletionStatus::kRetryExceeded);
  ledger_.forgive(largest_frame_bytes_);
}

void Initiator::fail(CompletionStatus status) {
  error_ = status;
  stop();
  if (reads_ != nullptr) reads_->stop();
  close_pdc();
  starved_ps_ = kNever;
}

}  // namespace weft::uet
