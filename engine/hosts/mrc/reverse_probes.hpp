// When a queue pair that receives but sends no data probes a path back, for its reverse EV set. Source: OCP
// MRC 1.0, as docs/mrc.md describes it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hosts/round_trip_estimator.hpp"
#include "time/time.hpp"

namespace weft::mrc {

// Probes have the ids that the NIC's endpoint gave them.
class ReverseProbes {
 public:
  explicit ReverseProbes(TimePs timeout_ps) : timeout_ps_(timeout_ps) {}

  // At the first packet of the peer it is due to wait for a round trip: short messages are over by then.
  bool is_due(TimePs now) const { return now >= next_ps_; }
  bool is_first() const { return next_ps_ == 0; }
  // A round trip; before the first answer a quarter of the timeout, which is about one.
  TimePs interval_ps() const {
    return round_trips_.smoothed_ps() > 0 ? round_trips_.smoothed_ps() : std::max<TimePs>(timeout_ps_ / 4, 1);
  }
  void wait(TimePs now) { next_ps_ = now + interval_ps(); }
  bool has_room() const { return sent_.size() < kMostSent; }
  void on_sent(uint16_t id) { sent_.push_back(id); }
  // It is not waited for any more. Returns whether the probe was one of these.
  bool forget(uint16_t id) { return std::erase(sent_, id) > 0; }
  // Returns whether the probe was one of these.
  bool take_answer(uint16_t id, TimePs round_trip_ps) {
    if (!forget(id)) return false;
    round_trips_.add(std::max<TimePs>(round_trip_ps, 1));
    return true;
  }
  // The peer sends nothing any more.
  void stop() { next_ps_ = kNever; }

 private:
  // Unanswered ones of a timeout, if all paths are dead.
  static constexpr size_t kMostSent = 16;

  TimePs timeout_ps_;
  TimePs next_ps_ = 0;
  RoundTripEstimator round_trips_;
  std::vector<uint16_t> sent_;  // ids
};

}  // namespace weft::mrc
