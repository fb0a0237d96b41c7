// PowerTCP: the window follows the power of the busiest link, its queue and how that changes together.
// Source: Addanki, Michel and Schmid, "PowerTCP: Pushing the Performance Limits of Datacenter Networks", NSDI
// 2022, section 3.3 (algorithm 1).
#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "congestion/bandwidth_delay_product.hpp"
#include "congestion/int_changes.hpp"
#include "congestion/registry.hpp"

namespace weft {
namespace {

constexpr CongestionParameter kParameters[] = {
    {"gain", 0.9, 0.001, 1, "gamma: weight of the newest window", "PowerTCP, NSDI 2022, section 3.3"},
    {"additive_increase_bytes", "a tenth of the port's rate times round_trip", 0, kMaxParameterBytes,
     "beta: the queue that a flow keeps", "PowerTCP, NSDI 2022, section 3.3: HostBw tau / N for N flows"},
    {"round_trip_ps", "the farthest pair's idle round trip", 1, kMaxParameterPs, "tau",
     "PowerTCP, NSDI 2022, section 3.3: the largest base round trip"},
    {"max_window_bytes", "the port's rate times round_trip", 1, kMaxParameterBytes,
     "window of a new connection, and the largest", "PowerTCP, NSDI 2022, section 3.3: starts at line rate"},
    {"min_rate_bps", "a thousandth of the port's rate", 1, kMaxParameterBps, "rate of the smallest window",
     "Weft"},
};

struct PowerTcpParameters {
  double gain = 0;
  double additive_increase_bytes = 0;
  TimePs round_trip_ps = 0;
  double max_window_bytes = 0;
  uint64_t min_rate_bps = 0;
  IntRates int_rates_bps{};

  // Throws std::invalid_argument for a value out of range.
  static PowerTcpParameters read(const PathProperties& path, ParameterReader& reader);
};

class PowerTcp final : public CongestionControl {
 public:
  explicit PowerTcp(const PowerTcpParameters& parameters)
      : parameters_(parameters), old_window_bytes_(parameters.max_window_bytes) {
    set_window(parameters.max_window_bytes);
  }

  std::string_view name() const override;
  uint64_t window_bytes() const override { return static_cast<uint64_t>(window_bytes_); }
  uint64_t pacing_rate_bps() const override { return pacing_rate_bps_; }

  // Without INT, or on a path without switches that stamp it, the first window stays.
  void on_acknowledgement(const AcknowledgementEvent& event) override;

 private:
  std::optional<double> normalised_power(const roce::IntStack& stack);
  void set_window(double bytes);

  PowerTcpParameters parameters_;
  double window_bytes_ = 0;
  double old_window_bytes_;  // of a round trip ago
  uint64_t pacing_rate_bps_ = 0;
  double smoothed_power_ = 1.0;
  roce::IntStack stack_;  // of the latest acknowledgement, if hops are stamped
  TimePs last_ps_ = 0;
  uint64_t next_update_sequence_ = 0;
};

constexpr double kFlowsAtAPort = 10;

PowerTcpParameters PowerTcpParameters::read(const PathProperties& path, ParameterReader& reader) {
  PowerTcpParameters parameters;
  parameters.int_rates_bps = path.int_rates_bps;
  parameters.round_trip_ps = path.base_round_trip_ps;
  parameters.min_rate_bps = std::max<uint64_t>(1, path.line_rate_bps / 1000);
  reader.read("gain", parameters.gain);
  reader.read("round_trip_ps", parameters.round_trip_ps);
  if (parameters.round_trip_ps <= 0 || path.line_rate_bps == 0)
    throw std::invalid_argument("powertcp needs the path's round trip and rate");
  const auto product_bytes =
      static_cast<double>(bandwidth_delay_product_bytes(path.line_rate_bps, parameters.round_trip_ps));
  parameters.additive_increase_bytes = product_bytes / kFlowsAtAPort;
  parameters.max_window_bytes = product_bytes;
  reader.read("additive_increase_bytes", parameters.additive_increase_bytes);
  reader.read("max_window_bytes", parameters.max_window_bytes);
  reader.read("min_rate_bps", parameters.min_rate_bps);
  return parameters;
}

// Procedures NewAck and UpdateOld.
void PowerTcp::on_acknowledgement(const AcknowledgementEvent& event) {
  if (event.telemetry == nullptr || event.telemetry->hop_count == 0) return;
  const roce::IntStack& stack = *event.telemetry;
  const bool follows =
      is_of_path(stack_, stack) && !is_stale(stack, event.now - last_ps_, parameters_.int_rates_bps);
  if (follows) {
    if (const std::optional<double> power = normalised_power(stack))
      set_window(parameters_.gain * (old_window_bytes_ / *power + parameters_.additive_increase_bytes) +
                 (1 - parameters_.gain) * window_bytes_);
  } else {
    stack_ = stack;
  }
  last_ps_ = event.now;
  if (event.sequence >= next_update_sequence_) {
    old_window_bytes_ = window_bytes_;
    next_update_sequence_ = event.next_sequence;
  }
}

// Function NormPower: of the hop with the most, smoothed over a round trip. Power is current times voltage:
// what is sent and what the queue grows by in a second, times the queue and what fills the path; normalised
// by that of a link that is just full. Nothing if no hop has sent a packet since the last time.
std::optional<double> PowerTcp::normalised_power(const roce::IntStack& stack) {
  const double round_trip_ns = static_cast<double>(parameters_.round_trip_ps) / kPsPerNs;
  double most = 0;
  double interval_ns = 0;
  bool measured = false;
  for (size_t hop = 0; hop < stack.hop_count; ++hop) {
    const roce::IntHop& now = stack.hops[hop];
    roce::IntHop& before = stack_.hops[hop];
    const double passed_ns = passed_between_ns(before, now);
    const double bytes_per_ns = static_cast<double>(parameters_.int_rates_bps[now.rate_code]) / 8e9;
    if (passed_ns == 0 || bytes_per_ns == 0) continue;
    const double queue_bytes = kQueueCellBytes * now.queue_cells;
    const double grown_bytes = queue_bytes - kQueueCellBytes * before.queue_cells;
    const double current = (grown_bytes + sent_between_bytes(before, now)) / passed_ns;
    const double voltage_bytes = queue_bytes + bytes_per_ns * round_trip_ns;
    const double power = current * voltage_bytes / (bytes_per_ns * bytes_per_ns * round_trip_ns);
    if (!measured || power > most) {
      most = power;
      interval_ns = passed_ns;
    }
    before = now;
    measured = true;
  }
  if (!measured) return std::nullopt;
  const double weight = std::min(interval_ns, round_trip_ns) / round_trip_ns;
  smoothed_power_ += weight * (most - smoothed_power_);
  // A queue that drained faster than its link sends is an error of the cells it is counted in.
  constexpr double kLeastPower = 1e-3;
  smoothed_power_ = std::max(smoothed_power_, kLeastPower);
  return smoothed_power_;
}

void PowerTcp::set_window(double bytes) {
  const auto least_bytes =
      static_cast<double>(bandwidth_delay_product_bytes(parameters_.min_rate_bps, parameters_.round_trip_ps));
  const double most_bytes = parameters_.max_window_bytes;
  window_bytes_ = std::clamp(bytes, std::min(least_bytes, most_bytes), most_bytes);
  const double seconds = static_cast<double>(parameters_.round_trip_ps) / kPsPerSecond;
  pacing_rate_bps_ = std::max<uint64_t>(1, static_cast<uint64_t>(8 * window_bytes_ / seconds));
}

constexpr CongestionControlKind kPowerTcp = {
    .name = "powertcp",
    .summary = "the window follows the busiest link's queue and how that changes, as INT reports them",
    .source = "Addanki et al., NSDI 2022",
    .needs = {.telemetry = true, .every_acknowledgement = true, .one_path = true},
    .parameters = kParameters,
    .presets = {},
    .make = &make_from_parameters<PowerTcp, PowerTcpParameters>,
};
const CongestionRegistration kRegistration(kPowerTcp);

std::string_view PowerTcp::name() const { return kPowerTcp.name; }

}  // namespace
}  // namespace weft
