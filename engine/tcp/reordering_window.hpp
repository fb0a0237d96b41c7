// How long a segment may be late before it counts as lost. Source: RFC 8985, section 6.2, step 4.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tcp/sequence.hpp"
#include "time/time.hpp"

namespace weft::tcp {

class ReorderingWindow {
 public:
  // An acknowledgement, before its losses are looked for: it may say that something had arrived twice
  // (DSACK), and show that something has arrived after what was sent later.
  void on_acknowledgement(Sequence unacknowledged, Sequence next, bool duplicate_reported, bool reordered) {
    reordering_seen_ = reordering_seen_ || reordered;
    if (in_round_ && unacknowledged >= round_end_) in_round_ = false;
    if (!duplicate_reported || in_round_) return;
    in_round_ = true;
    round_end_ = next;
    multiple_ = std::min(multiple_ + 1, kMostMultiple);
    recoveries_left_ = kRecoveries;
  }

  void on_end_of_recovery() {
    if (recoveries_left_ > 0 && --recoveries_left_ == 0) multiple_ = 1;
  }

  // `late`: in recovery, or so much has been selectively acknowledged that duplicates would show a loss.
  TimePs duration_ps(bool late, TimePs least_round_trip_ps, TimePs smoothed_round_trip_ps) const {
    if (!reordering_seen_ && late) return 0;
    return std::min(static_cast<TimePs>(multiple_) * (least_round_trip_ps / 4), smoothed_round_trip_ps);
  }

 private:
  static constexpr uint32_t kRecoveries = 16;
  static constexpr uint32_t kMostMultiple = 255;  // a round trip bounds the result; this, the product

  bool reordering_seen_ = false;
  bool in_round_ = false;
  Sequence round_end_ = 0;  // RACK.dsack_round
  uint32_t multiple_ = 1;   // RACK.reo_wnd_mult
  uint32_t recoveries_left_ = 0;
};

}  // namespace weft::tcp
