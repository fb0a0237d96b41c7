#include "tcp/congestion/congestion_control.hpp"

namespace weft::tcp {

void CongestionControl::grow(const WindowAcknowledgement& acknowledgement) {
  if (!acknowledgement.window_limited) {
    avoided_bytes_ = 0;
    on_unused_window(acknowledgement.now);
    return;
  }
  uint64_t left = acknowledgement.acknowledged_bytes;
  if (threshold_bytes_ == kUnlimitedThreshold) {
    const SlowStart first = first_slow_start(acknowledgement);
    window_bytes_ += first.growth_bytes;
    if (first.is_over) threshold_bytes_ = window_bytes_;
    return;
  }
  if (in_slow_start()) {
    const uint64_t growth = std::min(left, threshold_bytes_ - window_bytes_);
    window_bytes_ += growth;
    left -= growth;
  }
  if (left > 0) avoid(acknowledgement, left);
}

void CongestionControl::avoid(const WindowAcknowledgement& /*acknowledgement*/, uint64_t acknowledged_bytes) {
  avoided_bytes_ += acknowledged_bytes;
  if (avoided_bytes_ < window_bytes_) return;
  avoided_bytes_ -= window_bytes_;
  window_bytes_ += segment_bytes_;
}

}  // namespace weft::tcp
