// TIMELY: the rate follows the gradient of the round trip.
// Source: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, section 4.3
// (algorithm 1) and 5 (hyperactive increase).
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "congestion/rate_window.hpp"
#include "congestion/registry.hpp"

namespace weft {
namespace {

constexpr CongestionParameter kParameters[] = {
    {"low_threshold_ps", "two and a half idle round trips of the farthest pair", 0, kMaxParameterPs,
     "T_low: below it the rate grows whatever the gradient", "TIMELY, SIGCOMM 2015, section 5: 50 of 20 us"},
    {"high_threshold_ps", "ten times low_threshold", 1, kMaxParameterPs,
     "T_high: above it the rate falls whatever the gradient",
     "TIMELY, SIGCOMM 2015, section 5: 500 of 20 us"},
    {"gradient_weight", 0.875, 0, 1, "alpha: weight of the newest difference in the gradient",
     "TIMELY, SIGCOMM 2015, algorithm 1 and section 5"},
    {"decrease_gain", 0.8, 0, 1, "beta", "TIMELY, SIGCOMM 2015, section 5"},
    {"additive_increase_bps", "a thousandth of the port's rate", 1, kMaxParameterBps, "delta",
     "TIMELY, SIGCOMM 2015, section 5: 10 Mb/s at 10 Gb/s"},
    {"hyperactive_updates", 5.0, 1, 1000, "after so many updates without a positive gradient",
     "TIMELY, SIGCOMM 2015, algorithm 1 (N)"},
    {"hyperactive_factor", 5.0, 1, 1000, "the rate grows by so many delta",
     "TIMELY, SIGCOMM 2015, algorithm 1 (N)"},
    {"min_rate_bps", "a thousandth of the port's rate", 1, kMaxParameterBps, "the rate is never below",
     "Weft"},
    kRateWindowBytes,
    kWindowFollowsRate,
};

struct TimelyParameters {
  uint64_t line_rate_bps = 0;
  TimePs min_round_trip_ps = 0;
  TimePs low_threshold_ps = 0;
  TimePs high_threshold_ps = 0;
  double gradient_weight = 0;
  double decrease_gain = 0;
  double additive_increase_bps = 0;
  uint32_t hyperactive_updates = 0;
  double hyperactive_factor = 0;
  double min_rate_bps = 0;
  RateWindow window;  // the paper bounds nothing but the rate

  // Throws std::invalid_argument for a value out of range.
  static TimelyParameters read(const PathProperties& path, ParameterReader& reader);
};

class Timely final : public CongestionControl {
 public:
  explicit Timely(const TimelyParameters& parameters)
      : parameters_(parameters), rate_bps_(static_cast<double>(parameters.line_rate_bps)) {}

  std::string_view name() const override;
  uint64_t window_bytes() const override {
    return parameters_.window.bytes(rate_bps_, parameters_.line_rate_bps);
  }
  uint64_t pacing_rate_bps() const override { return static_cast<uint64_t>(rate_bps_); }

  void on_acknowledgement(const AcknowledgementEvent& event) override;
  void on_loss(TimePs now, bool timeout) override;

 private:
  void update(TimePs round_trip_ps);
  double gradient(TimePs round_trip_ps);
  void set_rate(double rate_bps);

  TimelyParameters parameters_;
  double rate_bps_;
  TimePs last_round_trip_ps_ = 0;
  double difference_ps_ = 0;  // smoothed, of consecutive round trips
  uint32_t falling_updates_ = 0;
  uint64_t next_update_sequence_ = 0;
  TimePs next_loss_ps_ = 0;  // losses before it are of the round trip of the newest
};

TimelyParameters TimelyParameters::read(const PathProperties& path, ParameterReader& reader) {
  TimelyParameters parameters;
  parameters.line_rate_bps = path.line_rate_bps;
  parameters.min_round_trip_ps = path.base_round_trip_ps;
  if (path.line_rate_bps == 0 || path.base_round_trip_ps <= 0)
    throw std::invalid_argument("timely needs the path's rate and round trip");
  parameters.low_threshold_ps = path.base_round_trip_ps * 5 / 2;
  reader.read("low_threshold_ps", parameters.low_threshold_ps);
  parameters.high_threshold_ps = 10 * parameters.low_threshold_ps;
  reader.read("high_threshold_ps", parameters.high_threshold_ps);
  if (parameters.low_threshold_ps > parameters.high_threshold_ps)
    throw std::invalid_argument("timely: low_threshold_ps must be at most high_threshold_ps");
  const double thousandth_bps = static_cast<double>(path.line_rate_bps) / 1000;
  parameters.additive_increase_bps = thousandth_bps;
  parameters.min_rate_bps = thousandth_bps;
  reader.read("gradient_weight", parameters.gradient_weight);
  reader.read("decrease_gain", parameters.decrease_gain);
  reader.read("additive_increase_bps", parameters.additive_increase_bps);
  reader.read("hyperactive_updates", parameters.hyperactive_updates);
  reader.read("hyperactive_factor", parameters.hyperactive_factor);
  reader.read("min_rate_bps", parameters.min_rate_bps);
  parameters.window = RateWindow::read(path, reader);
  return parameters;
}

// The paper has a completion for each segment of 16 to 64 KiB. An update here comes once a round trip, as in
// the simulator of HPCC's authors, so that it means as much at any rate.
void Timely::on_acknowledgement(const AcknowledgementEvent& event) {
  if (event.round_trip_ps <= 0 || event.sequence < next_update_sequence_) return;
  next_update_sequence_ = event.next_sequence;
  update(event.round_trip_ps);
}

// Algorithm 1.
void Timely::update(TimePs round_trip_ps) {
  const double gradient_now = gradient(round_trip_ps);
  const auto round_trip = static_cast<double>(round_trip_ps);
  if (round_trip_ps < parameters_.low_threshold_ps) {
    set_rate(rate_bps_ + parameters_.additive_increase_bps);
  } else if (round_trip_ps > parameters_.high_threshold_ps) {
    const double excess = 1 - static_cast<double>(parameters_.high_threshold_ps) / round_trip;
    set_rate(rate_bps_ * (1 - parameters_.decrease_gain * excess));
  } else if (gradient_now <= 0) {
    const bool hyperactive = ++falling_updates_ >= parameters_.hyperactive_updates;
    set_rate(rate_bps_ +
             (hyperactive ? parameters_.hyperactive_factor : 1) * parameters_.additive_increase_bps);
    return;
  } else {
    set_rate(rate_bps_ * std::max(0.5, 1 - parameters_.decrease_gain * gradient_now));
  }
  falling_updates_ = 0;
}

double Timely::gradient(TimePs round_trip_ps) {
  const double newest_ps =
      last_round_trip_ps_ == 0 ? 0 : static_cast<double>(round_trip_ps - last_round_trip_ps_);
  last_round_trip_ps_ = round_trip_ps;
  difference_ps_ += parameters_.gradient_weight * (newest_ps - difference_ps_);
  return difference_ps_ / static_cast<double>(parameters_.min_round_trip_ps);
}

// The paper's fabrics lose nothing. The losses of a round trip are taken as one beyond any threshold.
void Timely::on_loss(TimePs now, bool /*timeout*/) {
  if (now < next_loss_ps_) return;
  next_loss_ps_ = now + std::max(last_round_trip_ps_, parameters_.min_round_trip_ps);
  set_rate(rate_bps_ * (1 - parameters_.decrease_gain / 2));
}

void Timely::set_rate(double rate_bps) {
  const auto line_rate_bps = static_cast<double>(parameters_.line_rate_bps);
  rate_bps_ = std::clamp(rate_bps, std::min(parameters_.min_rate_bps, line_rate_bps), line_rate_bps);
}

constexpr CongestionControlKind kTimely = {
    .name = "timely",
    .summary = "the rate follows the gradient of the round trip",
    .source = "Mittal et al., SIGCOMM 2015",
    .needs = {.every_acknowledgement = true},
    .parameters = kParameters,
    .presets = {},
    .make = &make_from_parameters<Timely, TimelyParameters>,
};
const CongestionRegistration kRegistration(kTimely);

std::string_view Timely::name() const { return kTimely.name; }

}  // namespace
}  // namespace weft
