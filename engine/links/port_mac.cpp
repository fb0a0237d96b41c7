#include "links/port_mac.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft {

PortMac::PortMac(Engine& engine, TransmitPort& transmit, Node& node, int port)
    : engine_(engine),
      transmit_(transmit),
      node_(&node),
      port_(port),
      due_(engine.events(), member_action<&PortMac::on_due>(this)) {
  engine.conservation().add_holder(this, [](const void* mac, HeldPackets& held) {
    held.in_switches.add(static_cast<const PortMac*>(mac)->passing());
  });
}

void PortMac::enable_pfc(const PfcConfig& config) {
  if (pfc_ != nullptr) throw std::logic_error("the port has PFC already");
  if (credits_ != nullptr) throw std::logic_error("a port with credits cannot have PFC");
  pfc_ = std::make_unique<PriorityFlowControl>(engine_, transmit_, config);
}

void PortMac::enable_watchdog(const PfcWatchdogConfig& config) {
  if (pfc_ == nullptr) throw std::logic_error("a PFC watchdog at a port without PFC");
  pfc_->enable_watchdog(config, node_);
}

void PortMac::storm(uint32_t classes) {
  if (pfc_ == nullptr) throw std::logic_error("a storm of pauses from a port without PFC");
  pfc_->storm(classes);
}

void PortMac::enable_credits(const CreditConfig& config) {
  if (credits_ != nullptr) throw std::logic_error("the port has credits already");
  if (pfc_ != nullptr) throw std::logic_error("a port with PFC cannot have credits");
  credits_ = std::make_unique<CreditFlowControl>(engine_, transmit_, config);
  transmit_.set_observer(credits_.get());
}

void PortMac::set_ingress_limits(SharedBuffer& buffer, uint32_t number, int priority_class,
                                 const IngressLimits& limits) {
  if (limits.kind == IngressLimits::Kind::kPause && pfc_ == nullptr)
    throw std::logic_error("a pause threshold at a port without PFC");
  if (limits.kind == IngressLimits::Kind::kCredits && credits_ == nullptr)
    throw std::logic_error("memory for credits at a port without them");
  IngressListener* listener = pfc_.get();
  if (credits_ != nullptr) listener = credits_.get();
  buffer.set_ingress(number, priority_class, limits, listener);
}

void PortMac::set_credit_memory(SharedBuffer& buffer, uint32_t number, int lane) {
  if (credits_ == nullptr || !credits_->is_lane(lane))
    throw std::logic_error("memory for credits in class " + std::to_string(lane) + ", which has none");
  set_ingress_limits(buffer, number, lane,
                     {.kind = IngressLimits::Kind::kCredits, .own_bytes = credits_->config().buffer_bytes});
  credits_->set_memory(buffer, number);
}

void PortMac::classify_by_dscp(const ClassByDscp& classes) {
  class_by_dscp_ = std::make_unique<ClassByDscp>(classes);
}

uint8_t PortMac::class_of(const Packet& packet) const {
  const auto dscp = dscp_of(packet.bytes());
  return dscp ? (*class_by_dscp_)[*dscp] : uint8_t{Packet::kNoLane};
}

void PortMac::set_switching(const SwitchingConfig& config, HeaderParser* parser) {
  if (config.latency_ps < 0)
    throw std::invalid_argument("switching latency_ps is " + std::to_string(config.latency_ps) +
                                " (0 or more)");
  if (config.cut_through && (transmit_.rate_bps() == 0 || parser == nullptr))
    throw std::invalid_argument(
        "cut-through needs a port with a rate, and a parser that knows what is header");
  switching_ = config;
  parser_ = parser;
  passes_at_once_ = config.latency_ps == 0 && !config.cut_through;
}

void PortMac::receive(int /*port*/, PacketPtr packet) {
  counters_.received.add(packet->traffic());
  if (is_control(*packet)) [[unlikely]] {
    counters_.control_taken.add(packet->traffic());
    engine_.conservation().leave(PacketEnd::kFlowControl, packet->traffic());
    if (!take_control(*packet)) ++counters_.unknown_control_packets;
    return;
  }
  if (class_by_dscp_ != nullptr) packet->set_virtual_lane(class_of(*packet));
  if (credits_ != nullptr) credits_->on_arrival(*packet);
  if (passes_at_once_)
    hand_over(std::move(packet));
  else
    pass_later(std::move(packet));
}

void PortMac::hand_over(PacketPtr packet) {
  if (credits_ == nullptr) {
    node_->receive(port_, std::move(packet));
    return;
  }
  const int lane = packet->virtual_lane();
  const uint64_t size = packet->wire_bytes();
  node_->receive(port_, std::move(packet));
  credits_->on_handed_over(lane, size);
}

void PortMac::pass_later(PacketPtr packet) {
  const TimePs now = engine_.now();
  const uint64_t size = packet->wire_bytes();
  const TimePs whole_ps = switching_.cut_through ? now + transmit_.rate().serialisation_ps(size) : now;
  // The headers of a packet come after the end of the one before, unless a fault has delayed that.
  const TimePs earliest_ps = passing_.empty() ? 0 : passing_.back().due_ps;
  const TimePs due_ps = std::max(headers_in_ps(*packet, whole_ps) + switching_.latency_ps, earliest_ps);
  if (passing_.empty()) due_.arm(due_ps);
  passing_now_.add(packet->traffic());
  passing_.push({std::move(packet), due_ps, whole_ps + switching_.latency_ps});
}

TimePs PortMac::headers_in_ps(const Packet& packet, TimePs whole_ps) const {
  if (!switching_.cut_through) return whole_ps;
  const uint64_t headers = parser_->header_bytes(port_, packet);
  if (headers > switching_.header_limit_bytes) return whole_ps;
  return std::min(whole_ps, engine_.now() + transmit_.rate().serialisation_ps(headers));
}

void PortMac::on_due() {
  Passing first = passing_.pop();
  if (!passing_.empty()) due_.arm(passing_.front().due_ps);
  passing_now_.take_away(first.packet->traffic());
  // What follows waits for the end where it must (TransmitPort::enqueue).
  first.packet->received_ps = first.whole_ps;
  hand_over(std::move(first.packet));
}

bool PortMac::is_control(const Packet& packet) const {
  const uint16_t ethertype = mac_control::ethertype_of(packet.bytes());
  return ethertype == mac_control::kEtherType ||
         (ethertype == mac_control::kCreditEtherType && credits_ != nullptr &&
          mac_control::is_credit_update(packet.bytes()));
}

// MAC control frames never leave the MAC, known or not (IEEE 802.3-2018, clause 31.5.1).
bool PortMac::take_control(const Packet& packet) {
  if (pfc_ != nullptr) {
    const auto pause = mac_control::parse_priority_pause(packet.bytes());
    if (pause) pfc_->on_pause_frame(*pause);
    return pause.has_value();
  }
  if (credits_ != nullptr) {
    const auto update = mac_control::parse_credit_update(packet.bytes());
    if (update) credits_->on_update_frame(*update);
    return update.has_value();
  }
  return false;
}

void PortMac::restart() {
  if (pfc_ != nullptr) pfc_->restart();
  if (credits_ != nullptr) credits_->restart();
}

void PortMac::reset_counters() {
  counters_ = PortMacCounters();
  if (pfc_ != nullptr) pfc_->reset_counters();
  if (credits_ != nullptr) credits_->reset_counters();
}

}  // namespace weft
