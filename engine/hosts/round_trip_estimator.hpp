// Smoothed round trip and its variation, for retransmission timeouts. Source: RFC 6298, section 2.
#pragma once

#include "time/time.hpp"

namespace weft {

class RoundTripEstimator {
 public:
  void add(TimePs round_trip_ps) {
    if (smoothed_ps_ == 0) {
      smoothed_ps_ = round_trip_ps;
      variation_ps_ = round_trip_ps / 2;
      return;
    }
    const TimePs error_ps = round_trip_ps - smoothed_ps_;
    variation_ps_ += ((error_ps < 0 ? -error_ps : error_ps) - variation_ps_) / 4;
    smoothed_ps_ += error_ps / 8;
  }

  // 0 before the first round trip.
  TimePs smoothed_ps() const { return smoothed_ps_; }
  // Time after which an answer is overdue; 0 before the first round trip.
  TimePs timeout_ps() const { return smoothed_ps_ + 4 * variation_ps_; }

 private:
  TimePs smoothed_ps_ = 0;
  TimePs variation_ps_ = 0;
};

}  // namespace weft
