#include "fixed_window.hpp"

#include <stdexcept>

namespace weft {

uint64_t bandwidth_delay_product_bytes(uint64_t rate_bps, TimePs round_trip_ps) {
  constexpr auto kBitPsPerByte = static_cast<unsigned __int128>(8) * kPsPerSecond;
  const auto bit_ps = static_cast<unsigned __int128>(rate_bps) * static_cast<uint64_t>(round_trip_ps);
  return static_cast<uint64_t>((bit_ps + kBitPsPerByte - 1) / kBitPsPerByte);
}

FixedWindow::FixedWindow(uint64_t window_bytes, uint64_t pacing_rate_bps)
    : window_bytes_(window_bytes), pacing_rate_bps_(pacing_rate_bps) {
  if (window_bytes == 0) throw std::invalid_argument("window_bytes is 0 (valid: 1 or more)");
}

}  // namespace weft
