// Packets on their way to a node, each due at its own time: a FIFO behind one timer, so that a long link with
// many packets on it costs the event queue one entry.
#pragma once

#include <memory>
#include <utility>

#include "engine.hpp"
#include "node.hpp"
#include "packet.hpp"
#include "ring_buffer.hpp"

namespace weft {

class PcapWriter;

class DelayLine {
 public:
  explicit DelayLine(Engine& engine);

  void connect(Node* node, int port) {
    node_ = node;
    port_ = port;
  }
  bool connected() const { return node_ != nullptr; }

  // Delivers at due_ps, in the order of pushing at equal times. The node must be connected.
  void push(PacketPtr packet, TimePs due_ps);
  // Records every packet as it is delivered; null stops.
  void set_capture(std::shared_ptr<PcapWriter> capture) { capture_ = std::move(capture); }
  uint64_t packets_in_flight() const { return in_flight_; }

 private:
  struct InFlight {
    PacketPtr packet;
    TimePs due_ps = 0;
    uint64_t sequence = 0;
  };

  void on_due();
  void deliver(PacketPtr packet);

  Engine& engine_;
  Node* node_ = nullptr;
  int port_ = 0;
  std::shared_ptr<PcapWriter> capture_;
  RingBuffer<InFlight> fifo_;
  uint64_t in_flight_ = 0;
  Timer timer_;
};

}  // namespace weft
