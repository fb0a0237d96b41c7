// What a port has sent of each kind of traffic: what flow control counts by class, counted by what a packet
// was sent for.
#pragma once

#include <array>
#include <cstdint>

#include "links/transmit_observer.hpp"
#include "observe/traffic_counter.hpp"
#include "packets/packet.hpp"

namespace weft {

class TrafficByKind final : public TransmitObserver {
 public:
  using Counts = std::array<TrafficCounter, Packet::kTrafficKinds>;

  // Stands before another observer of the port, maybe none.
  explicit TrafficByKind(TransmitObserver* next) : next_(next) {}
  void set_next(TransmitObserver* next) { next_ = next; }

  void on_transmit(int priority_class, const Packet& packet) override {
    counts_[packet.traffic_kind()].add(packet.wire_bytes());
    if (next_ != nullptr) next_->on_transmit(priority_class, packet);
  }
  const Counts& counts() const { return counts_; }
  void reset() { counts_ = {}; }

 private:
  TransmitObserver* next_;
  Counts counts_{};
};

}  // namespace weft
