// Losses that time shows, and probes of a tail that nothing answers. Source: RFC 8985, sections 6 and 7.
#include <algorithm>

#include "tcp/sender.hpp"

namespace weft::tcp {

// The reordering time is a quarter of the least round trip (section 6.2, step 4), and does not adapt to what
// DSACK would say.
void Sender::find_lost_by_time(TimePs now) {
  reordering_at_ = kNever;
  if (!sack_ || !config_.rack_tlp || newest_round_trip_ps_ == 0) return;
  reordering_at_ = scoreboard_.find_lost_by_time(now, newest_round_trip_ps_, least_round_trip_ps_ / 4);
}

// Section 7.2: two round trips after what was last sent or acknowledged, and the delay of an acknowledgement
// if a single segment is in flight; not within recovery, nor after a timeout would be due.
void Sender::arm_tail_probe(TimePs now) {
  tail_probe_at_ = kNever;
  const bool probes = sack_ && config_.rack_tlp && established_ && recovery_ == Recovery::kNone &&
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
  tail_probed_end_ = next_;
  return made;
}

}  // namespace weft::tcp
