// A node that keeps what it receives: for tests and for looking at a port's output.
#pragma once

#include <vector>

#include "links/node.hpp"
#include "time/engine.hpp"

namespace weft {

class Collector : public Node {
 public:
  struct Arrival {
    TimePs time_ps;
    int port;
    PacketPtr packet;
  };

  explicit Collector(Engine& engine) : engine_(engine) {}

  void receive(int port, PacketPtr packet) override {
    ++received_packets_;
    received_bytes_ += packet->wire_bytes();
    engine_.conservation().leave(PacketEnd::kCollected, packet->traffic());
    arrivals_.push_back({engine_.now(), port, std::move(packet)});
  }

  Engine& engine() override { return engine_; }
  const std::vector<Arrival>& arrivals() const { return arrivals_; }
  // Totals go on counting over clear().
  uint64_t received_packets() const { return received_packets_; }
  uint64_t received_bytes() const { return received_bytes_; }
  void clear() { arrivals_.clear(); }

 private:
  Engine& engine_;
  std::vector<Arrival> arrivals_;
  uint64_t received_packets_ = 0;
  uint64_t received_bytes_ = 0;
};

}  // namespace weft
