// A fixed window, normally one bandwidth-delay product; reacts to nothing.
#pragma once

#include <cstdint>

#include "congestion/congestion_control.hpp"
#include "congestion/congestion_parameters.hpp"

namespace weft {

// Bytes on the way in `round_trip_ps` at `rate_bps`, rounded up.
uint64_t bandwidth_delay_product_bytes(uint64_t rate_bps, TimePs round_trip_ps);

struct FixedWindowParameters {
  uint64_t window_bytes = 0;
  uint64_t pacing_rate_bps = 0;  // 0 leaves pacing to the port

  // The window is the path's bandwidth-delay product, and at least eight frames; and on top of it what is
  // not acknowledged yet because acknowledgements come in steps. Throws
  // std::invalid_argument for a value out of range.
  static FixedWindowParameters read(const PathProperties& path, ParameterReader& reader);
};

class FixedWindow final : public CongestionControl {
 public:
  // Throws std::invalid_argument for a window of 0.
  explicit FixedWindow(const FixedWindowParameters& parameters);

  std::string_view name() const override { return "fixed-window"; }
  uint64_t window_bytes() const override { return window_bytes_; }
  uint64_t pacing_rate_bps() const override { return pacing_rate_bps_; }

 private:
  uint64_t window_bytes_;
  uint64_t pacing_rate_bps_;
};

}  // namespace weft
