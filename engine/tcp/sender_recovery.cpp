// What acknowledgements do to a sender: what has arrived, what is lost, and what the window becomes.
#include <algorithm>

#include "tcp/sender.hpp"

namespace weft::tcp {

void Sender::on_acknowledgement(const ArrivedAcknowledgement& arrived) {
  Delivered delivered;
  delivered.now = arrived.now;
  delivered.least_round_trip_ps = least_round_trip_ps_;
  if (established_) {
    ++counters_.received_acknowledgements;
    if (arrived.ecn_echo) ++counters_.received_ecn_echoes;
  }
  const bool duplicate_possible = arrived.acknowledgement == unacknowledged_ && !arrived.with_data;
  next_ = std::max(next_, arrived.acknowledgement);  // a probe was taken in
  scoreboard_.acknowledge(arrived.acknowledgement, delivered);
  unacknowledged_ = std::max(unacknowledged_, arrived.acknowledgement);
  if (sack_) {
    scoreboard_.sack(arrived.sack_blocks, delivered);
    if (!uses_rack()) scoreboard_.find_lost();
    if (arrived.duplicate_reported) ++counters_.reported_duplicates;
    reordering_window_.on_acknowledgement(unacknowledged_, next_, arrived.duplicate_reported,
                                          delivered.reordered);
  }
  const bool duplicate = duplicate_possible && is_duplicate(arrived, delivered);
  if (arrived.window_end) {
    if (*arrived.window_end > window_end_) {
      probe_at_ = kNever;
      probes_ = 0;
    }
    window_end_ = *arrived.window_end;
    largest_window_bytes_ =
        std::max(largest_window_bytes_, window_end_ - std::min(window_end_, unacknowledged_));
  }
  note_round_trip(arrived, delivered);
  if (established_) {
    settle_tail_probe(arrived);
    find_lost_by_time(arrived.now);
  }
  if (delivered.acknowledged > 0) retransmission_at_ = kNever;  // RFC 6298, (5.3): armed anew
  if (delivered.acknowledged > 0 || scoreboard_.empty()) attempts_ = 0;
  if (established_) {
    if (delivered.acknowledged > 0) {
      duplicates_ = 0;
    } else if (duplicate) {
      ++duplicates_;
      ++counters_.duplicate_acknowledgements;
    }
    react(arrived, delivered);
  }
  arm(arrived.now);
  if (delivered.acknowledged > 0 || delivered.newly_sacked > 0) arm_tail_probe(arrived.now);
}

// RFC 6298, section 3: never from a segment that was sent twice, unless a timestamp tells which one was
// answered. Without SACK such a segment, once it fills a gap, acknowledges others that had arrived long
// before.
void Sender::note_round_trip(const ArrivedAcknowledgement& arrived, const Delivered& delivered) {
  if (delivered.newest_transmission > 0)
    newest_round_trip_ps_ = arrived.now - delivered.newest_transmission_ps;
  if (delivered.newest_sent && (sack_ || !delivered.sent_twice)) {
    const TimePs round_trip_ps = arrived.now - *delivered.newest_sent;
    least_round_trip_ps_ = std::min(least_round_trip_ps_, round_trip_ps);
    timeout_.add_round_trip(round_trip_ps);
  } else if (delivered.sent_twice && delivered.acknowledged > 0 && arrived.timestamp_round_trip_ps) {
    timeout_.add_round_trip(*arrived.timestamp_round_trip_ps);
  }
}

// RFC 5681, section 2; with SACK, what newly says that something has arrived (RFC 6675, section 2).
bool Sender::is_duplicate(const ArrivedAcknowledgement& arrived, const Delivered& delivered) const {
  if (sack_) return delivered.newly_sacked > 0;
  return !scoreboard_.empty() && (!arrived.window_end || *arrived.window_end == window_end_);
}

void Sender::react(const ArrivedAcknowledgement& arrived, const Delivered& delivered) {
  const WindowAcknowledgement seen{.now = arrived.now,
                                   .acknowledged_bytes = delivered.acknowledged,
                                   .acknowledged = unacknowledged_,
                                   .next = next_,
                                   .smoothed_round_trip_ps = timeout_.smoothed_round_trip_ps(),
                                   .ecn_echo = arrived.ecn_echo};
  if (delivered.acknowledged > 0) control_->observe(seen);
  if (recovery_ == Recovery::kFast) {
    if (unacknowledged_ < recovery_end_) {
      continue_fast_recovery(delivered, delivered.acknowledged == 0 && duplicates_ > 0);
      return;
    }
    leave_recovery();
    if (shows_loss()) enter_fast_recovery(arrived.now, delivered);
    return;
  }
  if (recovery_ == Recovery::kTimeout && unacknowledged_ >= recovery_end_) leave_recovery();
  if (recovery_ == Recovery::kNone && shows_loss()) {
    enter_fast_recovery(arrived.now, delivered);
  } else {
    react_to_marks_or_grow(arrived, delivered);
  }
}

void Sender::react_to_marks_or_grow(const ArrivedAcknowledgement& arrived, const Delivered& delivered) {
  const bool reduced_lately = unacknowledged_ < reduced_end_;
  if (ecn_ && arrived.ecn_echo && !reduced_lately) {
    ++counters_.ecn_reductions;
    // What this acknowledgement covers was in flight when the mark was made.
    reduce(arrived.now, CongestionSign::kEcnEcho, scoreboard_.flight() + delivered.acknowledged);
    return;
  }
  if (delivered.acknowledged == 0) return;
  // Until a reduced window of data is acknowledged it does not grow, as in Linux; after a timeout it does.
  if (reduced_lately && recovery_ != Recovery::kTimeout) return;
  const Sequence first = unacknowledged_ - delivered.acknowledged;
  control_->grow({.now = arrived.now,
                  .acknowledged_bytes = delivered.acknowledged,
                  .acknowledged = unacknowledged_,
                  .next = next_,
                  .smoothed_round_trip_ps = timeout_.smoothed_round_trip_ps(),
                  .round_trip_ps = delivered.newest_sent ? arrived.now - *delivered.newest_sent : 0,
                  .ecn_echo = arrived.ecn_echo,
                  .window_limited = first < window_limited_end_ || recovery_ == Recovery::kTimeout});
}

// NewReno's window in recovery (RFC 6582, section 3.2, steps 3 and 4); with SACK, that of RFC 9937.
void Sender::continue_fast_recovery(const Delivered& delivered, bool duplicate) {
  if (sack_) {
    if (delivered.newly_delivered > 0) update_rate_reduction(delivered);
    return;
  }
  if (duplicate) inflation_bytes_ += segment_bytes_;
  if (delivered.acknowledged == 0) return;
  inflation_bytes_ -= static_cast<int64_t>(delivered.acknowledged);
  if (delivered.acknowledged >= segment_bytes_) inflation_bytes_ += segment_bytes_;
  scoreboard_.mark_first_lost();
  first_wanted_ = true;
}

bool Sender::shows_loss() {
  if (scoreboard_.empty()) return false;
  if (uses_rack()) return scoreboard_.next_lost() != nullptr;
  if (duplicates_ >= Scoreboard::kDuplicateThreshold) {
    // Without SACK duplicates may answer what recovery sent in vain (RFC 6582, section 3.2, step 2).
    return sack_ || unacknowledged_ > recovery_end_;
  }
  return sack_ && scoreboard_.first_is_lost();
}

void Sender::enter_fast_recovery(TimePs now, const Delivered& delivered) {
  ++counters_.fast_recoveries;
  recovery_ = Recovery::kFast;
  recovery_end_ = next_;
  sent_again_end_ = unacknowledged_;
  rescued_.reset();
  if (unacknowledged_ >= reduced_end_) reduce(now, CongestionSign::kLoss, scoreboard_.flight());
  if (!uses_rack()) {
    scoreboard_.mark_first_lost();
    first_wanted_ = true;
  }
  if (sack_) {
    rate_reduction_.begin(control_->window_bytes(),
                          scoreboard_.flight() - scoreboard_.sacked_bytes() + delivered.newly_delivered);
    losses_seen_ = scoreboard_.losses_found();
    update_rate_reduction(delivered);
  }
  if (!sack_) inflation_bytes_ = int64_t{Scoreboard::kDuplicateThreshold} * segment_bytes_;
}

void Sender::leave_recovery() {
  // RFC 6582, section 3.2, step 3, option 1: no burst at the end.
  if (recovery_ == Recovery::kFast && !sack_) {
    control_->limit_window(std::max<uint64_t>(scoreboard_.flight(), segment_bytes_) + segment_bytes_);
  }
  recovery_ = Recovery::kNone;
  reordering_window_.on_end_of_recovery();
  inflation_bytes_ = 0;
  first_wanted_ = false;
}

// What limited transmit has sent beyond the window does not count (RFC 5681, section 3.2).
void Sender::reduce(TimePs now, CongestionSign sign, uint64_t flight_bytes) {
  control_->on_congestion(now, sign, std::min(flight_bytes, control_->window_bytes()));
  reduced_end_ = next_;
  window_reduced_due_ = ecn_;
}

// RFC 9937, section 6.2: as recovery begins, and at each acknowledgement of something that had not arrived.
void Sender::update_rate_reduction(const Delivered& delivered) {
  const bool safe = delivered.acknowledged > 0 && scoreboard_.losses_found() == losses_seen_;
  losses_seen_ = scoreboard_.losses_found();
  reduced_window_bytes_ =
      rate_reduction_.window_bytes(delivered.newly_delivered, scoreboard_.pipe(), safe, segment_bytes_);
}

}  // namespace weft::tcp
