#include "links/pfc_watchdog.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "links/priority_flow_control.hpp"

namespace weft {

namespace {

void require_time(const char* name, TimePs value) {
  if (value < 1)
    throw std::invalid_argument("PFC watchdog: " + std::string(name) + " is " + std::to_string(value) +
                                " (1 or more)");
}

}  // namespace

PfcWatchdog::PfcWatchdog(Engine& engine, TransmitPort& transmit, PriorityFlowControl& pfc, Node*& receiver,
                         const PfcWatchdogConfig& config)
    : engine_(engine),
      transmit_(transmit),
      pfc_(pfc),
      receiver_(receiver),
      node_(receiver),
      config_(config),
      look_(engine.events(), member_action<&PfcWatchdog::look>(this)) {
  require_time("detection_ps", config.detection_ps);
  require_time("restoration_ps", config.restoration_ps);
  if (config.classes == 0) throw std::invalid_argument("PFC watchdog: no class to watch");
}

void PfcWatchdog::on_pause_changed(int priority_class, bool paused) {
  const uint32_t bit = 1u << priority_class;
  if ((config_.classes & bit) == 0) return;
  paused_classes_ = paused ? paused_classes_ | bit : paused_classes_ & ~bit;
  classes_[static_cast<size_t>(priority_class)].changed_ps = engine_.now();
  // Only later: the port is about to hear of the pause, and nothing is due before that.
  const TimePs due = due_ps(priority_class);
  if (due < look_.deadline()) look_.arm(due);
}

TimePs PfcWatchdog::due_ps(int priority_class) const {
  const TimePs changed_ps = classes_[static_cast<size_t>(priority_class)].changed_ps;
  if (is_stormed(priority_class))
    return is_paused(priority_class) ? kNever : changed_ps + config_.restoration_ps;
  if (!is_paused(priority_class)) return kNever;
  // While nothing waits, a packet may come now, and is then held from now on.
  const TimePs waits_since_ps = std::min(transmit_.waits_since_ps(priority_class), engine_.now());
  return std::max(changed_ps, waits_since_ps) + config_.detection_ps;
}

void PfcWatchdog::look() {
  TimePs first_ps = kNever;
  for (int each = 0; each < mac_control::kClasses; ++each) {
    if ((config_.classes >> each & 1u) == 0) continue;
    if (due_ps(each) <= engine_.now()) set_stormed(each, !is_stormed(each));
    first_ps = std::min(first_ps, due_ps(each));
  }
  if (first_ps != kNever) look_.arm(first_ps);
}

void PfcWatchdog::set_stormed(int priority_class, bool stormed) {
  ClassState& state = classes_[static_cast<size_t>(priority_class)];
  const uint64_t sent = transmit_.transmitted(priority_class).packets;
  if (stormed)
    state.sent_before = sent;
  else
    state.counters.tx_ok_packets += sent - state.sent_before;
  ++(stormed ? state.counters.storms_detected : state.counters.storms_restored);
  if (events_.size() < kMostEvents)
    events_.push_back({engine_.now(), static_cast<uint8_t>(priority_class), !stormed});
  stormed_classes_ ^= 1u << priority_class;
  apply();
}

void PfcWatchdog::apply() {
  receiver_ = stormed_classes_ == 0 ? node_ : this;
  if (config_.action == PfcWatchdogConfig::Action::kDrop) transmit_.set_discarded_classes(stormed_classes_);
  pfc_.apply();
}

uint32_t PfcWatchdog::ignored_classes() const {
  return config_.action == PfcWatchdogConfig::Action::kForward ? stormed_classes_ : 0;
}

void PfcWatchdog::receive(int port, PacketPtr packet) {
  const int lane = packet->virtual_lane();
  if (lane < mac_control::kClasses && is_stormed(lane)) {
    PfcWatchdogCounters& counters = classes_[static_cast<size_t>(lane)].counters;
    if (config_.action == PfcWatchdogConfig::Action::kDrop) {
      counters.rx_dropped_packets += packet->packets();
      transmit_.drop_arrival(lane, packet->traffic());
      return;
    }
    counters.rx_ok_packets += packet->packets();
  }
  node_->receive(port, std::move(packet));
}

PfcWatchdogCounters PfcWatchdog::counters(int priority_class) const {
  const ClassState& state = classes_.at(static_cast<size_t>(priority_class));
  PfcWatchdogCounters counters = state.counters;
  counters.tx_dropped_packets = transmit_.discarded(priority_class).packets;
  if (is_stormed(priority_class))
    counters.tx_ok_packets += transmit_.transmitted(priority_class).packets - state.sent_before;
  return counters;
}

void PfcWatchdog::reset_counters() {
  for (int each = 0; each < mac_control::kClasses; ++each) {
    ClassState& state = classes_[static_cast<size_t>(each)];
    state.counters = PfcWatchdogCounters();
    state.sent_before = 0;  // the port's counters begin anew with these
  }
  events_.clear();
}

}  // namespace weft
