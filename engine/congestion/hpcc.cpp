#include "congestion/hpcc.hpp"

#include <algorithm>

#include "congestion/fixed_window.hpp"

namespace weft {
namespace {

constexpr double kFlowsInHeadRoom = 100;
constexpr uint64_t kMinRateFraction = 1000;

constexpr uint32_t kTimestampMask = 0xFFFFFF;
constexpr uint32_t kTxUnitMask = 0xFFFFF;
constexpr double kTxUnitBytes = 128;
constexpr double kQueueCellBytes = 80;

// The byte counter of a link at 1.6 Tb/s wraps in 0.67 ms, that of slower ones and the time stamp later: a
// stack that is older than half of that tells nothing of how much was sent since.
constexpr double kTxWrapBits = 8 * kTxUnitBytes * (kTxUnitMask + 1.0);

}  // namespace

HpccParameters HpccParameters::read(const PathProperties& path, ParameterReader& reader) {
  HpccParameters parameters;
  parameters.round_trip_ps = path.base_round_trip_ps;
  parameters.max_rate_bps = path.line_rate_bps;
  parameters.min_rate_bps = path.line_rate_bps / kMinRateFraction;
  parameters.int_rates_bps = path.int_rates_bps;
  parameters.additive_increase_bytes = -1;
  reader.read("target_utilisation", parameters.target_utilisation, 0.01, 1.0);
  reader.read("max_stage", parameters.max_stage, 0, 1000);
  reader.read("additive_increase_bytes", parameters.additive_increase_bytes, 0, kMaxParameterBytes);
  reader.read("round_trip_ps", parameters.round_trip_ps, 1, kMaxParameterPs);
  reader.read("max_rate_bps", parameters.max_rate_bps, 1, kMaxParameterBps);
  reader.read("min_rate_bps", parameters.min_rate_bps, 1, kMaxParameterBps);
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

double Hpcc::fastest_rate_bps(const roce::IntStack& stack) const {
  uint64_t fastest = 1'000'000'000;
  for (size_t hop = 0; hop < stack.hop_count; ++hop) {
    fastest = std::max(fastest, parameters_.int_rates_bps[stack.hops[hop].rate_code]);
  }
  return static_cast<double>(fastest);
}

// Status of another path tells nothing about this one (section 4.1), nor does one from before the counters
// wrapped.
bool Hpcc::is_first_of_path(const AcknowledgementEvent& event) const {
  const roce::IntStack& stack = *event.telemetry;
  if (!has_stack_ || stack.path_id != stack_.path_id || stack.hop_count != stack_.hop_count) return true;
  const double wrap_ps = kTxWrapBits / fastest_rate_bps(stack) * static_cast<double>(kPsPerSecond);
  return static_cast<double>(event.now - last_stack_ps_) > wrap_ps / 2;
}

// NewAck of algorithm 1: the reference window moves once a round trip, the window itself with every
// acknowledgement.
void Hpcc::on_acknowledgement(const AcknowledgementEvent& event) {
  if (event.telemetry == nullptr || event.telemetry->hop_count == 0) return;
  if (is_first_of_path(event)) {
    stack_ = *event.telemetry;
    has_stack_ = true;
    last_update_sequence_ = event.next_sequence;
  } else if (measure_in_flight(*event.telemetry)) {
    const bool whole_round_trip = event.sequence >= last_update_sequence_;
    compute_window(whole_round_trip);
    if (whole_round_trip) last_update_sequence_ = event.next_sequence;
  }
  last_stack_ps_ = event.now;
}

// MeasureInflight: the link of the largest u decides, averaged over a round trip. False if no link has sent
// a packet since the last time.
bool Hpcc::measure_in_flight(const roce::IntStack& stack) {
  const auto round_trip_ns = static_cast<double>(parameters_.round_trip_ps) / kPsPerNs;
  double largest = 0;
  double interval_ns = 0;
  bool measured = false;
  for (size_t hop = 0; hop < stack.hop_count; ++hop) {
    const roce::IntHop& now = stack.hops[hop];
    roce::IntHop& before = stack_.hops[hop];
    const uint32_t passed_ns = (now.timestamp_ns - before.timestamp_ns) & kTimestampMask;
    const auto rate_bps = static_cast<double>(parameters_.int_rates_bps[now.rate_code]);
    if (passed_ns == 0 || rate_bps == 0) continue;
    const double sent_bytes = kTxUnitBytes * ((now.tx_units - before.tx_units) & kTxUnitMask);
    const double queue_bytes = kQueueCellBytes * std::min(now.queue_cells, before.queue_cells);
    const double bytes_per_ns = rate_bps / 8e9;
    const double used =
        queue_bytes / (bytes_per_ns * round_trip_ns) + sent_bytes / (bytes_per_ns * passed_ns);
    if (used > largest) {
      largest = used;
      interval_ns = passed_ns;
    }
    before = now;
    measured = true;
  }
  if (!measured) return false;
  const double weight = std::min(interval_ns, round_trip_ns) / round_trip_ns;
  utilisation_ = (1 - weight) * utilisation_ + weight * largest;
  return true;
}

// ComputeWind.
void Hpcc::compute_window(bool update_reference) {
  const bool multiply = utilisation_ >= parameters_.target_utilisation || stage_ >= parameters_.max_stage;
  const double scale = multiply ? utilisation_ / parameters_.target_utilisation : 1.0;
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

}  // namespace weft
