// Two-rate three-colour meters as BMv2 computes them: token buckets filled since a common origin, the peak
// bucket tried before the committed one.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft {

// Rates in units (bytes or packets) per second, bursts in units.
struct MeterConfig {
  double committed_rate = 0;
  uint64_t committed_burst = 0;
  double peak_rate = 0;
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
    origin_ps_ = now_ps;
    committed_ = Bucket{static_cast<double>(config.committed_burst), 0};
    peak_ = Bucket{static_cast<double>(config.peak_burst), 0};
  }

  // An unconfigured meter marks everything green (P4Runtime 9.5).
  void reset() { configured_ = false; }

  // Colour of a packet of `units` (its bytes, or 1) at `now_ps`.
  Colour execute(uint64_t units, int64_t now_ps) {
    if (!configured_) return kGreen;
    const double elapsed_s = static_cast<double>(now_ps - origin_ps_) * 1e-12;
    if (!peak_.take(units, config_.peak_rate, config_.peak_burst, elapsed_s)) return kRed;
    if (!committed_.take(units, config_.committed_rate, config_.committed_burst, elapsed_s)) return kYellow;
    return kGreen;
  }

 private:
  struct Bucket {
    double tokens;
    double last_s;

    bool take(uint64_t units, double rate, uint64_t burst, double elapsed_s) {
      tokens = std::min(tokens + (elapsed_s - last_s) * rate, static_cast<double>(burst));
      last_s = elapsed_s;
      if (tokens < static_cast<double>(units)) return false;
      tokens -= static_cast<double>(units);
      return true;
    }
  };

  MeterConfig config_;
  Bucket committed_{0, 0};
  Bucket peak_{0, 0};
  int64_t origin_ps_ = 0;
  bool configured_ = false;
};

}  // namespace weft
