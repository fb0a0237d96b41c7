#include "congestion/dcqcn.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace weft {

DcqcnParameters DcqcnParameters::read(const PathProperties& path, ParameterReader& reader) {
  DcqcnParameters parameters;
  parameters.line_rate_bps = path.line_rate_bps;
  reader.read("line_rate_bps", parameters.line_rate_bps, 1, kMaxParameterBps);
  if (parameters.line_rate_bps == 0) {
    throw std::invalid_argument("dcqcn needs the line's rate (line_rate_bps)");
  }
  fill_dcqcn_preset(reader.preset(dcqcn_presets()), parameters);
  reader.read("min_rate_bps", parameters.min_rate_bps, 1, kMaxParameterBps);
  reader.read("gain", parameters.gain, 0, 1);
  reader.read("decrease_interval_ps", parameters.decrease_interval_ps, 0, kMaxParameterPs);
  reader.read("alpha_timer_ps", parameters.alpha_timer_ps, 1, kMaxParameterPs);
  reader.read("clamp_target_rate", parameters.clamp_target_rate, 0, 1);
  reader.read("increase_timer_ps", parameters.increase_timer_ps, 1, kMaxParameterPs);
  reader.read("byte_counter_bytes", parameters.byte_counter_bytes, 0, kMaxParameterBytes);
  reader.read("fast_recovery_stages", parameters.fast_recovery_stages, 0, 1000);
  reader.read("additive_increase_bps", parameters.additive_increase_bps, 1, kMaxParameterBps);
  reader.read("hyper_increase_bps", parameters.hyper_increase_bps, 1, kMaxParameterBps);
  reader.read("window_bytes", parameters.window_bytes, 1, kMaxParameterBytes);
  return parameters;
}

Dcqcn::Dcqcn(const DcqcnParameters& parameters)
    : parameters_(parameters),
      current_rate_bps_(static_cast<double>(parameters.line_rate_bps)),
      target_rate_bps_(current_rate_bps_) {}

// The paper's reaction point cuts at once (equation 1), an adapter's when its clock strikes.
void Dcqcn::on_congestion_notification(TimePs now) {
  if (parameters_.decrease_interval_ps > 0) {
    note_for_the_clocks(now);
    return;
  }
  increase_until(now);
  advance_alpha(now);
  cut(now);
  alpha_ = (1 - parameters_.gain) * alpha_ + parameters_.gain;
  next_alpha_ps_ = now + parameters_.alpha_timer_ps;
}

// The first CNP starts both clocks, alpha being 1.
void Dcqcn::note_for_the_clocks(TimePs now) {
  const TimePs interval_ps = parameters_.decrease_interval_ps;
  cut_if_due(now);
  if (next_alpha_ps_ == kNever) {
    next_alpha_ps_ = now + parameters_.alpha_timer_ps;
    next_cut_ps_ = now + interval_ps;
  } else {
    advance_alpha(now);
    notified_for_alpha_ = true;
    if (next_cut_ps_ <= now) next_cut_ps_ += ((now - next_cut_ps_) / interval_ps + 1) * interval_ps;
  }
  notified_for_cut_ = true;
}

void Dcqcn::cut_if_due(TimePs now) {
  if (!notified_for_cut_ || now < next_cut_ps_) return;
  const TimePs struck_ps = next_cut_ps_;
  increase_until(struck_ps);
  advance_alpha(struck_ps);
  cut(struck_ps);
  notified_for_cut_ = false;
  next_cut_ps_ += parameters_.decrease_interval_ps;
}

// Timer and byte counter start over.
void Dcqcn::cut(TimePs now) {
  if (parameters_.clamp_target_rate || timer_stage_ > 0 || byte_counter_stage_ > 0) {
    target_rate_bps_ = current_rate_bps_;
  }
  current_rate_bps_ =
      std::max(current_rate_bps_ * (1 - alpha_ / 2), static_cast<double>(parameters_.min_rate_bps));
  next_increase_ps_ = now + parameters_.increase_timer_ps;
  asleep_ = false;
  timer_stage_ = byte_counter_stage_ = 0;
  counted_bytes_ = 0;
}

// Equation 2, for all the times that the timer has run out: nobody looks at alpha in between.
void Dcqcn::advance_alpha(TimePs now) {
  if (now < next_alpha_ps_) return;
  const TimePs struck = (now - next_alpha_ps_) / parameters_.alpha_timer_ps + 1;
  next_alpha_ps_ += struck * parameters_.alpha_timer_ps;
  const double kept = 1 - parameters_.gain;
  alpha_ = kept * alpha_ + (notified_for_alpha_ ? parameters_.gain : 0);
  notified_for_alpha_ = false;
  alpha_ *= std::pow(kept, static_cast<double>(struck - 1));
}

void Dcqcn::on_packet_sent(TimePs now, uint64_t frame_bytes, bool /*retransmission*/) {
  if (next_increase_ps_ == kNever) return;
  asleep_ = false;
  increase_until(now);
  sent_since_increase_ = true;
  if (parameters_.byte_counter_bytes == 0) return;
  counted_bytes_ += frame_bytes;
  if (counted_bytes_ < parameters_.byte_counter_bytes) return;
  counted_bytes_ -= parameters_.byte_counter_bytes;
  ++byte_counter_stage_;
  increase();
}

TimePs Dcqcn::next_deadline() const {
  return std::min(asleep_ ? kNever : next_increase_ps_, notified_for_cut_ ? next_cut_ps_ : kNever);
}

void Dcqcn::on_deadline(TimePs now) {
  cut_if_due(now);
  if (now < next_increase_ps_) return;
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
// increase in between. By the timer alone, one stage of additive increase is in between.
void Dcqcn::increase() {
  const uint32_t threshold = parameters_.fast_recovery_stages;
  const bool by_timer_alone = parameters_.byte_counter_bytes == 0;
  const uint32_t behind = by_timer_alone ? timer_stage_ - 1 : std::min(timer_stage_, byte_counter_stage_);
  if (behind > threshold) {
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
