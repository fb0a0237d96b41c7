// Swift: the window follows the round trip, kept near a target delay.
// Source: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter",
// SIGCOMM 2020, section 3 (algorithm 1). The delay is the fabric's: from a packet's first bit on the wire to
// its acknowledgement, without the hosts' software.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "congestion/registry.hpp"
#include "congestion/window_defaults.hpp"

namespace weft {
namespace {

constexpr double kMaxPackets = 1e9;

constexpr CongestionParameter kParameters[] = {
    {"hop_target_ps", "what each router more adds to an idle round trip", 0, kMaxParameterPs,
     "part of the target delay for each router on the path; 0: all flows have the farthest pair's target",
     "Swift, SIGCOMM 2020, section 3.5 (topology)"},
    {"base_target_ps",
     "the nearest pair's idle round trip (with a hop_target_ps of 0 the farthest pair's) and a quarter, less "
     "what its routers add",
     1, kMaxParameterPs, "target delay of a large window, without what routers add",
     "Swift, SIGCOMM 2020, sections 3.1 and 3.5; the quarter is Weft's"},
    {"flow_scaling_range_ps", "five idle round trips of the farthest pair", 0, kMaxParameterPs,
     "most that is added to the target of a small window", "Swift, SIGCOMM 2020, section 3.5 (flows)"},
    {"flow_scaling_min_packets", 0.1, 1e-6, kMaxPackets, "window below which all of the range is added",
     "Swift, SIGCOMM 2020, section 3.5 (flows)"},
    {"flow_scaling_max_packets", "the largest window, at least 100", 1e-6, kMaxPackets,
     "window above which nothing is added", "Swift, SIGCOMM 2020, section 3.5 (flows): 100"},
    {"flow_scaling_round_trip_ps",
     "the nearest pair's idle round trip (with a hop_target_ps of 0 the farthest pair's) and a quarter", 0,
     kMaxParameterPs,
     "windows are scaled to this round trip before they are compared with the two above, so that flows of "
     "one "
     "rate have one target; 0: they are compared as they are, and of flows of one rate the farther has the "
     "lower target",
     "Weft; 0 in Swift, SIGCOMM 2020, section 3.5 (flows)"},
    {"additive_increase_packets", "1 for each 100 Gb/s of the port, at least 1", 0, kMaxPackets,
     "ai: growth of the window in a round trip", "Swift, SIGCOMM 2020, algorithm 1, at the paper's 100 Gb/s"},
    {"decrease_gain", 0.8, 0, 1, "beta: decrease in proportion to the excess delay",
     "Swift, SIGCOMM 2020, algorithm 1"},
    {"max_decrease", 0.5, 0, 0.999, "max_mdf: largest decrease, at most once a round trip",
     "Swift, SIGCOMM 2020, algorithm 1"},
    {"min_window_packets", 0.001, 1e-6, kMaxPackets, "smallest window", "Swift, SIGCOMM 2020, algorithm 1"},
    {"initial_window_packets", "10, at most the path's bandwidth-delay product, at least 1", 1e-6,
     kMaxPackets, "window of a new connection", "RFC 6928; Swift's authors name none"},
    {"slow_start", 1, 0, 1,
     "1: a new connection's window doubles each round trip until a delay exceeds the target or a packet is "
     "lost; 0: it grows by additive_increase from the start",
     "RFC 5681, section 3.1; Swift's authors name no start"},
    {"max_window_packets", "twice the bandwidth-delay product", 1e-6, kMaxPackets, "largest window", "Weft"},
    {"retransmissions_until_reset", 5, 1, 1000, "timeouts in a row that reset the window to the smallest",
     "Swift, SIGCOMM 2020, algorithm 1 (RETX_RESET_THRESHOLD)"},
};

struct SwiftParameters {
  uint32_t frame_bytes = 0;  // windows are counted in packets of so many bytes
  TimePs base_target_ps = 0;
  TimePs hop_target_ps = 0;
  TimePs flow_scaling_range_ps = 0;
  double flow_scaling_min_packets = 0;
  double flow_scaling_max_packets = 0;
  TimePs flow_scaling_round_trip_ps = 0;
  double additive_increase_packets = 0;
  double decrease_gain = 0;
  double max_decrease = 0;
  double min_window_packets = 0;
  double max_window_packets = 0;
  double initial_window_packets = 0;
  bool slow_start = true;
  uint32_t retransmissions_until_reset = 0;

  // Each router more adds to the target what it adds to an idle round trip, so that all flows leave room for
  // the same queue (section 3.5). Throws std::invalid_argument for a value out of range.
  static SwiftParameters read(const PathProperties& path, ParameterReader& reader);
};

class Swift final : public CongestionControl {
 public:
  explicit Swift(const SwiftParameters& parameters);

  std::string_view name() const override;
  uint64_t window_bytes() const override { return window_bytes_; }
  // A window of less than a packet is one packet in so many round trips; larger ones need no pacing.
  uint64_t pacing_rate_bps() const override { return pacing_rate_bps_; }

  void on_acknowledgement(const AcknowledgementEvent& event) override;
  void on_loss(TimePs now, bool timeout) override;

  // Target delay for the present window on a path of so many routers, whose round trip was this long.
  TimePs target_delay_ps(uint8_t hops, TimePs round_trip_ps) const;

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
  bool slow_start_;
};

// The largest window that section 3.5 adds to the target of. A path whose product is larger needs a larger
// one: flows whose target does not depend on their windows keep whatever shares they have.
constexpr double kFlowScalingMaxPackets = 100;

// Default target of the pair whose round trip others are compared with.
TimePs reference_target_ps(const PathProperties& path, TimePs hop_target_ps) {
  const bool scales = hop_target_ps > 0 && path.nearest_round_trip_ps > 0;
  const TimePs round_trip_ps = scales ? path.nearest_round_trip_ps : path.base_round_trip_ps;
  return round_trip_ps + round_trip_ps / 4;
}

TimePs default_base_target_ps(const PathProperties& path, TimePs hop_target_ps) {
  const TimePs target_ps = reference_target_ps(path, hop_target_ps);
  const bool scales = hop_target_ps > 0 && path.nearest_round_trip_ps > 0;
  return scales ? std::max<TimePs>(1, target_ps - path.nearest_hops * hop_target_ps) : target_ps;
}

SwiftParameters SwiftParameters::read(const PathProperties& path, ParameterReader& reader) {
  SwiftParameters parameters;
  parameters.frame_bytes = path.frame_bytes;
  parameters.flow_scaling_range_ps = 5 * path.base_round_trip_ps;
  parameters.hop_target_ps = path.hop_round_trip_ps;
  reader.read("hop_target_ps", parameters.hop_target_ps);
  parameters.base_target_ps = default_base_target_ps(path, parameters.hop_target_ps);
  reader.read("base_target_ps", parameters.base_target_ps);
  reader.read("flow_scaling_range_ps", parameters.flow_scaling_range_ps);
  reader.read("flow_scaling_min_packets", parameters.flow_scaling_min_packets);
  parameters.additive_increase_packets = window_growth_packets(path);
  reader.read("additive_increase_packets", parameters.additive_increase_packets);
  reader.read("decrease_gain", parameters.decrease_gain);
  reader.read("max_decrease", parameters.max_decrease);
  reader.read("min_window_packets", parameters.min_window_packets);
  if (parameters.frame_bytes == 0 || parameters.base_target_ps <= 0) {
    throw std::invalid_argument("swift needs the path's round trip and frame size");
  }
  const double path_window_packets = bandwidth_delay_product_packets(path);
  parameters.initial_window_packets = std::min(kInitialWindowPackets, path_window_packets);
  parameters.max_window_packets = 2 * path_window_packets;
  reader.read("initial_window_packets", parameters.initial_window_packets);
  reader.read("max_window_packets", parameters.max_window_packets);
  reader.read("slow_start", parameters.slow_start);
  parameters.flow_scaling_max_packets = std::max(kFlowScalingMaxPackets, parameters.max_window_packets);
  reader.read("flow_scaling_max_packets", parameters.flow_scaling_max_packets);
  parameters.flow_scaling_round_trip_ps = reference_target_ps(path, parameters.hop_target_ps);
  reader.read("flow_scaling_round_trip_ps", parameters.flow_scaling_round_trip_ps);
  reader.read("retransmissions_until_reset", parameters.retransmissions_until_reset);
  if (parameters.flow_scaling_min_packets >= parameters.flow_scaling_max_packets) {
    throw std::invalid_argument("swift: flow_scaling_min_packets must be below flow_scaling_max_packets");
  }
  return parameters;
}

// Section 3.5: alpha = range / (1/sqrt(min) - 1/sqrt(max)), beta = -alpha / sqrt(max).
Swift::Swift(const SwiftParameters& parameters)
    : parameters_(parameters), window_packets_(0), slow_start_(parameters.slow_start) {
  const double at_min = 1 / std::sqrt(parameters.flow_scaling_min_packets);
  const double at_max = 1 / std::sqrt(parameters.flow_scaling_max_packets);
  flow_scaling_alpha_ = static_cast<double>(parameters.flow_scaling_range_ps) / (at_min - at_max);
  flow_scaling_beta_ = -flow_scaling_alpha_ * at_max;
  set_window(0, parameters.initial_window_packets);
}

TimePs Swift::target_delay_ps(uint8_t hops, TimePs round_trip_ps) const {
  // The window stands for the number of flows that share a link. That of a flow from afar is larger at the
  // same share, by as much as its round trip is longer.
  const TimePs reference_ps = parameters_.flow_scaling_round_trip_ps;
  const double scale =
      reference_ps > 0 ? static_cast<double>(reference_ps) / static_cast<double>(round_trip_ps) : 1.0;
  const double scaled = flow_scaling_alpha_ / std::sqrt(window_packets_ * scale) + flow_scaling_beta_;
  const double for_flows = std::clamp(scaled, 0.0, static_cast<double>(parameters_.flow_scaling_range_ps));
  return parameters_.base_target_ps + hops * parameters_.hop_target_ps + static_cast<TimePs>(for_flows);
}

// Algorithm 1, after slow start: additive increase below the target delay; above it a decrease in proportion
// to the excess, once a round trip.
void Swift::on_acknowledgement(const AcknowledgementEvent& event) {
  timeouts_in_a_row_ = 0;
  if (event.round_trip_ps <= 0) return;  // of a retransmitted packet: nobody knows which one was answered
  round_trip_ps_ = event.round_trip_ps;
  const TimePs target_ps = target_delay_ps(event.hops, event.round_trip_ps);
  if (event.round_trip_ps >= target_ps) slow_start_ = false;
  double packets = window_packets_;
  if (event.round_trip_ps < target_ps) {
    const double a_round_trip = std::max(packets, 1.0);
    const auto acknowledged_packets = static_cast<double>(event.acknowledged_packets);
    packets += slow_start_ ? acknowledged_packets
                           : parameters_.additive_increase_packets * acknowledged_packets / a_round_trip;
  } else if (event.now - last_decrease_ps_ >= round_trip_ps_) {
    const double excess =
        static_cast<double>(event.round_trip_ps - target_ps) / static_cast<double>(event.round_trip_ps);
    packets *= std::max(1 - parameters_.decrease_gain * excess, 1 - parameters_.max_decrease);
  }
  set_window(event.now, packets);
}

// Algorithm 1, on retransmission timeout and fast recovery: a loss that other packets reveal is no silence.
void Swift::on_loss(TimePs now, bool timeout) {
  slow_start_ = false;
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

constexpr CongestionControlKind kSwift = {
    .name = "swift",
    .summary = "the window follows the round trip, kept near a target delay",
    .source = "Kumar et al., SIGCOMM 2020",
    .needs = {.every_acknowledgement = true},
    .parameters = kParameters,
    .presets = {},
    .make = &make_from_parameters<Swift, SwiftParameters>,
};
const CongestionRegistration kRegistration(kSwift);

std::string_view Swift::name() const { return kSwift.name; }

}  // namespace
}  // namespace weft
