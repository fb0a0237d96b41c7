// HPCC: the window follows how full the busiest link is, as INT tells it with every acknowledgement.
// Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, section 3, algorithm 1.
#pragma once

#include <cstdint>

#include "congestion/congestion_control.hpp"
#include "congestion/congestion_parameters.hpp"

namespace weft {

struct HpccParameters {
  double target_utilisation = 0.95;  // eta (section 3.3)
  // Rounds of additive increase before the next multiplicative one. The paper says 5, its authors' simulator
  // and later erratum 0.
  uint32_t max_stage = 0;
  double additive_increase_bytes = 0;  // W_AI, in a round trip
  TimePs round_trip_ps = 0;            // T
  uint64_t max_rate_bps = 0;           // of the first window, max_rate · T, which is also the largest
  uint64_t min_rate_bps = 0;           // of the smallest window
  IntRates int_rates_bps{};            // what the fabric's rate codes stand for

  // W_AI so that a hundred flows' increases together fit into the head room 1 - eta (section 3.3): the
  // paper's 80 bytes at 100 Gb/s and 13 us. Throws std::invalid_argument for a value out of range.
  static HpccParameters read(const PathProperties& path, ParameterReader& reader);
};

class Hpcc final : public CongestionControl {
 public:
  explicit Hpcc(const HpccParameters& parameters);

  std::string_view name() const override { return "hpcc"; }
  uint64_t window_bytes() const override { return static_cast<uint64_t>(window_bytes_); }
  // R = W / T (algorithm 1, line 35).
  uint64_t pacing_rate_bps() const override { return pacing_rate_bps_; }

  // Without INT, or on a path without switches that stamp it, the first window stays.
  void on_acknowledgement(const AcknowledgementEvent& event) override;

  // The estimate U of the busiest link's in-flight bytes, relative to its bandwidth-delay product.
  double utilisation() const { return utilisation_; }

 private:
  double fastest_rate_bps(const roce::IntStack& stack) const;
  bool is_first_of_path(const AcknowledgementEvent& event) const;
  bool measure_in_flight(const roce::IntStack& stack);
  void compute_window(bool update_reference);
  void set_window(double bytes);

  HpccParameters parameters_;
  double max_window_bytes_;
  double min_window_bytes_;
  double window_bytes_;
  double reference_window_bytes_;  // W^c
  uint64_t pacing_rate_bps_ = 0;
  double utilisation_ = 1.0;  // U
  uint32_t stage_ = 0;
  uint64_t last_update_sequence_ = 0;
  TimePs last_stack_ps_ = 0;
  bool has_stack_ = false;
  roce::IntStack stack_;  // of the acknowledgement before
};

}  // namespace weft
