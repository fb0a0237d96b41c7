#include "links/priority_flow_control.hpp"

#include <algorithm>
#include <stdexcept>

#include "observe/probe.hpp"

namespace weft {

PriorityFlowControl::PriorityFlowControl(Engine& engine, TransmitPort& port, PfcConfig config)
    : engine_(engine),
      port_(port),
      config_(config),
      refresh_(engine.events(), member_action<&PriorityFlowControl::on_refresh>(this)),
      expiry_(engine.events(), member_action<&PriorityFlowControl::on_expiry>(this)) {
  if (config.pause_quanta == 0) throw std::invalid_argument("PFC pause_quanta is 0 (1 to 65535)");
  if (port.rate_bps() == 0)
    throw std::invalid_argument("PFC needs a port with a rate: a pause lasts so many bit times");
}

TimePs PriorityFlowControl::duration_ps(uint16_t quanta) const {
  return port_.rate().serialisation_ps(mac_control::kQuantumBytes * quanta);
}

// --- asking

void PriorityFlowControl::on_pause_wanted(int priority_class, bool wanted) {
  const uint32_t bit = 1u << priority_class;
  wanted_classes_ = wanted ? wanted_classes_ | bit : wanted_classes_ & ~bit;
  send(bit);
  if (asked_classes() == 0)
    refresh_.cancel();
  else if (!refresh_.armed())
    arm_refresh();
}

void PriorityFlowControl::storm(uint32_t classes) {
  const uint32_t added = classes & ~asked_classes();
  storm_classes_ = classes;
  if (added != 0) send(added);
  if (asked_classes() == 0)
    refresh_.cancel();
  else if (!refresh_.armed())
    arm_refresh();
}

void PriorityFlowControl::arm_refresh() {
  // Half the pause: one lost or late frame then does not let the sender go on.
  refresh_.arm(engine_.now() + std::max<TimePs>(1, duration_ps(config_.pause_quanta) / 2));
}

void PriorityFlowControl::send(uint32_t classes) {
  mac_control::PriorityPause pause;
  pause.enabled_classes = static_cast<uint8_t>(classes);
  for (size_t each = 0; each < mac_control::kClasses; ++each) {
    if ((classes >> each & 1u) == 0) continue;
    const bool wanted = (asked_classes() >> each & 1u) != 0;
    pause.quanta[each] = wanted ? config_.pause_quanta : uint16_t{0};
    ++(wanted ? counters_[each].pauses_sent : counters_[each].resumes_sent);
  }
  // Pause frames pass all queues, and are never paused themselves.
  port_.send_control(mac_control::make_priority_pause(engine_.packets(), config_.source_mac, pause));
}

void PriorityFlowControl::on_refresh() {
  send(asked_classes());
  arm_refresh();
}

// --- obeying

void PriorityFlowControl::on_pause_frame(const mac_control::PriorityPause& pause) {
  for (size_t each = 0; each < mac_control::kClasses; ++each) {
    if ((pause.enabled_classes >> each & 1u) == 0) continue;
    const uint16_t quanta = pause.quanta[each];
    ++(quanta != 0 ? counters_[each].pauses_received : counters_[each].resumes_received);
    paused_until_ps_[each] = engine_.now() + duration_ps(quanta);
    set_paused(static_cast<int>(each), quanta != 0);
  }
  apply();
}

void PriorityFlowControl::set_paused(int priority_class, bool paused) {
  const uint32_t bit = 1u << priority_class;
  const auto each = static_cast<size_t>(priority_class);
  if (((paused_classes_ & bit) != 0) == paused) return;
  paused_classes_ ^= bit;
  if (watchdog_ != nullptr) watchdog_->on_pause_changed(priority_class, paused);
  if (paused) {
    paused_since_ps_[each] = engine_.now();
    return;
  }
  counters_[each].paused_ps += engine_.now() - paused_since_ps_[each];
  if (Probe* probe = engine_.probe())
    probe->paused(&port_, priority_class, paused_since_ps_[each], engine_.now());
}

void PriorityFlowControl::apply() {
  TimePs first_ps = kNever;
  for (size_t each = 0; each < mac_control::kClasses; ++each)
    if ((paused_classes_ >> each & 1u) != 0) first_ps = std::min(first_ps, paused_until_ps_[each]);
  if (first_ps == kNever)
    expiry_.cancel();
  else
    expiry_.arm(first_ps);
  port_.set_blocked_classes(watchdog_ == nullptr ? paused_classes_
                                                 : paused_classes_ & ~watchdog_->ignored_classes());
}

void PriorityFlowControl::enable_watchdog(const PfcWatchdogConfig& config, Node*& receiver) {
  if (watchdog_ != nullptr) throw std::logic_error("the port has a PFC watchdog already");
  watchdog_ = std::make_unique<PfcWatchdog>(engine_, port_, *this, receiver, config);
}

void PriorityFlowControl::on_expiry() {
  for (int each = 0; each < mac_control::kClasses; ++each)
    if (paused_until_ps_[static_cast<size_t>(each)] <= engine_.now()) set_paused(each, false);
  apply();
}

void PriorityFlowControl::restart() {
  for (int each = 0; each < mac_control::kClasses; ++each) set_paused(each, false);
  apply();
  // The link is new to the far end, which has forgotten that it was asked to pause.
  if (asked_classes() != 0) send(asked_classes());
}

// --- figures

PfcClassCounters PriorityFlowControl::counters(int priority_class) const {
  const auto each = static_cast<size_t>(priority_class);
  PfcClassCounters counters = counters_.at(each);
  if ((paused_classes_ >> each & 1u) != 0) counters.paused_ps += engine_.now() - paused_since_ps_[each];
  return counters;
}

void PriorityFlowControl::reset_counters() {
  counters_.fill(PfcClassCounters());
  paused_since_ps_.fill(engine_.now());
  if (watchdog_ != nullptr) watchdog_->reset_counters();
}

}  // namespace weft
