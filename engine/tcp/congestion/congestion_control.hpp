// Congestion control of a TCP connection: acknowledgements and signs of congestion in, a window out. One
// algorithm a file, which registers it (tcp/congestion/registry.hpp). The sender decides what is lost and
// when a window of data has had its reaction; the control decides how much.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "time/time.hpp"

namespace weft::tcp {

struct WindowAcknowledgement {
  TimePs now = 0;
  uint64_t acknowledged_bytes = 0;  // that it newly covers
  uint64_t acknowledged = 0;        // sequence number up to which all has arrived
  uint64_t next = 0;                // sequence number that is sent next
  TimePs smoothed_round_trip_ps = 0;
  TimePs round_trip_ps = 0;     // that it has measured; 0: none
  bool ecn_echo = false;        // ECE is set
  bool window_limited = false;  // the window, not the application or the receiver, held the sender back
};

enum class CongestionSign { kLoss, kEcnEcho };

constexpr uint64_t kUnlimitedThreshold = ~0ull;

class CongestionControl {
 public:
  virtual ~CongestionControl() = default;
  virtual std::string_view name() const = 0;
  // Receivers must echo each CE mark (RFC 8257, section 3.2) and not one per window (RFC 3168,
  // section 6.1.3).
  virtual bool needs_exact_echo() const { return false; }

  // DCTCP's alpha; 0 where there is none.
  virtual double marked_share() const { return 0; }

  // Once, when the handshake has told the size of segments.
  void start(uint32_t segment_bytes, uint32_t window_segments) {
    segment_bytes_ = segment_bytes;
    window_bytes_ = uint64_t{segment_bytes} * window_segments;
  }

  uint64_t window_bytes() const { return window_bytes_; }
  uint64_t slow_start_threshold_bytes() const { return threshold_bytes_; }
  bool in_slow_start() const { return window_bytes_ < threshold_bytes_; }

  // Every acknowledgement of new data, in recovery too, before the reactions to it.
  virtual void observe(const WindowAcknowledgement& /*acknowledgement*/) {}
  // An acknowledgement of new data outside recovery: slow start (RFC 5681, section 3.1, with all bytes
  // counted, as RFC 3465 has it and Linux does), then avoidance with what is left. A window that was not in
  // use does not grow.
  void grow(const WindowAcknowledgement& acknowledgement);
  // The window of a slow start that has not met congestion yet may grow otherwise: by so much, up to an end.
  struct SlowStart {
    uint64_t growth_bytes = 0;
    bool is_over = false;
  };
  // A loss or a mark, at most once for a window of data.
  void on_congestion(TimePs now, CongestionSign sign, uint64_t flight_bytes) {
    threshold_bytes_ = std::max(reduced_bytes(now, sign, flight_bytes), least_threshold_bytes());
    window_bytes_ = threshold_bytes_;
  }
  // A retransmission timeout; `again`: of a segment that has timed out before, so that the threshold stays
  // (RFC 5681, section 3.1, equation 4).
  void on_timeout(TimePs now, uint64_t flight_bytes, bool again) {
    if (!again)
      threshold_bytes_ = std::max(threshold_after_timeout(now, flight_bytes), least_threshold_bytes());
    window_bytes_ = segment_bytes_;
    restart();
  }
  // The end of recovery or of an idle time (RFC 5681, section 4.1; RFC 6582, section 3.2) leaves no more than
  // this.
  void limit_window(uint64_t most_bytes) {
    window_bytes_ = std::max<uint64_t>(segment_bytes_, std::min(window_bytes_, most_bytes));
  }

 protected:
  // The threshold after congestion; flight_bytes: what was in flight then.
  virtual uint64_t reduced_bytes(TimePs now, CongestionSign sign, uint64_t flight_bytes) = 0;
  virtual uint64_t threshold_after_timeout(TimePs now, uint64_t flight_bytes) {
    return reduced_bytes(now, CongestionSign::kLoss, flight_bytes);
  }
  // Congestion avoidance: so many bytes were acknowledged. By default as Reno (RFC 5681, section 3.1): a
  // segment for each window of bytes.
  virtual void avoid(const WindowAcknowledgement& acknowledgement, uint64_t acknowledged_bytes);
  // The first slow start; by default each acknowledged byte adds one.
  virtual SlowStart first_slow_start(const WindowAcknowledgement& acknowledgement) {
    return {acknowledgement.acknowledged_bytes, false};
  }
  // An acknowledgement of a window that was not in use, so that it does not grow.
  virtual void on_unused_window(TimePs /*now*/) {}
  // A timeout: slow start begins again.
  virtual void restart() {}
  virtual uint64_t least_threshold_bytes() const { return 2ull * segment_bytes_; }

  uint32_t segment_bytes() const { return segment_bytes_; }
  void set_window_bytes(uint64_t bytes) { window_bytes_ = bytes; }

 private:
  uint32_t segment_bytes_ = 1;
  uint64_t window_bytes_ = 1;
  uint64_t threshold_bytes_ = kUnlimitedThreshold;
  uint64_t avoided_bytes_ = 0;  // acknowledged since the window last grew in congestion avoidance
};

}  // namespace weft::tcp
