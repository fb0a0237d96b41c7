// Bolt-like control: switches tell senders of queues at once, and which packets the supply of a link allows
// to be more. Source: Arslan et al., "Bolt: Sub-RTT Congestion Control for Ultra-Low Latency", NSDI 2023.
//
// It has sub-RTT control (section 3.1), proactive ramp-up (section 3.2) and supply matching (section 3.3).
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "congestion/registry.hpp"
#include "congestion/window_defaults.hpp"

namespace weft {
namespace {

constexpr double kMaxPackets = 1e9;

constexpr CongestionParameter kParameters[] = {
    {"initial_window_packets", "the path's bandwidth-delay product", 1, kMaxPackets,
     "window of a new connection: flows start at line rate", "section 3"},
    {"max_window_packets", "one and a half times the bandwidth-delay product", 1, kMaxPackets,
     "largest window", "Weft; a window that nothing holds back would grow for ever"},
    {"min_window_packets", 0.01, 0.001, 1, "smallest window; below one packet, packets are paced",
     "Swift, section 3.4"},
    {"additive_increase_packets", 1.0, 0, 1000, "growth in each round trip, for fairness", "algorithm 2"},
    {"max_decrease", 0.5, 0, 0.999, "decrease on a loss, at most once a round trip", "Swift, algorithm 1"},
    {"proactive_ramp_up", 1, 0, 1, "1: packets of a flow's last window say so, and others take its place",
     "section 3.2"},
};

struct BoltParameters {
  uint32_t frame_bytes = 0;
  TimePs base_round_trip_ps = 0;
  double initial_window_packets = 0;
  double max_window_packets = 0;
  double min_window_packets = 0;
  double additive_increase_packets = 0;
  double max_decrease = 0;
  bool proactive_ramp_up = false;

  static BoltParameters read(const PathProperties& path, ParameterReader& reader) {
    if (path.frame_bytes == 0 || path.base_round_trip_ps <= 0 || path.line_rate_bps == 0)
      throw std::invalid_argument("bolt needs the path's round trip, rate and frame size");
    BoltParameters parameters;
    parameters.frame_bytes = path.frame_bytes;
    parameters.base_round_trip_ps = path.base_round_trip_ps;
    const double product = bandwidth_delay_product_packets(path);
    parameters.initial_window_packets = product;
    parameters.max_window_packets = 1.5 * product;
    reader.read("initial_window_packets", parameters.initial_window_packets);
    reader.read("max_window_packets", parameters.max_window_packets);
    reader.read("min_window_packets", parameters.min_window_packets);
    reader.read("additive_increase_packets", parameters.additive_increase_packets);
    reader.read("max_decrease", parameters.max_decrease);
    double proactive_ramp_up = 1;
    reader.read("proactive_ramp_up", proactive_ramp_up);
    parameters.proactive_ramp_up = proactive_ramp_up >= 0.5;
    return parameters;
  }
};

class Bolt final : public CongestionControl {
 public:
  explicit Bolt(const BoltParameters& parameters) : parameters_(parameters) {
    set_window(parameters.initial_window_packets);
  }

  std::string_view name() const override;
  uint64_t window_bytes() const override { return window_bytes_; }
  // A window of less than a packet is one packet in so many round trips; larger ones need no pacing.
  uint64_t pacing_rate_bps() const override { return pacing_rate_bps_; }

  bool marks_ends_of_flows() const override { return parameters_.proactive_ramp_up; }
  void on_switch_notification(const SwitchNotification& notification) override;
  void on_acknowledgement(const AcknowledgementEvent& event) override;
  void on_loss(TimePs now, bool timeout) override;

 private:
  double rate_bps() const {
    return 8 * window_packets_ * parameters_.frame_bytes /
           (static_cast<double>(parameters_.base_round_trip_ps) / kPsPerSecond);
  }
  void set_window(double packets);

  BoltParameters parameters_;
  double window_packets_ = 0;
  uint64_t window_bytes_ = 0;
  uint64_t pacing_rate_bps_ = 0;
  TimePs last_decrease_ps_ = 0;
  uint64_t next_increase_ = 0;  // sequence number whose acknowledgement ends the round trip
};

// Algorithm 2, HandleSRC. A flow is to drain its share of the queue, as large as its share of the link
// (reaction factor), within the time that it takes to hear of it: a packet each rtt_src / target_q.
void Bolt::on_switch_notification(const SwitchNotification& notification) {
  if (notification.link_rate_bps == 0 || notification.queue_bytes == 0) return;
  const double reaction = std::min(1.0, rate_bps() / static_cast<double>(notification.link_rate_bps));
  const double target_queue_packets =
      static_cast<double>(notification.queue_bytes) / parameters_.frame_bytes * reaction;
  const auto rtt_src_ps = static_cast<double>(std::max<TimePs>(1, notification.now - notification.sent_ps));
  if (static_cast<double>(notification.now - last_decrease_ps_) < rtt_src_ps / target_queue_packets) return;
  // Below one packet the paper's step would end the flow.
  set_window(window_packets_ > 1 ? std::max(window_packets_ - 1, 0.5) : window_packets_ / 2);
  last_decrease_ps_ = notification.now;
}

// Algorithm 2, HandleAck. A packet without a mark has found room for one more: the place of a flow that ends
// (proactive ramp-up) or supply (supply matching); and one more each round trip.
void Bolt::on_acknowledgement(const AcknowledgementEvent& event) {
  double packets = window_packets_;
  if (!event.congestion_experienced) packets += static_cast<double>(event.acknowledged_packets);
  if (event.sequence >= next_increase_) {
    packets += parameters_.additive_increase_packets;
    next_increase_ = event.next_sequence;
  }
  set_window(packets);
}

// The paper leaves losses to the transport; as in Swift's algorithm 1.
void Bolt::on_loss(TimePs now, bool timeout) {
  if (!timeout && now - last_decrease_ps_ < parameters_.base_round_trip_ps) return;
  set_window(window_packets_ * (1 - parameters_.max_decrease));
  last_decrease_ps_ = now;
}

void Bolt::set_window(double packets) {
  const double most = std::max(parameters_.max_window_packets, parameters_.min_window_packets);
  window_packets_ = std::clamp(packets, parameters_.min_window_packets, most);
  window_bytes_ = static_cast<uint64_t>(window_packets_ * parameters_.frame_bytes);
  pacing_rate_bps_ = window_packets_ < 1 ? std::max<uint64_t>(1, static_cast<uint64_t>(rate_bps())) : 0;
}

constexpr CongestionControlKind kBolt = {
    .name = "bolt",
    .summary = "switches notify senders of queues at once, and say where there is supply for more",
    .source = "Arslan et al., NSDI 2023",
    .needs = {.every_acknowledgement = true, .one_path = true, .notifications = true},
    .parameters = kParameters,
    .presets = {},
    .make = &make_from_parameters<Bolt, BoltParameters>,
};
const CongestionRegistration kRegistration(kBolt);

std::string_view Bolt::name() const { return kBolt.name; }

}  // namespace
}  // namespace weft
