// HPCC: the window follows how full the busiest link is, as INT reports it with every acknowledgement.
// Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, section 3, algorithm 1.
//
// The paper has flows on one path. Where packets are sprayed, what each path's stamps say is kept apart, and
// the fullest path decides: a flow sends the same share into all of them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "congestion/bandwidth_delay_product.hpp"
#include "congestion/int_changes.hpp"
#include "congestion/registry.hpp"

namespace weft {
namespace {

constexpr CongestionParameter kParameters[] = {
    {"target_utilisation", 0.95, 0.01, 1, "eta: how full the busiest link is to be",
     "HPCC, SIGCOMM 2019, section 3.3"},
    {"max_stage", 0.0, 0, 1000, "rounds of additive increase before the next multiplicative one",
     "HPCC, algorithm 1; 5 in the paper, 0 in its authors' simulator and later erratum"},
    {"additive_increase_bytes", "the window's share of the head room 1 - eta, a hundredth of it", 0,
     kMaxParameterBytes, "W_AI: growth of the window in a round trip",
     "HPCC, SIGCOMM 2019, section 3.3: 80 bytes at 100 Gb/s and 13 us, so that a hundred flows fit"},
    {"round_trip_ps", "the farthest pair's idle round trip", 1, kMaxParameterPs, "T",
     "HPCC, SIGCOMM 2019, section 3.2"},
    {"max_rate_bps", "the port's rate", 1, kMaxParameterBps,
     "rate of the first window, max_rate * T, which is also the largest", "HPCC, SIGCOMM 2019, section 3.2"},
    {"min_rate_bps", "a thousandth of the port's rate", 1, kMaxParameterBps, "rate of the smallest window",
     "Weft"},
};

struct HpccParameters {
  double target_utilisation = 0;  // eta
  uint32_t max_stage = 0;
  double additive_increase_bytes = 0;  // W_AI, in a round trip
  TimePs round_trip_ps = 0;            // T
  uint64_t max_rate_bps = 0;           // of the first window, max_rate · T, which is also the largest
  uint64_t min_rate_bps = 0;           // of the smallest window
  IntRates int_rates_bps{};            // what the fabric's rate codes stand for
  bool sprayed = false;                // packets take several paths at once

  // W_AI so that a hundred flows' increases together fit into the head room 1 - eta (section 3.3): the
  // paper's 80 bytes at 100 Gb/s and 13 us. Throws std::invalid_argument for a value out of range.
  static HpccParameters read(const PathProperties& path, ParameterReader& reader);
};

class Hpcc final : public CongestionControl {
 public:
  explicit Hpcc(const HpccParameters& parameters);

  std::string_view name() const override;
  uint64_t window_bytes() const override { return static_cast<uint64_t>(window_bytes_); }
  // R = W / T (algorithm 1, line 35).
  uint64_t pacing_rate_bps() const override { return pacing_rate_bps_; }

  // Without INT, or on a path without switches that stamp it, the first window stays.
  void on_acknowledgement(const AcknowledgementEvent& event) override;

 private:
  struct PathState {
    roce::IntStack stack;  // of its latest acknowledgement, if hops are stamped
    TimePs last_ps = 0;
    double utilisation = 1.0;  // U: in-flight bytes of the busiest link by its bandwidth-delay product
  };

  void take_path(const AcknowledgementEvent& event);
  bool is_first_of_path(const AcknowledgementEvent& event) const;
  bool measure_in_flight(const roce::IntStack& stack);
  double fullest_utilisation(TimePs now) const;
  void compute_window(double utilisation, bool update_reference);
  void set_window(double bytes);

  HpccParameters parameters_;
  double max_window_bytes_;
  double min_window_bytes_;
  double window_bytes_;
  double reference_window_bytes_;  // W^c
  uint64_t pacing_rate_bps_ = 0;
  uint32_t stage_ = 0;
  uint64_t last_update_sequence_ = 0;
  PathState path_;                 // of the latest acknowledgement
  std::vector<PathState> others_;  // where packets are sprayed
};

constexpr double kFlowsInHeadRoom = 100;
constexpr uint64_t kMinRateFraction = 1000;

// As many as a fabric has spines, mostly; of more the one heard of longest ago gives way.
constexpr size_t kMostPaths = 64;
// What was heard longer ago than so many round trips says nothing about now.
constexpr int kFreshRoundTrips = 2;

// No port sends faster than its rate: stamps of which one seems to have are of parallel links, which have one
// path id. So many bytes are for frames and units that count whole.
constexpr double kTxSlackBytes = 1 << 16;

HpccParameters HpccParameters::read(const PathProperties& path, ParameterReader& reader) {
  HpccParameters parameters;
  parameters.round_trip_ps = path.base_round_trip_ps;
  parameters.max_rate_bps = path.line_rate_bps;
  parameters.min_rate_bps = path.line_rate_bps / kMinRateFraction;
  parameters.int_rates_bps = path.int_rates_bps;
  parameters.sprayed = path.sprayed;
  parameters.additive_increase_bytes = -1;
  reader.read("target_utilisation", parameters.target_utilisation);
  reader.read("max_stage", parameters.max_stage);
  reader.read("additive_increase_bytes", parameters.additive_increase_bytes);
  reader.read("round_trip_ps", parameters.round_trip_ps);
  reader.read("max_rate_bps", parameters.max_rate_bps);
  reader.read("min_rate_bps", parameters.min_rate_bps);
  if (parameters.round_trip_ps <= 0 || parameters.max_rate_bps == 0) {
    throw std::invalid_argument("hpcc needs the path's round trip and rate (round_trip_ps, max_rate_bps)");
  }
  if (parameters.additive_increase_bytes < 0) {
    const auto window =
        static_cast<double>(bandwidth_delay_product_bytes(parameters.max_rate_bps, parameters.round_trip_ps));
    parameters.additive_increase_bytes = window * (1 - parameters.target_utilisation) / kFlowsInHeadRoom;
    reader.set_default("additive_increase_bytes", parameters.additive_increase_bytes);
  }
  return parameters;
}

Hpcc::Hpcc(const HpccParameters& parameters)
    : parameters_(parameters),
      max_window_bytes_(static_cast<double>(
          bandwidth_delay_product_bytes(parameters.max_rate_bps, parameters.round_trip_ps))),
      min_window_bytes_(static_cast<double>(
          bandwidth_delay_product_bytes(parameters.min_rate_bps, parameters.round_trip_ps))),
      window_bytes_(max_window_bytes_),
      reference_window_bytes_(max_window_bytes_) {
  set_window(max_window_bytes_);
}

// The status of another path says nothing about this one (section 4.1), nor does one from before the counters
// wrapped.
bool Hpcc::is_first_of_path(const AcknowledgementEvent& event) const {
  const roce::IntStack& stack = *event.telemetry;
  return !is_of_path(path_.stack, stack) ||
         is_stale(stack, event.now - path_.last_ps, parameters_.int_rates_bps);
}

// Has `path_` be the one that an acknowledgement is of, new or heard of before.
void Hpcc::take_path(const AcknowledgementEvent& event) {
  const roce::IntStack& stack = *event.telemetry;
  if (path_.stack.hop_count == 0 || is_of_path(path_.stack, stack)) return;
  auto known = std::find_if(others_.begin(), others_.end(),
                            [&](const PathState& other) { return is_of_path(other.stack, stack); });
  if (known == others_.end()) {
    if (others_.size() + 1 < kMostPaths)
      known = others_.emplace(others_.end());
    else
      known = std::min_element(
          others_.begin(), others_.end(),
          [](const PathState& one, const PathState& other) { return one.last_ps < other.last_ps; });
    *known = PathState{{}, event.now, path_.utilisation};
  }
  std::swap(path_, *known);
}

// NewAck of algorithm 1: the reference window moves once a round trip, the window itself with every
// acknowledgement.
void Hpcc::on_acknowledgement(const AcknowledgementEvent& event) {
  if (event.telemetry == nullptr || event.telemetry->hop_count == 0) return;
  if (parameters_.sprayed) take_path(event);
  if (is_first_of_path(event)) {
    path_.stack = *event.telemetry;
    if (others_.empty()) last_update_sequence_ = event.next_sequence;
  } else if (measure_in_flight(*event.telemetry)) {
    const bool whole_round_trip = event.sequence >= last_update_sequence_;
    compute_window(fullest_utilisation(event.now), whole_round_trip);
    if (whole_round_trip) last_update_sequence_ = event.next_sequence;
  }
  path_.last_ps = event.now;
}

double Hpcc::fullest_utilisation(TimePs now) const {
  double fullest = path_.utilisation;
  for (const PathState& other : others_)
    if (now - other.last_ps <= kFreshRoundTrips * parameters_.round_trip_ps)
      fullest = std::max(fullest, other.utilisation);
  return fullest;
}

// MeasureInflight: the link of the largest u decides, averaged over a round trip. False if no link has sent
// a packet since the last time.
bool Hpcc::measure_in_flight(const roce::IntStack& stack) {
  const auto round_trip_ns = static_cast<double>(parameters_.round_trip_ps) / kPsPerNs;
  double largest = 0;
  double interval_ns = 0;
  bool measured = false;
  bool possible = true;
  // An acknowledgement that another one of its path has overtaken, on another way back.
  if (parameters_.sprayed && passed_between_ns(path_.stack.hops[0], stack.hops[0]) > kIntTimestampMask / 2)
    return false;
  for (size_t hop = 0; hop < stack.hop_count; ++hop) {
    const roce::IntHop& now = stack.hops[hop];
    roce::IntHop& before = path_.stack.hops[hop];
    const uint32_t passed_ns = passed_between_ns(before, now);
    const auto rate_bps = static_cast<double>(parameters_.int_rates_bps[now.rate_code]);
    if (passed_ns == 0 || rate_bps == 0) continue;
    const double sent_bytes = sent_between_bytes(before, now);
    const double queue_bytes = kQueueCellBytes * std::min(now.queue_cells, before.queue_cells);
    const double bytes_per_ns = rate_bps / 8e9;
    if (parameters_.sprayed && sent_bytes > 2 * bytes_per_ns * passed_ns + kTxSlackBytes) possible = false;
    const double used =
        queue_bytes / (bytes_per_ns * round_trip_ns) + sent_bytes / (bytes_per_ns * passed_ns);
    if (used > largest) {
      largest = used;
      interval_ns = passed_ns;
    }
    before = now;
    measured = true;
  }
  if (!measured || !possible) return false;
  const double weight = std::min(interval_ns, round_trip_ns) / round_trip_ns;
  path_.utilisation = (1 - weight) * path_.utilisation + weight * largest;
  return true;
}

// ComputeWind.
void Hpcc::compute_window(double utilisation, bool update_reference) {
  const bool multiply = utilisation >= parameters_.target_utilisation || stage_ >= parameters_.max_stage;
  const double scale = multiply ? utilisation / parameters_.target_utilisation : 1.0;
  set_window(reference_window_bytes_ / scale + parameters_.additive_increase_bytes);
  if (!update_reference) return;
  stage_ = multiply ? 0 : stage_ + 1;
  reference_window_bytes_ = window_bytes_;
}

void Hpcc::set_window(double bytes) {
  window_bytes_ = std::clamp(bytes, min_window_bytes_, max_window_bytes_);
  const double seconds = static_cast<double>(parameters_.round_trip_ps) / kPsPerSecond;
  pacing_rate_bps_ = std::max<uint64_t>(1, static_cast<uint64_t>(8 * window_bytes_ / seconds));
}

constexpr CongestionControlKind kHpcc = {
    .name = "hpcc",
    .summary = "the window follows how full the busiest link is, as INT reports it",
    .source = "Li et al., SIGCOMM 2019",
    .needs = {.telemetry = true, .every_acknowledgement = true},
    .parameters = kParameters,
    .presets = {},
    .make = &make_from_parameters<Hpcc, HpccParameters>,
};
const CongestionRegistration kRegistration(kHpcc);

std::string_view Hpcc::name() const { return kHpcc.name; }

}  // namespace
}  // namespace weft
