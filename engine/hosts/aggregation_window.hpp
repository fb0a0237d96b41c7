// How many contributions a worker has in flight: DCTCP's window (RFC 8257), in messages, driven by the marks
// of results. A switch passes a mark of any contribution on to the result (p4/include/aggregation.p4), so
// every worker of a job hears of congestion on any link of the tree.
#pragma once

#include <cstdint>

namespace weft {

class AggregationWindow {
 public:
  // RFC 8257, section 4.2: "g" of the estimate of the share of marked packets.
  static constexpr double kGain = 1.0 / 16;

  // As many as there are slots to begin with, as RoCE begins at line rate, and at most.
  explicit AggregationWindow(uint32_t slot_count);

  bool allows(uint32_t in_flight) const { return in_flight < static_cast<uint32_t>(window_); }
  // A result came for `message`; the worker sends `next_message` next.
  void on_result(uint64_t message, uint64_t next_message, bool is_marked);

  double messages() const { return window_; }
  // The estimate of the share of marked results ("DCTCP.Alpha").
  double marked_share() const { return marked_share_; }

 private:
  void end_window(uint64_t next_message);

  double most_;
  double window_;
  double marked_share_ = 1.0;  // RFC 8257, section 4.2: the first mark halves the window
  uint64_t window_end_ = 0;    // the first message sent after the present window of observation began
  uint64_t results_ = 0;       // of this window
  uint64_t marked_results_ = 0;
};

}  // namespace weft
