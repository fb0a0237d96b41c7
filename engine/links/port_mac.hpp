// The receiving half of a port that has more than a wire behind it: takes flow control's frames out of what
// arrives, and hands on the rest, as long afterwards as the switch behind it takes. A port with neither flow
// control nor latency has none; its link leads straight to the node.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "links/credit_flow_control.hpp"
#include "links/header_parser.hpp"
#include "links/node.hpp"
#include "links/priority_flow_control.hpp"
#include "links/transmit_port.hpp"
#include "memory/ring_buffer.hpp"
#include "observe/statistics.hpp"
#include "packets/frame_dscp.hpp"
#include "packets/packet.hpp"
#include "switch/shared_buffer.hpp"
#include "time/engine.hpp"

namespace weft {

// What a switch takes for a packet, from when it is there (store and forward: whole; cut-through: its
// headers) until it is in its queue.
struct SwitchingConfig {
  TimePs latency_ps = 0;
  bool cut_through = false;
  // A packet with more headers than that, whose payload the program thus looks at, is stored first.
  uint64_t header_limit_bytes = 256;
};

// The classes of frames by their DSCP. Packet::kNoLane where nothing is known of one.
using ClassByDscp = std::array<uint8_t, kDscpCount>;

#define WEFT_PORT_MAC_COUNTERS(STATISTIC)                                                 \
  STATISTIC(TrafficCounter, received, "all frames")                                       \
  STATISTIC(TrafficCounter, control_taken, "frames of the MAC's own, which no node sees") \
  STATISTIC(uint64_t, unknown_control_packets, "frames of an unknown opcode")

struct PortMacCounters {
  WEFT_STATISTICS(PortMacCounters, WEFT_PORT_MAC_COUNTERS)
};

class PortMac : public Node {
 public:
  // What arrives goes to `node` as its port `port`; `transmit` is the sending half of the same port.
  PortMac(Engine& engine, TransmitPort& transmit, Node& node, int port);

  // Obey pauses, and ask for them where memory of a switch says so (set_ingress_limits).
  void enable_pfc(const PfcConfig& config);
  // Stop obeying pauses that do not end. Throws std::logic_error without PFC or with a watchdog, else as
  // PfcWatchdog.
  void enable_watchdog(const PfcWatchdogConfig& config);
  // Ask for pauses of these classes without end (PriorityFlowControl::storm). Throws std::logic_error without
  // PFC.
  void storm(uint32_t classes);
  // Send within the far end's credits, and give it credits. Throws std::logic_error where there is PFC.
  void enable_credits(const CreditConfig& config);
  // How a class that comes in here is held back when the switch's memory fills: `number` is the port's in
  // `buffer`. Throws std::logic_error for pauses without PFC or credits without them, else as
  // SharedBuffer::set_ingress().
  void set_ingress_limits(SharedBuffer& buffer, uint32_t number, int priority_class,
                          const IngressLimits& limits);

  // The memory of a lane that credits promise: as much as enable_credits() was given.
  void set_credit_memory(SharedBuffer& buffer, uint32_t number, int lane);
  // For frames from outside the engine, which do not say in which class their sender queued them: it marked
  // that in the DSCP. Those whose class is not known belong to no lane.
  void classify_by_dscp(const ClassByDscp& classes);
  // Cut-through is for links that are early (Link::set_early) and as fast as `transmit`. Throws
  // std::invalid_argument for a negative latency, or cut-through without a rate or a parser.
  void set_switching(const SwitchingConfig& config, HeaderParser* parser);

  void receive(int port, PacketPtr packet) override;
  // The link has come up again.
  void restart();

  Engine& engine() override { return engine_; }
  const PriorityFlowControl* pfc() const { return pfc_.get(); }
  const CreditFlowControl* credits() const { return credits_.get(); }
  const SwitchingConfig& switching() const { return switching_; }
  // Received, and not yet with the node.
  const TrafficCounter& passing() const { return passing_now_; }
  const PortMacCounters& counters() const { return counters_; }
  void reset_counters();

 private:
  struct Passing {
    PacketPtr packet;
    TimePs due_ps = 0;
    TimePs whole_ps = 0;
  };

  bool is_control(const Packet& packet) const;
  bool take_control(const Packet& packet);
  uint8_t class_of(const Packet& packet) const;
  void hand_over(PacketPtr packet);
  void pass_later(PacketPtr packet);
  TimePs headers_in_ps(const Packet& packet, TimePs whole_ps) const;
  void on_due();

  Engine& engine_;
  TransmitPort& transmit_;
  Node* node_;  // the PFC watchdog while a class is stormed, in front of the port's node
  int port_;
  bool passes_at_once_ = true;
  SwitchingConfig switching_;
  HeaderParser* parser_ = nullptr;
  std::unique_ptr<ClassByDscp> class_by_dscp_;
  std::unique_ptr<PriorityFlowControl> pfc_;
  std::unique_ptr<CreditFlowControl> credits_;
  RingBuffer<Passing> passing_;
  TrafficCounter passing_now_;
  Timer due_;
  PortMacCounters counters_;
};

}  // namespace weft
