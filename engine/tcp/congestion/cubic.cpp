// CUBIC: the window follows a cubic function of the time since it was last reduced. Source: RFC 9438,
// section 4. Windows are in segments and times in seconds here, as there.
#include <algorithm>
#include <cmath>
#include <memory>

#include "tcp/congestion/hystart.hpp"
#include "tcp/congestion/registry.hpp"

namespace weft::tcp {
namespace {

constexpr CongestionParameter kParameters[] = {
    {"c", 0.4, 1e-6, 1e6, "C: how aggressively the window grows, in segments per cubic second",
     "RFC 9438, section 5.1"},
    {"beta", 0.7, 0.1, 0.99, "beta_cubic: what a reduction leaves of the window", "RFC 9438, section 4.6"},
    {"fast_convergence", 1, 0, 1, "1: a flow that is reduced below its last maximum gives way further",
     "RFC 9438, section 4.7"},
    {"hystart", 1, 0, 1, "1: the first slow start slows down as round trips grow", "RFC 9406"},
};

struct CubicParameters {
  double c = 0;
  double beta = 0;
  uint32_t fast_convergence = 0;
  uint32_t hystart = 0;
};

class Cubic final : public CongestionControl {
 public:
  explicit Cubic(const CubicParameters& parameters)
      : parameters_(parameters), reno_alpha_(3 * (1 - parameters.beta) / (1 + parameters.beta)) {}

  std::string_view name() const override { return "cubic"; }

 protected:
  uint64_t reduced_bytes(TimePs now, CongestionSign sign, uint64_t flight_bytes) override;
  void avoid(const WindowAcknowledgement& acknowledgement, uint64_t acknowledged_bytes) override;
  SlowStart first_slow_start(const WindowAcknowledgement& acknowledgement) override;
  void restart() override;
  void on_unused_window(TimePs now) override;

 private:
  double window() const { return static_cast<double>(window_bytes()) / segment_bytes(); }
  double cubic_window(double seconds) const;
  void begin_epoch(TimePs now);
  void set_window(double segments);

  CubicParameters parameters_;
  HyStart hystart_;
  double reno_alpha_;              // alpha_cubic while the estimate is below the window at the last reduction
  double most_window_ = 0;         // W_max
  double before_reduction_ = 0;    // cwnd_prior
  double reno_estimate_ = 0;       // W_est
  double inflection_seconds_ = 0;  // K
  TimePs epoch_began_ps_ = kNever;
  TimePs last_growth_ps_ = 0;
  double fraction_ = 0;           // of a byte that the window has not grown by yet
  bool after_reduction_ = false;  // not after slow start alone, which leaves no W_max
};

// Sections 4.6 and 4.7.
uint64_t Cubic::reduced_bytes(TimePs /*now*/, CongestionSign /*sign*/, uint64_t flight_bytes) {
  const double at_reduction = window();
  const bool gives_way = parameters_.fast_convergence != 0 && at_reduction < most_window_;
  most_window_ = gives_way ? at_reduction * (1 + parameters_.beta) / 2 : at_reduction;
  before_reduction_ = at_reduction;
  after_reduction_ = true;
  epoch_began_ps_ = kNever;
  return static_cast<uint64_t>(static_cast<double>(flight_bytes) * parameters_.beta);
}

// Section 4.10.
CongestionControl::SlowStart Cubic::first_slow_start(const WindowAcknowledgement& acknowledgement) {
  if (parameters_.hystart == 0) return CongestionControl::first_slow_start(acknowledgement);
  const uint64_t growth = hystart_.growth_bytes(acknowledgement, segment_bytes());
  return {growth, hystart_.is_over()};
}

// Section 4.8: after a timeout the curve begins at its inflection, where slow start ends.
void Cubic::restart() {
  after_reduction_ = false;
  epoch_began_ps_ = kNever;
}

// Equation 1.
double Cubic::cubic_window(double seconds) const {
  const double from_inflection = seconds - inflection_seconds_;
  return parameters_.c * from_inflection * from_inflection * from_inflection + most_window_;
}

// Equation 2.
void Cubic::begin_epoch(TimePs now) {
  epoch_began_ps_ = now;
  reno_estimate_ = window();
  if (!after_reduction_ || most_window_ <= window()) {
    if (!after_reduction_) before_reduction_ = window();
    inflection_seconds_ = 0;
    most_window_ = window();
  } else {
    inflection_seconds_ = std::cbrt((most_window_ - window()) / parameters_.c);
  }
}

// Time in which the application or the receiver held the flow back is no part of the epoch (section 5.8).
void Cubic::on_unused_window(TimePs now) {
  if (epoch_began_ps_ != kNever) epoch_began_ps_ += now - last_growth_ps_;
  last_growth_ps_ = now;
}

// Sections 4.2 to 4.5.
void Cubic::avoid(const WindowAcknowledgement& acknowledgement, uint64_t acknowledged_bytes) {
  if (epoch_began_ps_ == kNever) begin_epoch(acknowledgement.now);
  last_growth_ps_ = acknowledgement.now;
  const double acknowledged = static_cast<double>(acknowledged_bytes) / segment_bytes();
  const double present = window();
  const auto seconds_of = [](TimePs time) { return static_cast<double>(time) / kPsPerSecond; };
  const double elapsed = seconds_of(acknowledgement.now - epoch_began_ps_);

  // Section 4.3, equation 4.
  const double alpha = reno_estimate_ < before_reduction_ ? reno_alpha_ : 1;
  reno_estimate_ += alpha * acknowledged / present;
  if (cubic_window(elapsed) < reno_estimate_) {
    set_window(std::max(reno_estimate_, present));
    return;
  }
  const double later = cubic_window(elapsed + seconds_of(acknowledgement.smoothed_round_trip_ps));
  const double target = std::clamp(later, present, 1.5 * present);
  set_window(present + (target - present) / present * acknowledged);
}

void Cubic::set_window(double segments) {
  const double bytes = segments * segment_bytes() + (segments > window() ? fraction_ : 0);
  fraction_ = bytes - std::floor(bytes);
  set_window_bytes(static_cast<uint64_t>(bytes));
}

constexpr CongestionKind kCubic = {
    .name = "cubic",
    .summary = "the window follows a cubic function of the time since it was last reduced",
    .source = "RFC 9438",
    .parameters = kParameters,
    .make = [](ParameterReader& reader) -> std::unique_ptr<CongestionControl> {
      CubicParameters parameters;
      reader.read("c", parameters.c);
      reader.read("beta", parameters.beta);
      reader.read("fast_convergence", parameters.fast_convergence);
      reader.read("hystart", parameters.hystart);
      return std::make_unique<Cubic>(parameters);
    },
};
const CongestionRegistration kRegistration(kCubic);

}  // namespace
}  // namespace weft::tcp
