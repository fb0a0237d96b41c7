#include "dcqcn.hpp"

#include <algorithm>
#include <stdexcept>

namespace weft {
namespace {

constexpr uint64_t kAdditiveIncreaseFraction = 1000;  // 40 Mb/s of 40 Gb/s
constexpr uint64_t kHyperIncreaseFraction = 100;
constexpr uint64_t kMinRateFraction = 1000;

}  // namespace

DcqcnParameters DcqcnParameters::read(const PathProperties& path, ParameterReader& reader) {
  DcqcnParameters parameters;
  parameters.line_rate_bps = path.line_rate_bps;
  reader.read("line_rate_bps", parameters.line_rate_bps, 1, kMaxParameterBps);
  parameters.min_rate_bps = std::max<uint64_t>(1, parameters.line_rate_bps / kMinRateFraction);
  parameters.additive_increase_bps = parameters.line_rate_bps / kAdditiveIncreaseFraction;
  parameters.hyper_increase_bps = parameters.line_rate_bps / kHyperIncreaseFraction;
  reader.read("min_rate_bps", parameters.min_rate_bps, 1, kMaxParameterBps);
  reader.read("gain", parameters.gain, 0, 1);
  reader.read("alpha_timer_ps", parameters.alpha_timer_ps, 1, kMaxParameterPs);
  reader.read("increase_timer_ps", parameters.increase_timer_ps, 1, kMaxParameterPs);
  reader.read("byte_counter_bytes", parameters.byte_counter_bytes, 1, kMaxParameterBytes);
  reader.read("fast_recovery_stages", parameters.fast_recovery_stages, 0, 1000);
  reader.read("additive_increase_bps", parameters.additive_increase_bps, 1, kMaxParameterBps);
  reader.read("hyper_increase_bps", parameters.hyper_increase_bps, 1, kMaxParameterBps);
  reader.read("window_bytes", parameters.window_bytes, 1, kMaxParameterBytes);
  if (parameters.line_rate_bps == 0) {
    throw std::invalid_argument("dcqcn needs the line's rate (line_rate_bps)");
  }
  return parameters;
}

Dcqcn::Dcqcn(const DcqcnParameters& parameters)
    : parameters_(parameters),
      current_rate_bps_(static_cast<double>(parameters.line_rate_bps)),
      target_rate_bps_(current_rate_bps_) {}

// Equation 1: the target is where the rate was; timer and byte counter start over.
void Dcqcn::on_congestion_notification(TimePs now) {
  increase_until(now);
  decay_alpha(now);
  target_rate_bps_ = current_rate_bps_;
  current_rate_bps_ =
      std::max(current_rate_bps_ * (1 - alpha_ / 2), static_cast<double>(parameters_.min_rate_bps));
  alpha_ = (1 - parameters_.gain) * alpha_ + parameters_.gain;
  next_decay_ps_ = now + parameters_.alpha_timer_ps;
  next_increase_ps_ = now + parameters_.increase_timer_ps;
  asleep_ = false;
  timer_stage_ = byte_counter_stage_ = 0;
  counted_bytes_ = 0;
}

// Equation 2, for all the timers that have run out since the last CNP: only a CNP looks at alpha.
void Dcqcn::decay_alpha(TimePs now) {
  while (next_decay_ps_ <= now) {
    alpha_ *= 1 - parameters_.gain;
    next_decay_ps_ += parameters_.alpha_timer_ps;
    if (alpha_ < 1e-12) break;
  }
}

void Dcqcn::on_packet_sent(TimePs now, uint64_t frame_bytes, bool /*retransmission*/) {
  if (next_increase_ps_ == kNever) return;
  asleep_ = false;
  increase_until(now);
  sent_since_increase_ = true;
  counted_bytes_ += frame_bytes;
  if (counted_bytes_ < parameters_.byte_counter_bytes) return;
  counted_bytes_ -= parameters_.byte_counter_bytes;
  ++byte_counter_stage_;
  increase();
}

void Dcqcn::on_deadline(TimePs now) {
  increase_until(now);
  // A sender without data needs no timers: what they would have done is done when it sends again.
  asleep_ = !sent_since_increase_;
  sent_since_increase_ = false;
}

void Dcqcn::increase_until(TimePs now) {
  while (next_increase_ps_ <= now) {
    next_increase_ps_ += parameters_.increase_timer_ps;
    ++timer_stage_;
    increase();
  }
}

// Figure 7: fast recovery until one of the two has passed F stages, hyper increase once both have, additive
// increase in between.
void Dcqcn::increase() {
  const uint32_t threshold = parameters_.fast_recovery_stages;
  if (std::min(timer_stage_, byte_counter_stage_) > threshold) {
    target_rate_bps_ += static_cast<double>(parameters_.hyper_increase_bps);
  } else if (std::max(timer_stage_, byte_counter_stage_) > threshold) {
    target_rate_bps_ += static_cast<double>(parameters_.additive_increase_bps);
  }
  const auto line_rate_bps = static_cast<double>(parameters_.line_rate_bps);
  target_rate_bps_ = std::min(target_rate_bps_, line_rate_bps);
  current_rate_bps_ = (current_rate_bps_ + target_rate_bps_) / 2;
  // Halving the rest for ever would keep the timer going: within a bit per second it is over.
  if (line_rate_bps - current_rate_bps_ < 1) {
    current_rate_bps_ = target_rate_bps_ = line_rate_bps;
    next_increase_ps_ = kNever;
  }
}

}  // namespace weft
