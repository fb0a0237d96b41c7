#include "congestion/fixed_window.hpp"

#include <algorithm>
#include <stdexcept>

namespace weft {
namespace {

// Below this a window could not keep a line busy while acknowledgements are on their way.
constexpr uint64_t kMinWindowFrames = 8;

}  // namespace

uint64_t bandwidth_delay_product_bytes(uint64_t rate_bps, TimePs round_trip_ps) {
  constexpr auto kBitPsPerByte = static_cast<unsigned __int128>(8) * kPsPerSecond;
  const auto bit_ps = static_cast<unsigned __int128>(rate_bps) * static_cast<uint64_t>(round_trip_ps);
  return static_cast<uint64_t>((bit_ps + kBitPsPerByte - 1) / kBitPsPerByte);
}

FixedWindowParameters FixedWindowParameters::read(const PathProperties& path, ParameterReader& reader) {
  FixedWindowParameters parameters;
  parameters.window_bytes =
      std::max(bandwidth_delay_product_bytes(path.line_rate_bps, path.base_round_trip_ps),
               kMinWindowFrames * path.frame_bytes) +
      (path.ack_interval_packets - 1) * static_cast<uint64_t>(path.frame_bytes);
  reader.read("window_bytes", parameters.window_bytes, 1, kMaxParameterBytes);
  reader.read("pacing_rate_bps", parameters.pacing_rate_bps, 0, kMaxParameterBps);
  return parameters;
}

FixedWindow::FixedWindow(const FixedWindowParameters& parameters)
    : window_bytes_(parameters.window_bytes), pacing_rate_bps_(parameters.pacing_rate_bps) {
  if (window_bytes_ == 0) throw std::invalid_argument("window_bytes is 0 (valid: 1 or more)");
}

}  // namespace weft
