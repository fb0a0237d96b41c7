// Windows that several controls start from, by the path.
#pragma once

#include <algorithm>

#include "congestion/bandwidth_delay_product.hpp"
#include "congestion/congestion_control.hpp"

namespace weft {

// Initial windows of TCP (RFC 6928). A window of the path's product from each of 1,000 senders is 100 MB in a
// queue at once.
constexpr double kInitialWindowPackets = 10;

// Full frames that fill the path of the farthest pair, at least one.
inline double bandwidth_delay_product_packets(const PathProperties& path) {
  const auto product_bytes =
      static_cast<double>(bandwidth_delay_product_bytes(path.line_rate_bps, path.base_round_trip_ps));
  return std::max(1.0, product_bytes / path.frame_bytes);
}

// Below this a window could not keep a link busy while acknowledgements are on their way.
constexpr uint64_t kMinWindowFrames = 8;

// Frame bytes that fill an idle path, and those that wait because acknowledgements come in steps.
inline uint64_t path_filling_window_bytes(const PathProperties& path) {
  return std::max(bandwidth_delay_product_bytes(path.line_rate_bps, path.base_round_trip_ps),
                  kMinWindowFrames * path.frame_bytes) +
         (path.ack_interval_packets - 1) * static_cast<uint64_t>(path.frame_bytes);
}

// Growth of a window in a round trip, in packets: one for each 100 Gb/s, at least one, so that it takes as
// many round trips to a share of the line at any rate.
inline double window_growth_packets(const PathProperties& path) {
  constexpr double kRateOfIncreaseBps = 100e9;
  return std::max(1.0, static_cast<double>(path.line_rate_bps) / kRateOfIncreaseBps);
}

}  // namespace weft
