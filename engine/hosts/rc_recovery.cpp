// What a requester does about losses: go-back-N and selective repeat, timeouts, receiver-not-ready.
#include <algorithm>

#include "hosts/rc_requester.hpp"

namespace weft {
namespace {

CompletionStatus status_of_nak(uint8_t syndrome) {
  switch (syndrome) {
    case roce::kSyndromeNakInvalidRequest:
      return CompletionStatus::kRemoteInvalidRequest;
    case roce::kSyndromeNakRemoteAccess:
      return CompletionStatus::kRemoteAccessError;
    case roce::kSyndromeNakRemoteOperation:
      return CompletionStatus::kRemoteOperationError;
    default:
      return CompletionStatus::kSuccess;
  }
}

}  // namespace

void RcRequester::go_back(TimePs now) {
  for (uint64_t at = unacked_sequence_; at < next_sequence_; ++at) sent_[at].state = SentPacket::State::kLost;
  if (path_choice_ != nullptr && next_sequence_ > unacked_sequence_)
    path_choice_->on_lost(now, sent_[unacked_sequence_].entropy);
  next_sequence_ = unacked_sequence_;
  asked_end_ = unacked_sequence_;
  in_flight_bytes_ = 0;
  send_index_ = 0;
  progress_ps_ = now;
}

void RcRequester::on_nak(TimePs now, uint8_t syndrome) {
  if (syndrome == roce::kSyndromeNakSequence) {
    ++counters_.sequence_naks_received;
    if (selective_repeat_) return;  // detect_losses() infers it from what arrived
    congestion_control_.on_loss(now, false);
    go_back(now);
    return;
  }
  const CompletionStatus status = status_of_nak(syndrome);
  if (status == CompletionStatus::kSuccess) {
    ++counters_.invalid_acknowledgements;
    return;
  }
  ++counters_.fatal_naks_received;
  fail(status);
}

void RcRequester::on_rnr_nak(TimePs now, uint8_t timer_code) {
  ++counters_.rnr_naks_received;
  ++rnr_retries_;
  constexpr uint32_t kForEver = 7;
  if (config_.rnr_retry_limit != kForEver && rnr_retries_ > config_.rnr_retry_limit) {
    fail(CompletionStatus::kRnrRetryExceeded);
    return;
  }
  go_back(now);
  rnr_until_ps_ = now + rnr_timer_ps(timer_code);
}

void RcRequester::detect_losses(TimePs now) {
  if (error_ != CompletionStatus::kSuccess) return;
  const auto is_out = [this](uint64_t sequence, TimePs sent_ps) {
    if (sequence < unacked_sequence_) return false;
    const SentPacket& packet = sent_[sequence];
    return packet.state == SentPacket::State::kInFlight && packet.sent_ps == sent_ps;
  };
  bool any = false;
  while (const std::optional<uint64_t> sequence = loss_detector_.next_lost(now, is_out)) {
    take_for_lost(now, *sequence);
    any = true;
  }
  if (any) congestion_control_.on_loss(now, false);
}

void RcRequester::take_for_lost(TimePs now, uint64_t sequence) {
  SentPacket& packet = sent_[sequence];
  packet.state = SentPacket::State::kLost;
  in_flight_bytes_ -= packet.frame_bytes;
  lost_.push(sequence);
  if (path_choice_ != nullptr) path_choice_->on_lost(now, packet.entropy);
}

TimePs RcRequester::retransmission_timeout_ps() const {
  const uint32_t doublings = std::min(retries_, config_.timeout_backoff_limit);
  return std::max(config_.retransmission_timeout_ps, round_trips_.timeout_ps()) << doublings;
}

TimePs RcRequester::timeout_deadline() const {
  if (next_sequence_ == unacked_sequence_ || error_ != CompletionStatus::kSuccess) return kNever;
  // Without a question on its way no answer can come; a low rate may hold the one that asks back for long.
  const bool asked = asked_end_ > unacked_sequence_;
  return (asked ? progress_ps_ : std::max(progress_ps_, next_send_ps_)) + retransmission_timeout_ps();
}

TimePs RcRequester::next_deadline() const {
  TimePs deadline = std::min({timeout_deadline(), wait_until_ps_, congestion_control_.next_deadline()});
  if (selective_repeat_) deadline = std::min(deadline, loss_detector_.deadline_ps());
  return deadline;
}

void RcRequester::on_deadline(TimePs now) {
  if (now >= wait_until_ps_) wait_until_ps_ = kNever;  // the NIC pulls next
  if (now >= congestion_control_.next_deadline()) congestion_control_.on_deadline(now);
  if (selective_repeat_ && now >= loss_detector_.deadline_ps()) detect_losses(now);
  if (now >= timeout_deadline()) on_timeout(now);
  follow_rate(now);
  deliver_completions(now);
}

void RcRequester::on_timeout(TimePs now) {
  ++counters_.timeouts;
  if (retries_ == config_.retry_limit) {
    fail(CompletionStatus::kRetryExceeded);
    return;
  }
  const TimePs overdue_ps = now - retransmission_timeout_ps();
  ++retries_;
  congestion_control_.on_loss(now, true);
  if (!selective_repeat_) {
    go_back(now);
    return;
  }
  // The oldest packet, and all others that are as long without an answer as that is allowed to be.
  progress_ps_ = now;
  for (uint64_t at = unacked_sequence_; at < highest_sequence_; ++at) {
    const SentPacket& packet = sent_[at];
    const bool overdue = at == unacked_sequence_ || packet.sent_ps <= overdue_ps;
    if (packet.state == SentPacket::State::kInFlight && overdue) take_for_lost(now, at);
  }
}

}  // namespace weft
