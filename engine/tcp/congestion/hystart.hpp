// HyStart++: the first slow start slows down as round trips grow, before a queue overflows. Source: RFC 9406,
// sections 4.2 and 4.3, for senders that do not pace.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tcp/congestion/congestion_control.hpp"

namespace weft::tcp {

class HyStart {
 public:
  // How much an acknowledgement lets the window grow.
  uint64_t growth_bytes(const WindowAcknowledgement& acknowledgement, uint32_t segment_bytes) {
    if (acknowledgement.acknowledged > round_end_) begin_round(acknowledgement.next);
    if (acknowledgement.round_trip_ps > 0) {
      least_ps_ = std::min(least_ps_, acknowledgement.round_trip_ps);
      ++samples_;
    }
    const uint64_t most = kMostSegmentsAtOnce * segment_bytes;
    const uint64_t growth = std::min(acknowledgement.acknowledged_bytes, most);
    const uint64_t made = is_conservative() ? growth / kConservativeDivisor : growth;
    decide();
    return made;
  }

  // Congestion avoidance begins.
  bool is_over() const { return conservative_rounds_ >= kConservativeRounds; }

 private:
  static constexpr TimePs kLeastThresholdPs = 4 * kPsPerSecond / 1000;  // MIN_RTT_THRESH
  static constexpr TimePs kMostThresholdPs = 16 * kPsPerSecond / 1000;  // MAX_RTT_THRESH
  static constexpr TimePs kThresholdDivisor = 8;                        // MIN_RTT_DIVISOR
  static constexpr uint32_t kSamples = 8;                               // N_RTT_SAMPLE
  static constexpr uint32_t kConservativeDivisor = 4;                   // CSS_GROWTH_DIVISOR
  static constexpr uint32_t kConservativeRounds = 5;                    // CSS_ROUNDS
  static constexpr uint64_t kMostSegmentsAtOnce = 8;                    // L

  bool is_conservative() const { return baseline_ps_ != kNever; }

  void begin_round(uint64_t next) {
    round_end_ = next;
    last_least_ps_ = least_ps_;
    least_ps_ = kNever;
    samples_ = 0;
    if (is_conservative()) ++conservative_rounds_;
  }

  void decide() {
    if (samples_ < kSamples) return;
    if (is_conservative()) {
      if (least_ps_ >= baseline_ps_) return;
      baseline_ps_ = kNever;  // the round trips had grown by chance
      conservative_rounds_ = 0;
    } else if (last_least_ps_ != kNever) {
      const TimePs threshold =
          std::max(kLeastThresholdPs, std::min(last_least_ps_ / kThresholdDivisor, kMostThresholdPs));
      if (least_ps_ >= last_least_ps_ + threshold) baseline_ps_ = least_ps_;
    }
  }

  uint64_t round_end_ = 0;         // windowEnd
  TimePs last_least_ps_ = kNever;  // lastRoundMinRTT
  TimePs least_ps_ = kNever;       // currentRoundMinRTT
  TimePs baseline_ps_ = kNever;    // cssBaselineMinRtt
  uint32_t samples_ = 0;           // rttSampleCount
  uint32_t conservative_rounds_ = 0;
};

}  // namespace weft::tcp
