// When a segment counts as lost because nothing has answered it. Source: RFC 6298, sections 2 and 5.
#pragma once

#include <algorithm>

#include "hosts/round_trip_estimator.hpp"
#include "time/time.hpp"

namespace weft::tcp {

struct TimeoutLimits {
  TimePs initial_ps = kPsPerSecond;     // before the first round trip: RFC 6298, (2.1)
  TimePs least_ps = kPsPerSecond / 5;   // (2.4) has 1 s, Linux 200 ms
  TimePs most_ps = 120 * kPsPerSecond;  // (2.5): at least 60 s
};

class RetransmissionTimeout {
 public:
  explicit RetransmissionTimeout(const TimeoutLimits& limits) : limits_(limits) {}

  // A round trip of a segment that was sent once, or that its timestamp tells from others (section 3). It
  // ends the backing off.
  void add_round_trip(TimePs round_trip_ps) {
    estimator_.add(std::max<TimePs>(1, round_trip_ps));
    backoff_ = 0;
  }

  TimePs timeout_ps() const {
    const TimePs estimated =
        estimator_.smoothed_ps() == 0 ? initial_ps_or_restarted() : estimator_.timeout_ps();
    TimePs timeout = std::clamp(estimated, limits_.least_ps, limits_.most_ps);
    for (unsigned each = 0; each < backoff_ && timeout < limits_.most_ps; ++each) timeout *= 2;
    return std::min(timeout, limits_.most_ps);
  }

  // (5.5): the timeout doubles.
  void back_off() { ++backoff_; }
  // (5.7): a SYN was lost, so nothing is known of the path: 3 s as data begins.
  void restart_after_lost_syn() {
    restarted_ = true;
    backoff_ = 0;
  }

  TimePs smoothed_round_trip_ps() const { return estimator_.smoothed_ps(); }
  TimePs round_trip_variation_ps() const { return (estimator_.timeout_ps() - estimator_.smoothed_ps()) / 4; }

 private:
  static constexpr TimePs kAfterLostSynPs = 3 * kPsPerSecond;

  TimePs initial_ps_or_restarted() const {
    return restarted_ ? std::max(limits_.initial_ps, kAfterLostSynPs) : limits_.initial_ps;
  }

  TimeoutLimits limits_;
  RoundTripEstimator estimator_;
  unsigned backoff_ = 0;
  bool restarted_ = false;
};

}  // namespace weft::tcp
