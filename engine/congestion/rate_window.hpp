// A window beside a rate, for controls that set rates only.
// Source: alibaba-edu/High-Precision-Congestion-Control, rdma-queue-pair.cc (GetWin) and run.py: what HPCC's
// authors add to DCQCN and TIMELY for their "DCQCN+w" and "TIMELY+w".
#pragma once

#include <algorithm>

#include "congestion/congestion_control.hpp"
#include "congestion/parameters.hpp"
#include "congestion/window_defaults.hpp"

namespace weft {

constexpr CongestionParameter kRateWindowBytes = {
    "window_bytes",
    "none; with window_follows_rate as of fixed-window",
    1,
    kMaxParameterBytes,
    "frame bytes that may be unacknowledged",
    "HPCC's simulator (GetWin); the algorithm has none of its own"};
constexpr CongestionParameter kWindowFollowsRate = {
    "window_follows_rate",
    0.0,
    0,
    1,
    "1: the window shrinks and grows with the rate, as its share of the port's",
    "HPCC's simulator (GetWin with VAR_WIN)"};

class RateWindow {
 public:
  static RateWindow read(const PathProperties& path, ParameterReader& reader) {
    RateWindow window;
    reader.read(kWindowFollowsRate.name, window.follows_);
    if (window.follows_) window.bytes_ = path_filling_window_bytes(path);
    reader.read(kRateWindowBytes.name, window.bytes_);
    return window;
  }

  uint64_t bytes(double rate_bps, uint64_t line_rate_bps) const {
    if (!follows_) return bytes_;
    const double share = rate_bps / static_cast<double>(line_rate_bps);
    return std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(bytes_) * share));
  }

 private:
  uint64_t bytes_ = kUnlimitedWindowBytes;
  bool follows_ = false;
};

}  // namespace weft
