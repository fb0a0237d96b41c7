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
  sent_.go_back(now, sent_.accepted(), next_sequence_);
  next_sequence_ = sent_.accepted();
  requests_.restart();
  progress_ps_ = now;
}

void RcRequester::on_nak(TimePs now, uint64_t sequence, uint8_t syndrome) {
  if (syndrome == roce::kSyndromeNakSequence) {
    ++counters_.sequence_naks_received;
    if (selective_repeat_) return;  // detect_losses() infers it from what arrived
    // Go-back-N learns of a loss by this NAK alone; selective repeat has its own detection.
    gate_.congestion_control().on_lost_bytes(now, false, oldest_frame_bytes());
    go_back(now);
    return;
  }
  const CompletionStatus status = status_of_nak(syndrome);
  if (status == CompletionStatus::kSuccess) {
    ++counters_.invalid_acknowledgements;
    return;
  }
  ++counters_.fatal_naks_received;
  // What was asked for before is still on its way.
  if (done_end() < sequence) {
    refusal_ = status;
    return;
  }
  fail(status);
}

void RcRequester::on_rnr_nak(TimePs now, uint8_t timer_code) {
  ++counters_.rnr_naks_received;
  ++rnr_retries_;
  if (config_.rnr_retry_limit != kRetriesForEver && rnr_retries_ > config_.rnr_retry_limit) {
    fail(CompletionStatus::kRnrRetryExceeded);
    return;
  }
  go_back(now);
  rnr_until_ps_ = now + rnr_timer_ps(timer_code);
}

void RcRequester::detect_losses(TimePs now) {
  if (error_ != CompletionStatus::kSuccess) return;
  if (const uint64_t lost_bytes = sent_.detect_losses(now); lost_bytes > 0)
    gate_.congestion_control().on_lost_bytes(now, false, lost_bytes);
}

// Of the packet that go-back-N takes for lost; those behind it are sent again, but may have arrived.
uint64_t RcRequester::oldest_frame_bytes() {
  return sent_.accepted() < sent_.highest() ? sent_.packet(sent_.accepted()).frame_bytes : 0;
}

TimePs RcRequester::retransmission_timeout_ps() const {
  // Bounded, so that a link that is up again is tried soon enough.
  const uint32_t doublings = std::min(retries_, config_.timeout_backoff_limit);
  return std::max(config_.retransmission_timeout_ps, sent_.round_trips().timeout_ps()) << doublings;
}

TimePs RcRequester::timeout_deadline() const {
  if (!is_waiting() || error_ != CompletionStatus::kSuccess) return kNever;
  // Without a question on its way no answer can come; a low rate may hold the one that asks back for long.
  return (sent_.is_asked() ? progress_ps_ : std::max(progress_ps_, gate_.next_send_ps())) +
         retransmission_timeout_ps();
}

TimePs RcRequester::next_deadline() const {
  return std::min({timeout_deadline(), wait_until_ps_, gate_.congestion_control().next_deadline(),
                   sent_.loss_deadline_ps()});
}

void RcRequester::on_deadline(TimePs now) {
  if (now >= wait_until_ps_) wait_until_ps_ = kNever;  // the NIC pulls next
  CongestionControl& congestion_control = gate_.congestion_control();
  if (now >= congestion_control.next_deadline()) congestion_control.on_deadline(now);
  if (now >= sent_.loss_deadline_ps()) detect_losses(now);
  if (now >= timeout_deadline()) on_timeout(now);
  follow_rate(now);
  deliver_completions(now);
}

void RcRequester::on_timeout(TimePs now) {
  ++counters_.timeouts;
  if (refusal_ != CompletionStatus::kSuccess) return fail(refusal_);
  // The peer has not answered once since: an answer resets the count.
  if (retries_ == config_.retry_limit) return fail(CompletionStatus::kRetryExceeded);
  const TimePs overdue_ps = now - retransmission_timeout_ps();
  ++retries_;
  if (path_choice_ != nullptr) path_choice_->on_timeout(now);
  if (reads_ != nullptr) {
    reads_->ask_again(sent_.accepted());
    if (next_sequence_ == sent_.accepted()) {
      progress_ps_ = now;
      return;  // the peer's congestion control hears of it, not ours
    }
  }
  if (!selective_repeat_) {
    gate_.congestion_control().on_lost_bytes(now, true, oldest_frame_bytes());
    go_back(now);
    return;
  }
  // The oldest packet, and all others that are as long without an answer as that is allowed to be.
  progress_ps_ = now;
  const uint64_t lost_bytes = sent_.take_overdue_for_lost(now, sent_.accepted(), sent_.highest(), overdue_ps);
  gate_.congestion_control().on_lost_bytes(now, true, lost_bytes);
}

}  // namespace weft
