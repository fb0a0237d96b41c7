// DCQCN: the rate falls when CNPs come, and recovers in stages by a timer and a byte counter.
// Source: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.1
// (reaction point) and figure 7; the switch marks (p4/include/ecn.p4), the receiver sends CNPs.
#pragma once

#include <cstdint>

#include "congestion_control.hpp"
#include "congestion_parameters.hpp"

namespace weft {

struct DcqcnParameters {
  uint64_t line_rate_bps = 0;             // where a flow starts, and never above
  uint64_t min_rate_bps = 0;              // never below
  double gain = 1.0 / 256;                // g
  TimePs alpha_timer_ps = 55 * kPsPerUs;  // alpha decays whenever so long no CNP has come
  TimePs increase_timer_ps = 55 * kPsPerUs;
  uint64_t byte_counter_bytes = 10'000'000;       // B
  uint32_t fast_recovery_stages = 5;              // F
  uint64_t additive_increase_bps = 0;             // R_AI
  uint64_t hyper_increase_bps = 0;                // R_HAI
  uint64_t window_bytes = kUnlimitedWindowBytes;  // DCQCN has none of its own

  // R_AI is 40 Mb/s at 40 Gb/s (section 5.2) and in proportion at other rates, R_HAI ten times that; the
  // least rate is a thousandth of the line's. Throws std::invalid_argument for a value out of range.
  static DcqcnParameters read(const PathProperties& path, ParameterReader& reader);
};

class Dcqcn final : public CongestionControl {
 public:
  explicit Dcqcn(const DcqcnParameters& parameters);

  std::string_view name() const override { return "dcqcn"; }
  uint64_t window_bytes() const override { return parameters_.window_bytes; }
  uint64_t pacing_rate_bps() const override { return static_cast<uint64_t>(current_rate_bps_); }

  void on_packet_sent(TimePs now, uint64_t frame_bytes, bool retransmission) override;
  void on_congestion_notification(TimePs now) override;
  TimePs next_deadline() const override { return asleep_ ? kNever : next_increase_ps_; }
  void on_deadline(TimePs now) override;

  double alpha() const { return alpha_; }
  double target_rate_bps() const { return target_rate_bps_; }

 private:
  void decay_alpha(TimePs now);
  void increase_until(TimePs now);
  void increase();

  DcqcnParameters parameters_;
  double current_rate_bps_;  // R_C
  double target_rate_bps_;   // R_T
  double alpha_ = 1.0;
  TimePs next_decay_ps_ = kNever;
  TimePs next_increase_ps_ = kNever;  // kNever: at line rate, no CNP has come
  uint64_t counted_bytes_ = 0;
  uint32_t timer_stage_ = 0;         // T
  uint32_t byte_counter_stage_ = 0;  // BC
  bool sent_since_increase_ = false;
  bool asleep_ = false;  // nothing is being sent: increases are made up for with the next packet
};

}  // namespace weft
