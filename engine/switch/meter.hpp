// Meters with three colours, colour-blind, in exact integer arithmetic: two rates (RFC 2698), where the peak
// bucket is tried before the committed one, or a single one (RFC 2697), whose tokens fill the committed
// bucket first and then the excess bucket.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "switch/abi.hpp"

namespace weft {

// Rates in units (bytes or packets) per second, bursts in units.
struct MeterConfig {
  uint64_t committed_rate = 0;
  uint64_t committed_burst = 0;
  uint64_t peak_rate = 0;
  uint64_t peak_burst = 0;
  std::optional<uint64_t> excess_burst;  // of a single-rate meter, which has no peak; none: two rates
};

// How full a meter's buckets are, in units of 1e-12, so that a rate times picoseconds stays whole.
struct MeterBuckets {
  using Tokens = unsigned __int128;

  Tokens committed = 0;
  Tokens second = 0;  // peak, or excess with a single rate
  int64_t filled_ps = 0;
};

// What a meter is and has counted, to be brought back later.
struct MeterState {
  std::optional<MeterConfig> config;
  std::array<CounterCell, 3> counters{};  // by colour
  MeterBuckets buckets;
};

class Meter {
 public:
  enum Colour : uint32_t { kGreen = 0, kYellow = 1, kRed = 2 };

  const MeterState& state() const { return state_; }
  void restore(const MeterState& state) { state_ = state; }

  // The buckets start full. Without a configuration everything is green (P4Runtime 9.4). Counters go on.
  void configure(const std::optional<MeterConfig>& config, int64_t now_ps) {
    state_.config = config;
    if (!config) return;
    state_.buckets = {full(config->committed_burst), full(config->excess_burst.value_or(config->peak_burst)),
                      now_ps};
  }

  // Colour of a packet of `units` (its bytes, or 1) at `now_ps`, counted with its `bytes`.
  Colour execute(uint64_t units, uint64_t bytes, int64_t now_ps) {
    const Colour colour = state_.config ? mark(full(units), now_ps) : kGreen;
    CounterCell& counter = state_.counters[colour];
    ++counter.packets;
    counter.bytes += bytes;
    return colour;
  }

 private:
  using Tokens = MeterBuckets::Tokens;

  static Tokens full(uint64_t units) { return Tokens{units} * 1'000'000'000'000u; }

  Colour mark(Tokens needed, int64_t now_ps) {
    const MeterConfig& config = *state_.config;
    auto& [committed, second, filled_ps] = state_.buckets;
    const auto elapsed_ps = static_cast<uint64_t>(std::max<int64_t>(now_ps - filled_ps, 0));
    filled_ps = std::max(filled_ps, now_ps);
    const Tokens spilled =
        fill(committed, Tokens{config.committed_rate} * elapsed_ps, config.committed_burst);
    if (config.excess_burst) {
      fill(second, spilled, *config.excess_burst);
      if (take(committed, needed)) return kGreen;
      return take(second, needed) ? kYellow : kRed;
    }
    fill(second, Tokens{config.peak_rate} * elapsed_ps, config.peak_burst);
    if (!take(second, needed)) return kRed;
    return take(committed, needed) ? kGreen : kYellow;
  }

  // The tokens for which there is no room.
  static Tokens fill(Tokens& bucket, Tokens brought, uint64_t burst) {
    const Tokens taken = std::min(brought, full(burst) - bucket);
    bucket += taken;
    return brought - taken;
  }

  static bool take(Tokens& bucket, Tokens needed) {
    if (bucket < needed) return false;
    bucket -= needed;
    return true;
  }

  MeterState state_;
};

}  // namespace weft
