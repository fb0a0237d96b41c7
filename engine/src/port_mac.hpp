// The receiving half of a port that has more than a wire behind it: takes flow control's frames out of what
// arrives, and hands on the rest. A port without flow control and latency has none; its link leads straight
// to the node.
#pragma once

#include <cstdint>
#include <memory>

#include "engine.hpp"
#include "node.hpp"
#include "packet.hpp"
#include "priority_flow_control.hpp"
#include "shared_buffer.hpp"
#include "transmit_port.hpp"

namespace weft {

struct PortMacCounters {
  TrafficCounter received;       // all frames
  TrafficCounter control_taken;  // frames of the MAC's own, which no node sees
  uint64_t unknown_control_packets = 0;
};

class PortMac : public Node {
 public:
  // What arrives goes to `node` as its port `port`; `transmit` is the sending half of the same port.
  PortMac(Engine& engine, TransmitPort& transmit, Node& node, int port);

  // Obey pauses, and ask for them where memory of a switch says so (set_ingress_limits).
  void enable_pfc(const PfcConfig& config);
  // How a class that comes in here is held back when the switch's memory fills: `number` is the port's in
  // `buffer`. Throws std::logic_error for pauses without PFC, else as SharedBuffer::set_ingress().
  void set_ingress_limits(SharedBuffer& buffer, uint32_t number, int priority_class,
                          const IngressLimits& limits);

  void receive(int port, PacketPtr packet) override;
  // The link has come up again.
  void restart();

  Engine& engine() override { return engine_; }
  const PriorityFlowControl* pfc() const { return pfc_.get(); }
  const PortMacCounters& counters() const { return counters_; }
  void reset_counters();

 private:
  bool take_control(const Packet& packet);

  Engine& engine_;
  TransmitPort& transmit_;
  Node& node_;
  int port_;
  std::unique_ptr<PriorityFlowControl> pfc_;
  PortMacCounters counters_;
};

}  // namespace weft
