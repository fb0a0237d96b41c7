// When a queue pair may send: the window and the rate of its congestion control, which its requests and its
// READ responses share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "congestion/congestion_control.hpp"
#include "time/time.hpp"

namespace weft {

class SendGate {
 public:
  explicit SendGate(CongestionControl& congestion_control) : congestion_control_(congestion_control) {}

  CongestionControl& congestion_control() { return congestion_control_; }
  uint64_t window_bytes() const { return congestion_control_.window_bytes(); }
  uint64_t in_flight_bytes() const { return in_flight_bytes_; }
  // One frame may always be in flight.
  bool has_room(uint64_t frame_bytes) const {
    return in_flight_bytes_ == 0 || in_flight_bytes_ + frame_bytes <= window_bytes();
  }
  // The same with a window that is so much larger.
  bool has_room(uint64_t frame_bytes, uint64_t more_bytes) const {
    const bool beyond = in_flight_bytes_ + frame_bytes > more_bytes;
    return !beyond || has_room(frame_bytes) || in_flight_bytes_ + frame_bytes - more_bytes <= window_bytes();
  }
  // When the rate lets the next frame leave.
  TimePs next_send_ps() const { return next_send_ps_; }
  // Between the newest frame and the next.
  TimePs gap_ps() const { return next_send_ps_ - paced_from_ps_; }

  // The number of the next packet that is sent for the first time.
  uint64_t next_number() const { return next_number_; }
  uint64_t take_number() { return next_number_++; }

  void on_sent(TimePs now, uint64_t frame_bytes, bool retransmission) {
    in_flight_bytes_ += frame_bytes;
    pace_after(now, frame_bytes);
    congestion_control_.on_packet_sent(now, frame_bytes, retransmission);
    follow_rate();
  }
  // Of what is in flight, so many bytes have arrived or are lost.
  void release(uint64_t frame_bytes) { in_flight_bytes_ -= frame_bytes; }

  // A new rate counts from the newest packet on: a gap that was measured at another is made longer or
  // shorter. Returns whether the rate is new.
  bool follow_rate() {
    const uint64_t rate_bps = congestion_control_.pacing_rate_bps();
    if (rate_bps == paced_rate_bps_) return false;
    paced_rate_bps_ = rate_bps;
    next_send_ps_ = paced_from_ps_ + serialisation_ps(paced_bytes_, rate_bps);
    return true;
  }

 private:
  void pace_after(TimePs now, uint64_t frame_bytes) {
    paced_from_ps_ = std::max(next_send_ps_, now);
    paced_bytes_ = frame_bytes;
    paced_rate_bps_ = congestion_control_.pacing_rate_bps();
    next_send_ps_ = paced_from_ps_ + serialisation_ps(frame_bytes, paced_rate_bps_);
  }
  static TimePs serialisation_ps(uint64_t frame_bytes, uint64_t rate_bps) {
    return rate_bps == 0 ? 0 : BitRate::serialisation_ps(frame_bytes, rate_bps);
  }

  CongestionControl& congestion_control_;
  uint64_t in_flight_bytes_ = 0;  // frame bytes sent and neither answered nor taken for lost
  uint64_t next_number_ = 0;
  TimePs next_send_ps_ = 0;      // when the newest packet has left at the present rate
  TimePs paced_from_ps_ = 0;     // when it began to leave
  uint64_t paced_bytes_ = 0;     // its size
  uint64_t paced_rate_bps_ = 0;  // the present rate
};

}  // namespace weft
