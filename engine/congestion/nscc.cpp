// NSCC (Network-Signalled Congestion Control): the window follows marks and queueing delay together.
// Source: Ultra Ethernet Specification 1.0, section 3.6 (NSCC); MRC 1.0, section 8, takes it over. The
// constants, and what the text leaves open, are as in the consortium's simulator (ultraethernet/uet-htsim,
// uec.cpp). Windows count whole frames here, payload there.
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "congestion/bandwidth_delay_product.hpp"
#include "congestion/registry.hpp"

namespace weft {
namespace {

constexpr const char* kSimulator = "uet-htsim, initNsccParams";

constexpr CongestionParameter kParameters[] = {
    {"target_queue_delay_ps", "the farthest pair's idle round trip", 1, kMaxParameterPs,
     "delay beyond an idle round trip that is kept to",
     "uet-htsim, initNsccParams: a round trip, three quarters of it where switches trim"},
    {"fair_increase_bytes", "5 frames on a path that holds 150 kB, in proportion on others", 0,
     kMaxParameterBytes, "growth in a round trip of unmarked packets that were delayed longer", kSimulator},
    {"proportional_increase_bytes",
     "4 frames times target_queue_delay by 12 us on a path that holds 150 kB, in proportion on others", 0,
     kMaxParameterBytes, "growth in a round trip of unmarked packets without delay; less with more",
     kSimulator},
    {"constant_increase_bytes", "0.15 frames on a path that holds 150 kB, in proportion on others", 0,
     kMaxParameterBytes, "eta: growth in each adjustment period", kSimulator},
    {"adjustment_period_ps", "the farthest pair's idle round trip", 1, kMaxParameterPs,
     "increases come into force after so long", kSimulator},
    {"adjustment_bytes", "8 frames", 1, kMaxParameterBytes, "or after so many bytes have arrived",
     kSimulator},
    {"fast_increase_gain", "0.25 on a path that holds 150 kB, in proportion on others", 0, 1000,
     "growth by each byte once a whole window saw no queue", kSimulator},
    {"fast_increase_delay_ps", 1e6, 0, kMaxParameterPs, "delay below which a packet saw no queue",
     "uet-htsim, fast_increase: 1 us"},
    {"decrease_gain", 0.8, 0, 1, "gamma: decrease in proportion to the mean delay's excess", kSimulator},
    {"max_decrease", 0.5, 0, 0.999, "largest decrease, at most once a round trip",
     "uet-htsim, multiplicative_decrease"},
    {"delay_weight", 0.0125, 0, 1, "weight of the newest delay in the mean", kSimulator},
    {"quick_adapt", 1.0, 0, 1,
     "1: after losses or long delays the window becomes what has arrived in a round trip", kSimulator},
    {"quick_adapt_share", 0.125, 0, 1, "only if that is less than this share of the largest window",
     kSimulator},
    {"quick_adapt_delay_ps", "four times target_queue_delay", 1, kMaxParameterPs, "delay that counts as long",
     kSimulator},
    {"max_window_bytes", "one and a half times the bandwidth-delay product", 1, kMaxParameterBytes,
     "largest window", "uet-htsim, initNscc"},
    {"initial_window_bytes", "max_window", 1, kMaxParameterBytes, "window of a new connection",
     "uet-htsim, initNscc"},
};

struct NsccParameters {
  uint32_t frame_bytes = 0;
  TimePs base_round_trip_ps = 0;
  TimePs target_queue_delay_ps = 0;
  double fair_increase_bytes = 0;
  double proportional_increase_bytes = 0;
  double constant_increase_bytes = 0;
  TimePs adjustment_period_ps = 0;
  uint64_t adjustment_bytes = 0;
  double fast_increase_gain = 0;
  TimePs fast_increase_delay_ps = 0;
  double decrease_gain = 0;
  double max_decrease = 0;
  double delay_weight = 0;
  bool quick_adapt = true;
  double quick_adapt_share = 0;
  TimePs quick_adapt_delay_ps = 0;
  double max_window_bytes = 0;
  double initial_window_bytes = 0;

  // Throws std::invalid_argument for a value out of range.
  static NsccParameters read(const PathProperties& path, ParameterReader& reader);
};

class Nscc final : public CongestionControl {
 public:
  explicit Nscc(const NsccParameters& parameters)
      : parameters_(parameters),
        base_round_trip_ps_(parameters.base_round_trip_ps),
        window_bytes_(parameters.initial_window_bytes) {
    keep_bounds();
  }

  std::string_view name() const override;
  uint64_t window_bytes() const override { return static_cast<uint64_t>(window_bytes_); }
  // Acknowledgements pace the sender.
  uint64_t pacing_rate_bps() const override { return 0; }

  void on_packet_sent(TimePs /*now*/, uint64_t frame_bytes, bool /*retransmission*/) override {
    in_flight_bytes_ += frame_bytes;
  }
  void on_acknowledgement(const AcknowledgementEvent& event) override;
  // Packets that a switch trimmed or dropped.
  void on_lost_bytes(TimePs now, bool timeout, uint64_t lost_bytes) override;

 private:
  TimePs note_round_trip(TimePs round_trip_ps, bool marked);
  void note_delay(TimePs delay_ps, bool marked);
  bool quick_adapt(TimePs now, bool loss, bool marked, TimePs delay_ps);
  void increase_in_proportion(double acknowledged_bytes, TimePs delay_ps);
  void decrease(TimePs now);
  void adjust(TimePs now);
  void keep_bounds();

  NsccParameters parameters_;
  TimePs base_round_trip_ps_;
  double window_bytes_;
  uint64_t in_flight_bytes_ = 0;

  double mean_delay_ps_ = 0;
  double increase_ = 0;  // not yet in force, in bytes times the window's bytes
  uint64_t arrived_bytes_ = 0;
  TimePs last_adjustment_ps_ = 0;
  TimePs last_decrease_ps_ = 0;

  uint64_t undelayed_bytes_ = 0;
  bool fast_increase_ = false;

  TimePs adapt_end_ps_ = 0;
  bool adapt_wanted_ = false;
  uint64_t achieved_bytes_ = 0;  // since the period began
  uint64_t bytes_to_ignore_ = 0;
  uint64_t ignored_bytes_ = 0;
};

// Of the path that the constants were found on: 100 Gb/s and 12 us.
constexpr TimePs kReferenceRoundTripPs = 12 * kPsPerUs;
constexpr uint64_t kReferenceRateBps = 100'000'000'000;

NsccParameters NsccParameters::read(const PathProperties& path, ParameterReader& reader) {
  NsccParameters parameters;
  parameters.frame_bytes = path.frame_bytes;
  parameters.base_round_trip_ps = path.base_round_trip_ps;
  if (path.frame_bytes == 0 || path.base_round_trip_ps <= 0 || path.line_rate_bps == 0)
    throw std::invalid_argument("nscc needs the path's round trip, rate and frame size");
  const auto product_bytes =
      static_cast<double>(bandwidth_delay_product_bytes(path.line_rate_bps, path.base_round_trip_ps));
  const double scale = product_bytes / static_cast<double>(bandwidth_delay_product_bytes(
                                           kReferenceRateBps, kReferenceRoundTripPs));
  const double frame = path.frame_bytes;

  parameters.target_queue_delay_ps = path.base_round_trip_ps;
  reader.read("target_queue_delay_ps", parameters.target_queue_delay_ps);
  const double target_scale = static_cast<double>(parameters.target_queue_delay_ps) / kReferenceRoundTripPs;
  parameters.fair_increase_bytes = 5 * frame * scale;
  parameters.proportional_increase_bytes = 4 * frame * scale * target_scale;
  parameters.constant_increase_bytes = 0.15 * frame * scale;
  parameters.adjustment_period_ps = path.base_round_trip_ps;
  parameters.adjustment_bytes = 8ull * path.frame_bytes;
  parameters.fast_increase_gain = 0.25 * scale;
  parameters.quick_adapt_delay_ps = 4 * parameters.target_queue_delay_ps;
  parameters.max_window_bytes = 1.5 * product_bytes;
  reader.read("fair_increase_bytes", parameters.fair_increase_bytes);
  reader.read("proportional_increase_bytes", parameters.proportional_increase_bytes);
  reader.read("constant_increase_bytes", parameters.constant_increase_bytes);
  reader.read("adjustment_period_ps", parameters.adjustment_period_ps);
  reader.read("adjustment_bytes", parameters.adjustment_bytes);
  reader.read("fast_increase_gain", parameters.fast_increase_gain);
  reader.read("fast_increase_delay_ps", parameters.fast_increase_delay_ps);
  reader.read("decrease_gain", parameters.decrease_gain);
  reader.read("max_decrease", parameters.max_decrease);
  reader.read("delay_weight", parameters.delay_weight);
  reader.read("quick_adapt", parameters.quick_adapt);
  reader.read("quick_adapt_share", parameters.quick_adapt_share);
  reader.read("quick_adapt_delay_ps", parameters.quick_adapt_delay_ps);
  reader.read("max_window_bytes", parameters.max_window_bytes);
  parameters.initial_window_bytes = parameters.max_window_bytes;
  reader.read("initial_window_bytes", parameters.initial_window_bytes);
  return parameters;
}

// The four cases: unmarked or marked, below the target delay or above it.
void Nscc::on_acknowledgement(const AcknowledgementEvent& event) {
  const bool marked = event.congestion_experienced;
  const auto acknowledged_bytes = static_cast<double>(event.acknowledged_bytes);
  in_flight_bytes_ = event.in_flight_bytes;
  achieved_bytes_ += event.acknowledged_bytes;
  arrived_bytes_ += event.acknowledged_bytes;
  ignored_bytes_ += event.acknowledged_bytes;
  const TimePs delay_ps = note_round_trip(event.round_trip_ps, marked);
  if (quick_adapt(event.now, false, marked, delay_ps)) return;
  const bool delayed = delay_ps >= parameters_.target_queue_delay_ps;
  if (!marked && delayed)
    increase_ += parameters_.fair_increase_bytes * acknowledged_bytes;
  else if (!marked)
    increase_in_proportion(acknowledged_bytes, delay_ps);
  else if (delayed)
    decrease(event.now);
  // Marked without delay: the mark is for the choice of path.
  keep_bounds();
  if (arrived_bytes_ > parameters_.adjustment_bytes ||
      event.now - last_adjustment_ps_ > parameters_.adjustment_period_ps)
    adjust(event.now);
  keep_bounds();
}

// The queueing delay of this packet; of one that was sent twice, and nobody knows which came, the mean.
TimePs Nscc::note_round_trip(TimePs round_trip_ps, bool marked) {
  if (round_trip_ps <= 0) return static_cast<TimePs>(mean_delay_ps_);
  base_round_trip_ps_ = std::min(base_round_trip_ps_, round_trip_ps);
  const TimePs delay_ps = round_trip_ps - base_round_trip_ps_;
  note_delay(delay_ps, marked);
  return delay_ps;
}

// A long delay without a mark is of a queue that drains: it counts as a quarter of a round trip.
void Nscc::note_delay(TimePs delay_ps, bool marked) {
  const bool draining = !marked && delay_ps > parameters_.target_queue_delay_ps;
  const double newest_ps =
      draining ? static_cast<double>(base_round_trip_ps_) / 4 : static_cast<double>(delay_ps);
  mean_delay_ps_ += parameters_.delay_weight * (newest_ps - mean_delay_ps_);
}

// Whether the window is what a period achieved, or the packets sent before that are still coming in.
bool Nscc::quick_adapt(TimePs now, bool loss, bool marked, TimePs delay_ps) {
  if (!parameters_.quick_adapt) return false;
  bool done = false;
  if (ignored_bytes_ < bytes_to_ignore_ && marked) {
    done = true;
  } else if (now > adapt_end_ps_) {
    const bool congested = adapt_wanted_ || loss || delay_ps > parameters_.quick_adapt_delay_ps;
    const auto achieved_bytes = static_cast<double>(achieved_bytes_);
    if (adapt_end_ps_ != 0 && congested &&
        achieved_bytes < parameters_.max_window_bytes * parameters_.quick_adapt_share) {
      window_bytes_ = achieved_bytes;
      keep_bounds();
      bytes_to_ignore_ = in_flight_bytes_;
      ignored_bytes_ = 0;
      adapt_wanted_ = false;
      done = true;
    }
    achieved_bytes_ = 0;
    adapt_end_ps_ = now + base_round_trip_ps_ + parameters_.target_queue_delay_ps;
  }
  if (done) {
    increase_ = 0;
    arrived_bytes_ = 0;
  }
  return done;
}

void Nscc::increase_in_proportion(double acknowledged_bytes, TimePs delay_ps) {
  if (delay_ps >= parameters_.fast_increase_delay_ps) {
    undelayed_bytes_ = 0;
    fast_increase_ = false;
  } else {
    undelayed_bytes_ += static_cast<uint64_t>(acknowledged_bytes);
    fast_increase_ = fast_increase_ || static_cast<double>(undelayed_bytes_) > window_bytes_;
  }
  if (fast_increase_) {
    window_bytes_ += acknowledged_bytes * parameters_.fast_increase_gain;
    return;
  }
  const double room =
      1 - static_cast<double>(delay_ps) / static_cast<double>(parameters_.target_queue_delay_ps);
  increase_ += parameters_.proportional_increase_bytes * acknowledged_bytes * room;
}

void Nscc::decrease(TimePs now) {
  fast_increase_ = false;
  undelayed_bytes_ = 0;
  const auto target_ps = static_cast<double>(parameters_.target_queue_delay_ps);
  if (mean_delay_ps_ <= target_ps || now - last_decrease_ps_ <= base_round_trip_ps_) return;
  const double excess = (mean_delay_ps_ - target_ps) / mean_delay_ps_;
  window_bytes_ *= std::max(1 - parameters_.decrease_gain * excess, 1 - parameters_.max_decrease);
  last_decrease_ps_ = now;
}

void Nscc::adjust(TimePs now) {
  window_bytes_ += increase_ / window_bytes_;
  if (now - last_adjustment_ps_ >= parameters_.adjustment_period_ps) {
    window_bytes_ += parameters_.constant_increase_bytes;
    last_adjustment_ps_ = now;
  }
  increase_ = 0;
  arrived_bytes_ = 0;
}

// The simulator calls updateCwndOnNack_NSCC for each packet; an acknowledgement may tell of several at once.
// Each lost byte comes off the window, unless quick adapt has set it.
void Nscc::on_lost_bytes(TimePs now, bool /*timeout*/, uint64_t lost_bytes) {
  for (uint64_t left = lost_bytes; left > 0;) {
    const uint64_t frame_bytes = std::min<uint64_t>(left, parameters_.frame_bytes);
    left -= frame_bytes;
    ignored_bytes_ += frame_bytes;
    in_flight_bytes_ -= std::min(in_flight_bytes_, frame_bytes);
    note_delay(parameters_.base_round_trip_ps, true);
    adapt_wanted_ = true;
    if (quick_adapt(now, true, true, 0)) continue;
    window_bytes_ -= static_cast<double>(frame_bytes);
    keep_bounds();
  }
}

void Nscc::keep_bounds() {
  const double least_bytes = parameters_.frame_bytes;
  window_bytes_ = std::clamp(window_bytes_, least_bytes, std::max(least_bytes, parameters_.max_window_bytes));
}

constexpr CongestionControlKind kNscc = {
    .name = "nscc",
    .summary = "the window follows marks and queueing delay together",
    .source = "Ultra Ethernet Specification 1.0, section 3.6",
    .needs = {.marks = true, .every_acknowledgement = true},
    .parameters = kParameters,
    .presets = {},
    .make = &make_from_parameters<Nscc, NsccParameters>,
    // uet-htsim, main_uec.cpp: from a fifth to four fifths of the bandwidth-delay product.
    .marks = {.kmin_round_trips = 0.2, .kmax_round_trips = 0.8, .pmax = 1},
};
const CongestionRegistration kRegistration(kNscc);

std::string_view Nscc::name() const { return kNscc.name; }

}  // namespace
}  // namespace weft
