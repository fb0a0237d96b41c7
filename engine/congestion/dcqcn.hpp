// DCQCN: the rate falls when CNPs come, and recovers in stages by a timer and a byte counter.
// Source: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.1
// (reaction point) and figure 7; the switch marks (p4/include/ecn.p4), the receiver sends CNPs. Adapters
// differ from the paper in when they cut and what they remember; congestion/dcqcn_presets.cpp has both.
#pragma once

#include <cstdint>
#include <span>

#include "congestion/congestion_control.hpp"
#include "congestion/congestion_parameters.hpp"
#include "congestion/congestion_preset.hpp"

namespace weft {

struct DcqcnParameters {
  uint64_t line_rate_bps = 0;  // where a flow starts, and never above
  uint64_t min_rate_bps = 0;   // never below
  double gain = 1.0 / 256;     // g
  // 0 as in the paper: every CNP cuts the rate at once and raises alpha. Above 0 as in adapters: a clock that
  // the first CNP starts cuts the rate every so often if a CNP has come since.
  TimePs decrease_interval_ps = 0;
  // Alpha decays whenever so long no CNP has come. With a decrease interval it is raised by this clock, too,
  // and not by each CNP.
  TimePs alpha_timer_ps = 55 * kPsPerUs;
  // True as in the paper: every cut makes the rate before it the target. False: a cut that follows another
  // before the rate has recovered by a stage leaves the target.
  bool clamp_target_rate = true;
  TimePs increase_timer_ps = 55 * kPsPerUs;
  uint64_t byte_counter_bytes = 10'000'000;       // B; 0: stages are counted by the timer alone
  uint32_t fast_recovery_stages = 5;              // F
  uint64_t additive_increase_bps = 0;             // R_AI
  uint64_t hyper_increase_bps = 0;                // R_HAI
  uint64_t window_bytes = kUnlimitedWindowBytes;  // DCQCN has none of its own

  // Those of the preset, for the line's rate, and what was given beside it. Throws std::invalid_argument for
  // a value out of range or an unknown preset.
  static DcqcnParameters read(const PathProperties& path, ParameterReader& reader);
};

// The default first.
std::span<const CongestionPreset> dcqcn_presets();
// Given the line's rate, fills in the rest.
void fill_dcqcn_preset(const CongestionPreset& preset, DcqcnParameters& parameters);

class Dcqcn final : public CongestionControl {
 public:
  explicit Dcqcn(const DcqcnParameters& parameters);

  std::string_view name() const override { return "dcqcn"; }
  uint64_t window_bytes() const override { return parameters_.window_bytes; }
  uint64_t pacing_rate_bps() const override { return static_cast<uint64_t>(current_rate_bps_); }

  void on_packet_sent(TimePs now, uint64_t frame_bytes, bool retransmission) override;
  void on_congestion_notification(TimePs now) override;
  TimePs next_deadline() const override;
  void on_deadline(TimePs now) override;

  double alpha() const { return alpha_; }
  double target_rate_bps() const { return target_rate_bps_; }

 private:
  void note_for_the_clocks(TimePs now);
  void cut_if_due(TimePs now);
  void cut(TimePs now);
  void advance_alpha(TimePs now);
  void increase_until(TimePs now);
  void increase();

  DcqcnParameters parameters_;
  double current_rate_bps_;  // R_C
  double target_rate_bps_;   // R_T
  double alpha_ = 1.0;
  TimePs next_alpha_ps_ = kNever;     // kNever: no CNP has come
  TimePs next_cut_ps_ = kNever;       // of the clock that cuts, if it has one
  bool notified_for_alpha_ = false;   // a CNP has come since alpha's clock last struck
  bool notified_for_cut_ = false;     // and since that of cuts did
  TimePs next_increase_ps_ = kNever;  // kNever: at line rate
  uint64_t counted_bytes_ = 0;
  uint32_t timer_stage_ = 0;         // T
  uint32_t byte_counter_stage_ = 0;  // BC
  bool sent_since_increase_ = false;
  bool asleep_ = false;  // nothing is being sent: increases are made up for with the next packet
};

}  // namespace weft
