#include "congestion/swift.hpp"

#include <algorithm>
#include <cmath>

#include "congestion/fixed_window.hpp"

namespace weft {
namespace {

constexpr double kMaxPackets = 1e9;

TimePs default_base_target_ps(const PathProperties& path, TimePs hop_target_ps) {
  const bool scales = hop_target_ps > 0 && path.nearest_round_trip_ps > 0;
  const TimePs round_trip_ps = scales ? path.nearest_round_trip_ps : path.base_round_trip_ps;
  const TimePs target_ps = round_trip_ps + round_trip_ps / 4;
  return scales ? std::max<TimePs>(1, target_ps - path.nearest_hops * hop_target_ps) : target_ps;
}

}  // namespace

SwiftParameters SwiftParameters::read(const PathProperties& path, ParameterReader& reader) {
  SwiftParameters parameters;
  parameters.frame_bytes = path.frame_bytes;
  parameters.flow_scaling_range_ps = 5 * path.base_round_trip_ps;
  parameters.hop_target_ps = path.hop_round_trip_ps;
  reader.read("hop_target_ps", parameters.hop_target_ps, 0, kMaxParameterPs);
  parameters.base_target_ps = default_base_target_ps(path, parameters.hop_target_ps);
  reader.read("base_target_ps", parameters.base_target_ps, 1, kMaxParameterPs);
  reader.read("flow_scaling_range_ps", parameters.flow_scaling_range_ps, 0, kMaxParameterPs);
  reader.read("flow_scaling_min_packets", parameters.flow_scaling_min_packets, 1e-6, kMaxPackets);
  reader.read("flow_scaling_max_packets", parameters.flow_scaling_max_packets, 1e-6, kMaxPackets);
  reader.read("additive_increase_packets", parameters.additive_increase_packets, 0, kMaxPackets);
  reader.read("decrease_gain", parameters.decrease_gain, 0, 1);
  reader.read("max_decrease", parameters.max_decrease, 0, 0.999);
  reader.read("min_window_packets", parameters.min_window_packets, 1e-6, kMaxPackets);
  if (parameters.frame_bytes == 0 || parameters.base_target_ps <= 0) {
    throw std::invalid_argument("swift needs the path's round trip and frame size");
  }
  const double product_packets =
      static_cast<double>(bandwidth_delay_product_bytes(path.line_rate_bps, path.base_round_trip_ps)) /
      parameters.frame_bytes;
  parameters.initial_window_packets = std::max(1.0, product_packets);
  parameters.max_window_packets = 2 * parameters.initial_window_packets;
  reader.read("initial_window_packets", parameters.initial_window_packets, 1e-6, kMaxPackets);
  reader.read("max_window_packets", parameters.max_window_packets, 1e-6, kMaxPackets);
  reader.read("retransmissions_until_reset", parameters.retransmissions_until_reset, 1, 1000);
  if (parameters.flow_scaling_min_packets >= parameters.flow_scaling_max_packets) {
    throw std::invalid_argument("swift: flow_scaling_min_packets must be below flow_scaling_max_packets");
  }
  return parameters;
}

// Section 3.5: alpha = range / (1/sqrt(min) - 1/sqrt(max)), beta = -alpha / sqrt(max).
Swift::Swift(const SwiftParameters& parameters) : parameters_(parameters), window_packets_(0) {
  const double at_min = 1 / std::sqrt(parameters.flow_scaling_min_packets);
  const double at_max = 1 / std::sqrt(parameters.flow_scaling_max_packets);
  flow_scaling_alpha_ = static_cast<double>(parameters.flow_scaling_range_ps) / (at_min - at_max);
  flow_scaling_beta_ = -flow_scaling_alpha_ * at_max;
  set_window(0, parameters.initial_window_packets);
}

TimePs Swift::target_delay_ps(uint8_t hops) const {
  const double scaled = flow_scaling_alpha_ / std::sqrt(window_packets_) + flow_scaling_beta_;
  const double for_flows = std::clamp(scaled, 0.0, static_cast<double>(parameters_.flow_scaling_range_ps));
  return parameters_.base_target_ps + hops * parameters_.hop_target_ps + static_cast<TimePs>(for_flows);
}

// Algorithm 1: additive increase below the target delay; above it a decrease in proportion to the excess,
// once a round trip.
void Swift::on_acknowledgement(const AcknowledgementEvent& event) {
  timeouts_in_a_row_ = 0;
  if (event.round_trip_ps <= 0) return;  // of a retransmitted packet: nobody knows which one was answered
  round_trip_ps_ = event.round_trip_ps;
  const TimePs target_ps = target_delay_ps(event.hops);
  double packets = window_packets_;
  if (event.round_trip_ps < target_ps) {
    const double shared = std::max(packets, 1.0);
    packets +=
        parameters_.additive_increase_packets * static_cast<double>(event.acknowledged_packets) / shared;
  } else if (event.now - last_decrease_ps_ >= round_trip_ps_) {
    const double excess =
        static_cast<double>(event.round_trip_ps - target_ps) / static_cast<double>(event.round_trip_ps);
    packets *= std::max(1 - parameters_.decrease_gain * excess, 1 - parameters_.max_decrease);
  }
  set_window(event.now, packets);
}

// Algorithm 1, on retransmission timeout and fast recovery: a loss that others have told of is no silence.
void Swift::on_loss(TimePs now, bool timeout) {
  if (!timeout) timeouts_in_a_row_ = 0;
  if (timeout && ++timeouts_in_a_row_ >= parameters_.retransmissions_until_reset) {
    set_window(now, parameters_.min_window_packets);
  } else if (now - last_decrease_ps_ >= round_trip_ps_) {
    set_window(now, window_packets_ * (1 - parameters_.max_decrease));
  }
}

void Swift::set_window(TimePs now, double packets) {
  const double before = window_packets_;
  window_packets_ = std::clamp(packets, parameters_.min_window_packets, parameters_.max_window_packets);
  if (window_packets_ < before) last_decrease_ps_ = now;
  window_bytes_ = static_cast<uint64_t>(window_packets_ * parameters_.frame_bytes);
  pacing_rate_bps_ = 0;
  if (window_packets_ < 1 && round_trip_ps_ > 0) {
    const double seconds = static_cast<double>(round_trip_ps_) / kPsPerSecond;
    pacing_rate_bps_ =
        std::max<uint64_t>(1, static_cast<uint64_t>(8 * window_packets_ * parameters_.frame_bytes / seconds));
  }
}

}  // namespace weft
