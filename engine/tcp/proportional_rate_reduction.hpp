// How much may leave during fast recovery, so that the flight comes down to the threshold by its end and not
// at once. Source: RFC 9937, sections 6.1 to 6.4.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::tcp {

class ProportionalRateReduction {
 public:
  // Recovery begins; `flight_bytes`: RecoverFS, what was in flight before, without what had been
  // selectively acknowledged earlier.
  void begin(uint64_t threshold_bytes, uint64_t flight_bytes) {
    threshold_bytes_ = threshold_bytes;
    flight_bytes_ = std::max<uint64_t>(1, flight_bytes);
    delivered_bytes_ = sent_bytes_ = 0;
  }

  // An acknowledgement within recovery has shown so many bytes to have arrived, and so many are under way
  // now. `safe`: it acknowledged what had been missing, and nothing more is lost. Result: the window.
  uint64_t window_bytes(uint64_t newly_delivered_bytes, uint64_t pipe_bytes, bool safe,
                        uint32_t segment_bytes) {
    delivered_bytes_ += newly_delivered_bytes;
    uint64_t may_send = 0;
    if (pipe_bytes > threshold_bytes_) {
      const uint64_t share = (delivered_bytes_ * threshold_bytes_ + flight_bytes_ - 1) / flight_bytes_;
      may_send = share - std::min(share, sent_bytes_);
    } else {
      may_send = std::max(delivered_bytes_ - std::min(delivered_bytes_, sent_bytes_), newly_delivered_bytes);
      if (safe) may_send += segment_bytes;
      may_send = std::min(threshold_bytes_ - pipe_bytes, may_send);
    }
    // The fast retransmission itself; less than a segment is nothing.
    if (sent_bytes_ == 0) may_send = std::max<uint64_t>(may_send, segment_bytes);
    return pipe_bytes + may_send;
  }

  void on_sent(uint64_t bytes) { sent_bytes_ += bytes; }

 private:
  uint64_t threshold_bytes_ = 0;  // ssthresh
  uint64_t flight_bytes_ = 1;     // RecoverFS
  uint64_t delivered_bytes_ = 0;  // prr_delivered
  uint64_t sent_bytes_ = 0;       // prr_out
};

}  // namespace weft::tcp
