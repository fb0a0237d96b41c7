// Two-rate three-colour meters (RFC 2698, colour-blind), in exact integer arithmetic: the peak bucket is
// tried before the committed one.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft {

// Rates in units (bytes or packets) per second, bursts in units.
struct MeterConfig {
  uint64_t committed_rate = 0;
  uint64_t committed_burst = 0;
  uint64_t peak_rate = 0;
  uint64_t peak_burst = 0;
};

class Meter {
 public:
  enum Colour : uint32_t { kGreen = 0, kYellow = 1, kRed = 2 };

  bool configured() const { return configured_; }
  const MeterConfig& config() const { return config_; }

  void configure(const MeterConfig& config, int64_t now_ps) {
    config_ = config;
    configured_ = true;
    last_ps_ = now_ps;
    committed_ = full(config.committed_burst);
    peak_ = full(config.peak_burst);
  }

  // An unconfigured meter marks everything green (P4Runtime 9.5).
  void reset() { configured_ = false; }

  // Colour of a packet of `units` (its bytes, or 1) at `now_ps`.
  Colour execute(uint64_t units, int64_t now_ps) {
    if (!configured_) return kGreen;
    const auto elapsed_ps = static_cast<uint64_t>(std::max<int64_t>(now_ps - last_ps_, 0));
    last_ps_ = std::max(last_ps_, now_ps);
    fill(committed_, config_.committed_rate, config_.committed_burst, elapsed_ps);
    fill(peak_, config_.peak_rate, config_.peak_burst, elapsed_ps);
    const Tokens needed = full(units);
    if (peak_ < needed) return kRed;
    peak_ -= needed;
    if (committed_ < needed) return kYellow;
    committed_ -= needed;
    return kGreen;
  }

 private:
  // In units of 1e-12, so that a rate times picoseconds stays whole.
  using Tokens = unsigned __int128;

  static Tokens full(uint64_t units) { return Tokens{units} * 1'000'000'000'000u; }

  static void fill(Tokens& tokens, uint64_t rate, uint64_t burst, uint64_t elapsed_ps) {
    tokens = std::min(tokens + Tokens{rate} * elapsed_ps, full(burst));
  }

  MeterConfig config_;
  Tokens committed_ = 0;
  Tokens peak_ = 0;
  int64_t last_ps_ = 0;
  bool configured_ = false;
};

}  // namespace weft
