// DCQCN: the rate falls when CNPs come, and recovers in stages by a timer and a byte counter.
// Source: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.1
// (reaction point) and figure 7; the switch marks (p4/include/ecn.p4), the receiver sends CNPs. Adapters
// differ from the paper in when they cut and what they remember; presets have both.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "congestion/rate_window.hpp"
#include "congestion/registry.hpp"
#include "time/time.hpp"

namespace weft {
namespace {

constexpr const char* kOfPreset = "the preset's";

constexpr CongestionParameter kParameters[] = {
    {"line_rate_bps", "the port's rate", 1, kMaxParameterBps, "where a flow starts; never above",
     "DCQCN, SIGCOMM 2015, section 3.1"},
    {"min_rate_bps", kOfPreset, 1, kMaxParameterBps, "the rate is never below",
     "rpg_min_rate of adapters; HPCC's simulator (run.py)"},
    {"gain", kOfPreset, 0, 1, "g: weight of the newest CNPs in alpha",
     "DCQCN, SIGCOMM 2015, equations 1 and 2"},
    {"decrease_interval_ps", kOfPreset, 0, kMaxParameterPs,
     "0: every CNP cuts the rate at once; above: a clock cuts it if a CNP has come since",
     "0 in the paper; rate_reduce_monitor_period of adapters"},
    {"alpha_timer_ps", kOfPreset, 1, kMaxParameterPs, "alpha decays whenever no CNP has come for so long",
     "DCQCN, SIGCOMM 2015, equation 2 (K)"},
    {"clamp_target_rate", kOfPreset, 0, 1,
     "1: every cut makes the rate before it the target; 0: consecutive cuts leave the target",
     "1 in the paper; clamp_tgt_rate of adapters"},
    {"increase_timer_ps", kOfPreset, 1, kMaxParameterPs, "T: time of a stage of recovery",
     "DCQCN, SIGCOMM 2015, figure 7"},
    {"byte_counter_bytes", kOfPreset, 0, kMaxParameterBytes,
     "B: bytes of a stage of recovery; 0: stages are counted by the timer alone",
     "DCQCN, SIGCOMM 2015, figure 7"},
    {"fast_recovery_stages", kOfPreset, 0, 1000, "F: stages of fast recovery",
     "DCQCN, SIGCOMM 2015, figure 7"},
    {"additive_increase_bps", kOfPreset, 1, kMaxParameterBps, "R_AI", "DCQCN, SIGCOMM 2015, figure 7"},
    {"hyper_increase_bps", kOfPreset, 1, kMaxParameterBps, "R_HAI", "DCQCN, SIGCOMM 2015, figure 7"},
    kRateWindowBytes,
    kWindowFollowsRate,
};

struct DcqcnParameters {
  uint32_t frame_bytes = 0;    // of a full packet
  uint64_t line_rate_bps = 0;  // where a flow starts, and never above
  uint64_t min_rate_bps = 0;   // never below
  double gain = 1.0 / 256;     // g
  // 0: every CNP also raises alpha at once. Above 0: the first CNP starts the clock.
  TimePs decrease_interval_ps = 0;
  // Alpha decays whenever so long no CNP has come. With a decrease interval it is raised by this clock, too,
  // and not by each CNP.
  TimePs alpha_timer_ps = 55 * kPsPerUs;
  // True as in the paper: every cut makes the rate before it the target. False: a cut that follows another
  // before the rate has recovered by a stage leaves the target.
  bool clamp_target_rate = true;
  TimePs increase_timer_ps = 55 * kPsPerUs;
  uint64_t byte_counter_bytes = 10'000'000;  // B; 0: stages are counted by the timer alone
  uint32_t fast_recovery_stages = 5;         // F
  uint64_t additive_increase_bps = 0;        // R_AI
  uint64_t hyper_increase_bps = 0;           // R_HAI
  RateWindow window;                         // DCQCN has none of its own

  // Those of the preset, for the port's rate, and what was given beside it. Throws std::invalid_argument for
  // a value out of range or an unknown preset.
  static DcqcnParameters read(const PathProperties& path, ParameterReader& reader);
};

// Sections 3.1 and 5.2 of the paper. R_AI is 40 Mb/s at 40 Gb/s and in proportion at other rates, R_HAI ten
// times that; the least rate is a thousandth of the port's.
void fill_paper(DcqcnParameters& parameters) {
  const uint64_t line_rate_bps = parameters.line_rate_bps;
  parameters.min_rate_bps = line_rate_bps / 1000;
  parameters.additive_increase_bps = line_rate_bps / 1000;
  parameters.hyper_increase_bps = line_rate_bps / 100;
}

// What both others have: rates are cut at most every 4 us, alpha has a clock of its own, the target stays
// through consecutive cuts, and stages are counted by the timer alone.
void fill_nic(DcqcnParameters& parameters) {
  parameters.decrease_interval_ps = 4 * kPsPerUs;
  parameters.alpha_timer_ps = kPsPerUs;
  parameters.increase_timer_ps = 300 * kPsPerUs;
  parameters.byte_counter_bytes = 0;
  parameters.fast_recovery_stages = 1;
  parameters.clamp_target_rate = false;
}

// run.py gives rates for 25 Gb/s (R_AI 5 Mb/s, R_HAI 50 Mb/s) and scales them, and 1 Gb/s as the least.
// A step of alpha, 1 us, is three frames of 1,000 bytes at 25 Gb/s. With a slower port or larger frames most
// steps see no marked packet, alpha decays before the sender has found its rate, and a queue without flow
// control overflows. So each step takes at least two frames: the first cut leaves half of the line rate.
void fill_comparison(DcqcnParameters& parameters) {
  fill_nic(parameters);
  const uint64_t line_rate_bps = parameters.line_rate_bps;
  parameters.alpha_timer_ps = std::max(
      parameters.alpha_timer_ps, BitRate::serialisation_ps(2ull * parameters.frame_bytes, line_rate_bps));
  parameters.min_rate_bps = line_rate_bps / 100;
  parameters.additive_increase_bps = line_rate_bps / 5000;
  parameters.hyper_increase_bps = line_rate_bps / 500;
}

// The firmware's defaults, which do not depend on the port's rate: dce_tcp_g 1019 of 1024, rpg_ai_rate 5,
// rpg_hai_rate 50, rpg_min_rate 1 (Mb/s). rpg_byte_reset is left out: sources differ on its unit, and
// Mellanox's algorithm in HPCC's simulator has no byte counter.
void fill_connectx(DcqcnParameters& parameters) {
  fill_nic(parameters);
  parameters.gain = 5.0 / 1024;
  parameters.min_rate_bps = 1'000'000;
  parameters.additive_increase_bps = 5'000'000;
  parameters.hyper_increase_bps = 50'000'000;
}

using Fill = void (*)(DcqcnParameters&);

// The default first.
constexpr std::array<CongestionPreset, 3> kPresets = {{
    {"hpcc-comparison",
     "HPCC's simulator (alibaba-edu/High-Precision-Congestion-Control: rdma-hw.cc, \"Mellanox's version of "
     "DCQCN\"; run.py --cc dcqcn): marks are reported packet by packet; alpha decays each 1 us, or each "
     "two frames at line rate if that is longer",
     0},
    {"connectx", "NVIDIA, DCQCN parameters: the defaults of ConnectX-4 and later adapters", 4 * kPsPerUs},
    {"paper-2015", "Zhu et al., SIGCOMM 2015, sections 3.1 and 5.2", 50 * kPsPerUs},
}};
constexpr std::array<Fill, kPresets.size()> kFills = {&fill_comparison, &fill_connectx, &fill_paper};

// Given the link's rate, fills in the rest.
void fill_preset(const CongestionPreset& preset, DcqcnParameters& parameters) {
  for (size_t at = 0; at < kPresets.size(); ++at) {
    if (kPresets[at].name == preset.name) kFills[at](parameters);
  }
  const auto at_least_one = [](uint64_t& rate_bps) { rate_bps = std::max<uint64_t>(1, rate_bps); };
  at_least_one(parameters.min_rate_bps);
  at_least_one(parameters.additive_increase_bps);
  at_least_one(parameters.hyper_increase_bps);
  parameters.min_rate_bps = std::min(parameters.min_rate_bps, parameters.line_rate_bps);
}

class Dcqcn final : public CongestionControl {
 public:
  explicit Dcqcn(const DcqcnParameters& parameters);

  std::string_view name() const override;
  uint64_t window_bytes() const override {
    return parameters_.window.bytes(current_rate_bps_, parameters_.line_rate_bps);
  }
  uint64_t pacing_rate_bps() const override { return static_cast<uint64_t>(current_rate_bps_); }

  void on_packet_sent(TimePs now, uint64_t frame_bytes, bool retransmission) override;
  void on_congestion_notification(TimePs now) override;
  TimePs next_deadline() const override;
  void on_deadline(TimePs now) override;

 private:
  void note_for_the_clocks(TimePs now);
  void cut_if_due(TimePs now);
  void cut(TimePs now);
  void advance_alpha(TimePs now);
  void increase_until(TimePs now);
  void increase();

  DcqcnParameters parameters_;
  double current_rate_bps_;  // R_C
  double target_rate_bps_;   // R_T
  double alpha_ = 1.0;
  TimePs next_alpha_ps_ = kNever;     // kNever: no CNP has come
  TimePs next_cut_ps_ = kNever;       // of the clock that cuts, if it has one
  bool notified_for_alpha_ = false;   // a CNP has come since alpha's clock last struck
  bool notified_for_cut_ = false;     // and since that of cuts did
  TimePs next_increase_ps_ = kNever;  // kNever: at line rate
  uint64_t counted_bytes_ = 0;
  uint32_t timer_stage_ = 0;         // T
  uint32_t byte_counter_stage_ = 0;  // BC
  bool sent_since_increase_ = false;
  bool asleep_ = false;  // nothing is being sent: increases are made up for with the next packet
};

DcqcnParameters DcqcnParameters::read(const PathProperties& path, ParameterReader& reader) {
  DcqcnParameters parameters;
  parameters.frame_bytes = path.frame_bytes;
  parameters.line_rate_bps = path.line_rate_bps;
  reader.read("line_rate_bps", parameters.line_rate_bps);
  if (parameters.line_rate_bps == 0) {
    throw std::invalid_argument("dcqcn needs the port's rate (line_rate_bps)");
  }
  fill_preset(reader.preset(), parameters);
  reader.read("min_rate_bps", parameters.min_rate_bps);
  reader.read("gain", parameters.gain);
  reader.read("decrease_interval_ps", parameters.decrease_interval_ps);
  reader.read("alpha_timer_ps", parameters.alpha_timer_ps);
  reader.read("clamp_target_rate", parameters.clamp_target_rate);
  reader.read("increase_timer_ps", parameters.increase_timer_ps);
  reader.read("byte_counter_bytes", parameters.byte_counter_bytes);
  reader.read("fast_recovery_stages", parameters.fast_recovery_stages);
  reader.read("additive_increase_bps", parameters.additive_increase_bps);
  reader.read("hyper_increase_bps", parameters.hyper_increase_bps);
  parameters.window = RateWindow::read(path, reader);
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

constexpr CongestionControlKind kDcqcn = {
    .name = "dcqcn",
    .summary = "the rate falls when CNPs come, and recovers in stages by a timer and a byte counter",
    .source = "Zhu et al., SIGCOMM 2015",
    .needs = {.marks = true},
    .parameters = kParameters,
    .presets = kPresets,
    .make = &make_from_parameters<Dcqcn, DcqcnParameters>,
};
const CongestionRegistration kRegistration(kDcqcn);

std::string_view Dcqcn::name() const { return kDcqcn.name; }

}  // namespace
}  // namespace weft
