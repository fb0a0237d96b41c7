// How much memory a paused class still needs.
#pragma once

#include <cstdint>

#include "links/mac_control.hpp"
#include "time/time.hpp"

namespace weft {

// Bytes that may still come in after a port has decided to pause a class (IEEE 802.1Qbb-2011, annex O): the
// pause frame waits for a frame of ours that has begun, and takes its own time; both ways of the link are
// full; the far end finishes a frame that has begun, and takes response_ps to act and this end to account.
inline uint64_t pfc_headroom_bytes(uint64_t rate_bps, TimePs delay_ps, uint64_t frame_bytes,
                                   TimePs response_ps) {
  const auto times_ps = static_cast<unsigned __int128>(2 * delay_ps + response_ps);
  const auto bits_ps = times_ps * rate_bps;
  constexpr unsigned __int128 kBitsPsPerByte = 8 * static_cast<unsigned __int128>(kPsPerSecond);
  const auto in_flight_bytes = static_cast<uint64_t>((bits_ps + kBitsPsPerByte - 1) / kBitsPsPerByte);
  // The frame that crosses the threshold is admitted before; the first to need headroom may have begun then.
  return in_flight_bytes + 2 * frame_bytes + mac_control::kFrameBytes;
}

}  // namespace weft
