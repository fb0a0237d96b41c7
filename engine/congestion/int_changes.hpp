// What two INT stacks of one path say about the time between them (docs/spec/frames.md has the fields).
#pragma once

#include <algorithm>
#include <cstdint>

#include "packets/int_rates.hpp"
#include "packets/roce_formats.hpp"
#include "time/time.hpp"

namespace weft {

constexpr uint32_t kIntTimestampMask = 0xFFFFFF;
constexpr uint32_t kIntTxUnitMask = 0xFFFFF;
constexpr double kTxUnitBytes = 128;
constexpr double kQueueCellBytes = 80;

inline bool is_of_path(const roce::IntStack& known, const roce::IntStack& stack) {
  return known.path_id == stack.path_id && known.hop_count == stack.hop_count;
}

// Between two stamps of one port; both counters wrap.
inline uint32_t passed_between_ns(const roce::IntHop& before, const roce::IntHop& now) {
  return (now.timestamp_ns - before.timestamp_ns) & kIntTimestampMask;
}
inline double sent_between_bytes(const roce::IntHop& before, const roce::IntHop& now) {
  return kTxUnitBytes * ((now.tx_units - before.tx_units) & kIntTxUnitMask);
}

// Whether a stack from so long ago does not say how much was sent since: the byte counter of a link at 1.6
// Tb/s wraps in 0.67 ms, that of slower ones and the time stamp later.
inline bool is_stale(const roce::IntStack& stack, TimePs age_ps, const IntRates& rates_bps) {
  constexpr double kTxWrapBits = 8 * kTxUnitBytes * (kIntTxUnitMask + 1.0);
  uint64_t fastest_bps = 1'000'000'000;
  for (size_t hop = 0; hop < stack.hop_count; ++hop)
    fastest_bps = std::max(fastest_bps, rates_bps[stack.hops[hop].rate_code]);
  const double wrap_ps = kTxWrapBits / static_cast<double>(fastest_bps) * static_cast<double>(kPsPerSecond);
  return static_cast<double>(age_ps) > wrap_ps / 2;
}

}  // namespace weft
