#include "port_mac.hpp"

#include <stdexcept>
#include <utility>

namespace weft {

PortMac::PortMac(Engine& engine, TransmitPort& transmit, Node& node, int port)
    : engine_(engine), transmit_(transmit), node_(node), port_(port) {}

void PortMac::enable_pfc(const PfcConfig& config) {
  if (pfc_ != nullptr) throw std::logic_error("the port has PFC already");
  pfc_ = std::make_unique<PriorityFlowControl>(engine_, transmit_, config);
}

void PortMac::set_ingress_limits(SharedBuffer& buffer, uint32_t number, int priority_class,
                                 const IngressLimits& limits) {
  if (limits.kind == IngressLimits::Kind::kPause && pfc_ == nullptr)
    throw std::logic_error("a pause threshold at a port without PFC");
  buffer.set_ingress(number, priority_class, limits, pfc_.get());
}

void PortMac::receive(int /*port*/, PacketPtr packet) {
  counters_.received.add(packet->wire_bytes());
  if (mac_control::ethertype_of(packet->bytes()) == mac_control::kEtherType) [[unlikely]] {
    counters_.control_taken.add(packet->wire_bytes());
    if (!take_control(*packet)) ++counters_.unknown_control_packets;
    return;
  }
  node_.receive(port_, std::move(packet));
}

// MAC control frames never leave the MAC, known or not (IEEE 802.3-2018, clause 31.5.1).
bool PortMac::take_control(const Packet& packet) {
  const auto pause = mac_control::parse_priority_pause(packet.bytes());
  if (!pause || pfc_ == nullptr) return false;
  pfc_->on_pause_frame(*pause);
  return true;
}

void PortMac::restart() {
  if (pfc_ != nullptr) pfc_->restart();
}

void PortMac::reset_counters() {
  counters_ = PortMacCounters();
  if (pfc_ != nullptr) pfc_->reset_counters();
}

}  // namespace weft
