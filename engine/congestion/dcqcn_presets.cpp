// DCQCN as it was published, as simulations compare with it, and as adapters are delivered with it.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "congestion/dcqcn.hpp"

namespace weft {
namespace {

// Sections 3.1 and 5.2 of the paper. R_AI is 40 Mb/s at 40 Gb/s and in proportion at other rates, R_HAI ten
// times that; the least rate is a thousandth of the line's.
void fill_paper(DcqcnParameters& parameters) {
  const uint64_t line_rate_bps = parameters.line_rate_bps;
  parameters.min_rate_bps = line_rate_bps / 1000;
  parameters.additive_increase_bps = line_rate_bps / 1000;
  parameters.hyper_increase_bps = line_rate_bps / 100;
}

// What both others have: rates are cut at most every 4 us, alpha has a clock of its own, the target stays
// through consecutive cuts, and stages are counted by the timer alone.
void fill_nic(DcqcnParameters& parameters) {
  parameters.decrease_interval_ps = 4 * kPsPerUs;
  parameters.alpha_timer_ps = kPsPerUs;
  parameters.increase_timer_ps = 300 * kPsPerUs;
  parameters.byte_counter_bytes = 0;
  parameters.fast_recovery_stages = 1;
  parameters.clamp_target_rate = false;
}

// run.py gives rates for 25 Gb/s (R_AI 5 Mb/s, R_HAI 50 Mb/s) and scales them, and 1 Gb/s as the least.
void fill_comparison(DcqcnParameters& parameters) {
  fill_nic(parameters);
  const uint64_t line_rate_bps = parameters.line_rate_bps;
  parameters.min_rate_bps = line_rate_bps / 100;
  parameters.additive_increase_bps = line_rate_bps / 5000;
  parameters.hyper_increase_bps = line_rate_bps / 500;
}

// The firmware's defaults, which do not depend on the line's rate: dce_tcp_g 1019 of 1024, rpg_ai_rate 5,
// rpg_hai_rate 50, rpg_min_rate 1 (Mb/s). rpg_byte_reset is left out: its unit is not told consistently, and
// Mellanox's algorithm in HPCC's simulator has no byte counter.
void fill_connectx(DcqcnParameters& parameters) {
  fill_nic(parameters);
  parameters.gain = 5.0 / 1024;
  parameters.min_rate_bps = 1'000'000;
  parameters.additive_increase_bps = 5'000'000;
  parameters.hyper_increase_bps = 50'000'000;
}

using Fill = void (*)(DcqcnParameters&);

// The default first.
constexpr std::array<CongestionPreset, 3> kPresets = {{
    {"hpcc-comparison",
     "HPCC's simulator (alibaba-edu/High-Precision-Congestion-Control: rdma-hw.cc, \"Mellanox's version of "
     "DCQCN\"; run.py --cc dcqcn): marks are told packet by packet",
     0},
    {"connectx", "NVIDIA, DCQCN parameters: the defaults of ConnectX-4 and later adapters", 4 * kPsPerUs},
    {"paper-2015", "Zhu et al., SIGCOMM 2015, sections 3.1 and 5.2", 50 * kPsPerUs},
}};
constexpr std::array<Fill, kPresets.size()> kFills = {&fill_comparison, &fill_connectx, &fill_paper};

}  // namespace

std::span<const CongestionPreset> dcqcn_presets() { return kPresets; }

void fill_dcqcn_preset(const CongestionPreset& preset, DcqcnParameters& parameters) {
  for (size_t at = 0; at < kPresets.size(); ++at) {
    if (kPresets[at].name == preset.name) kFills[at](parameters);
  }
  const auto at_least_one = [](uint64_t& rate_bps) { rate_bps = std::max<uint64_t>(1, rate_bps); };
  at_least_one(parameters.min_rate_bps);
  at_least_one(parameters.additive_increase_bps);
  at_least_one(parameters.hyper_increase_bps);
  parameters.min_rate_bps = std::min(parameters.min_rate_bps, parameters.line_rate_bps);
}

}  // namespace weft
