// Losses that time shows, and probes of a tail that nothing answers. Source: RFC 8985, sections 6 and 7.
#include <algorithm>

#include "tcp/sender.hpp"

namespace weft::tcp {

// Section 6.2, step 5.
void Sender::find_lost_by_time(TimePs now) {
  reordering_at_ = kNever;
  if (!uses_rack() || newest_round_trip_ps_ == 0) return;
  reordering_at_ = scoreboard_.find_lost_by_time(now, newest_round_trip_ps_, reordering_time_ps());
}

TimePs Sender::reordering_time_ps() const {
  const bool late =
      recovery_ != Recovery::kNone || scoreboard_.sacked_segments() >= Scoreboard::kDuplicateThreshold;
  return reordering_window_.duration_ps(late, least_round_trip_ps_, timeout_.smoothed_round_trip_ps());
}

// Section 6.3: what has had no time to be answered may be on its way at a timeout.
TimePs Sender::lost_if_sent_before(TimePs now) const {
  if (!uses_rack() || newest_round_trip_ps_ == 0) return kNever;
  return now - newest_round_trip_ps_ - reordering_time_ps() + 1;
}

// Section 7.2: two round trips after what was last sent or acknowledged, and the delay of an acknowledgement
// if a single segment is in flight; not within recovery, nor after a timeout would be due.
void Sender::arm_tail_probe(TimePs now) {
  tail_probe_at_ = kNever;
  const bool probes = uses_rack() && established_ && recovery_ == Recovery::kNone &&
                      unacknowledged_ >= tail_probed_end_ && !scoreboard_.empty();
  if (!probes || timeout_.smoothed_round_trip_ps() == 0) return;
  TimePs after = 2 * timeout_.smoothed_round_trip_ps();
  if (scoreboard_.flight() <= segment_bytes_) after += config_.most_acknowledgement_delay_ps;
  tail_probe_at_ = std::min(now + after, retransmission_at_);
}

// Section 7.3: new data if there is some, whatever the window, else the last segment once more. The timeout
// counts from here on.
std::optional<Transmission> Sender::take_tail_probe(TimePs now) {
  tail_probe_wanted_ = false;
  if (scoreboard_.empty() || recovery_ != Recovery::kNone) return std::nullopt;
  ++counters_.tail_probes;
  retransmission_at_ = kNever;
  const uint64_t room = window_end_ > next_ ? window_end_ - next_ : 0;
  const uint64_t payload = std::min({uint64_t{segment_bytes_}, data_end_ - std::min(next_, data_end_), room});
  std::optional<Transmission> made;
  if (payload > 0) {
    made = send_new(payload, false, now);
  } else if (SentSegment* last = scoreboard_.last_missing()) {
    made = send_again(*last, now);
  }
  tail_probe_repeats_ = payload == 0;
  tail_probed_end_ = next_;
  return made;
}

// Section 7.4: a probe that was sent again and whose original had arrived is reported as a duplicate. If
// something sent later is acknowledged and no duplicate was, the probe has repaired a loss.
void Sender::settle_tail_probe(const ArrivedAcknowledgement& arrived) {
  if (!tail_probe_repeats_ || arrived.acknowledgement < tail_probed_end_) return;
  const bool repaired = !arrived.duplicate_reported && arrived.acknowledgement > tail_probed_end_;
  if (!arrived.duplicate_reported && !repaired) return;
  tail_probe_repeats_ = false;
  if (repaired && recovery_ == Recovery::kNone && unacknowledged_ >= reduced_end_) {
    reduce(arrived.now, CongestionSign::kLoss, control_->window_bytes());
  }
}

}  // namespace weft::tcp
