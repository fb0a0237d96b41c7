// Swift: the window follows the round trip, kept near a target delay.
// Source: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter",
// SIGCOMM 2020, section 3 (algorithm 1). The delay is the fabric's: from a packet's first bit on the wire to
// its acknowledgement, without the hosts' software.
#pragma once

#include <cstdint>

#include "congestion/congestion_control.hpp"
#include "congestion/congestion_parameters.hpp"

namespace weft {

struct SwiftParameters {
  uint32_t frame_bytes = 0;                // windows are counted in packets of so many bytes
  TimePs base_target_ps = 0;               // target delay of a large window, but for what routers add
  TimePs hop_target_ps = 0;                // and for each router on the path (section 3.5, topology)
  TimePs flow_scaling_range_ps = 0;        // at most so much is added for small windows (section 3.5, flows)
  double flow_scaling_min_packets = 0.1;   // the window below which all of it is added
  double flow_scaling_max_packets = 100;   // the window above which none is
  double additive_increase_packets = 1.0;  // ai, in a round trip
  double decrease_gain = 0.8;              // beta
  double max_decrease = 0.5;               // max_mdf, at most once a round trip
  double min_window_packets = 0.001;
  double max_window_packets = 0;
  double initial_window_packets = 0;
  uint32_t retransmissions_until_reset = 5;  // timeouts in a row that reset the window to the smallest

  // The target of the nearest pair is its idle round trip and a quarter; each router more adds what it adds
  // to an idle round trip, so that all flows leave room for the same queue (section 3.5). With a
  // hop_target_ps of 0 all flows have the target of the farthest pair. The range of flow scaling is five
  // round trips of that pair, the first window one bandwidth-delay product and the largest two. Throws
  // std::invalid_argument for a value out of range.
  static SwiftParameters read(const PathProperties& path, ParameterReader& reader);
};

class Swift final : public CongestionControl {
 public:
  explicit Swift(const SwiftParameters& parameters);

  std::string_view name() const override { return "swift"; }
  uint64_t window_bytes() const override { return window_bytes_; }
  // A window of less than a packet is one packet in so many round trips; larger ones need no pacing.
  uint64_t pacing_rate_bps() const override { return pacing_rate_bps_; }

  void on_acknowledgement(const AcknowledgementEvent& event) override;
  void on_loss(TimePs now, bool timeout) override;

  // Target delay for the present window on a path of so many routers.
  TimePs target_delay_ps(uint8_t hops) const;

 private:
  void set_window(TimePs now, double packets);

  SwiftParameters parameters_;
  double flow_scaling_alpha_;
  double flow_scaling_beta_;
  double window_packets_;
  uint64_t window_bytes_ = 0;
  uint64_t pacing_rate_bps_ = 0;
  TimePs round_trip_ps_ = 0;  // the newest
  TimePs last_decrease_ps_ = 0;
  uint32_t timeouts_in_a_row_ = 0;
};

}  // namespace weft
