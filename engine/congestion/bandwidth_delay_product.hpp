// Bytes that fill a path.
#pragma once

#include <cstdint>

#include "time/time.hpp"

namespace weft {

// Bytes on the way in `round_trip_ps` at `rate_bps`, rounded up.
constexpr uint64_t bandwidth_delay_product_bytes(uint64_t rate_bps, TimePs round_trip_ps) {
  constexpr auto kBitPsPerByte = static_cast<unsigned __int128>(8) * kPsPerSecond;
  const auto bit_ps = static_cast<unsigned __int128>(rate_bps) * static_cast<uint64_t>(round_trip_ps);
  return static_cast<uint64_t>((bit_ps + kBitPsPerByte - 1) / kBitPsPerByte);
}

}  // namespace weft
