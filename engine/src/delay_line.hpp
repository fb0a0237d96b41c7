// Packets on their way to a node, each due at its own time: a queue behind one timer, so that a long link
// with many packets on it costs the event queue one entry.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cache_line.hpp"
#include "engine.hpp"
#include "mail.hpp"
#include "node.hpp"
#include "packet.hpp"
#include "prefetch.hpp"
#include "ring_buffer.hpp"
#include "traffic_counter.hpp"

namespace weft {

class Link;
class PcapWriter;

// Arrivals of a line go before all other events of their time, lines among each other in the order in which
// they were made. So the outcome does not depend on when a packet is pushed, only on when it is due.
class alignas(64) DelayLine {
 public:
  // engine: the receiving node's; link: the one that it is the far half of, for who watches drops there.
  explicit DelayLine(Engine& engine, const Link* link = nullptr);
  ~DelayLine();
  DelayLine(const DelayLine&) = delete;
  DelayLine& operator=(const DelayLine&) = delete;

  void connect(Node* node, int port) {
    node_ = node;
    port_ = port;
  }
  bool connected() const { return node_ != nullptr; }
  Engine& engine() { return engine_; }

  // Delivers at due_ps, in the order of pushing at equal times. The node must be connected.
  void push(PacketPtr packet, TimePs due_ps) {
    if (overtaken_.empty() && (in_order_.empty() || in_order_.back().due_ps <= due_ps)) [[likely]] {
      if (in_order_.empty()) timer_.arm(due_ps, rank_);
      in_order_.push({std::move(packet), due_ps});
    } else {
      push_among(std::move(packet), due_ps);
    }
  }
  // The same for what has come from another partition, which leaves the vector empty.
  void take_in(CacheLineVector<Parcel>& parcels);
  // Records every packet as it is delivered; null stops.
  void set_capture(std::shared_ptr<PcapWriter> capture) { capture_ = std::move(capture); }
  // Takes all packets off the line, in order of arrival; they are delivered no more.
  std::vector<PacketPtr> take_all();
  // Arrived with bits wrong, and dropped.
  const TrafficCounter& damaged() const { return damaged_; }
  void reset_counters() { damaged_ = TrafficCounter(); }

 private:
  struct InFlight {
    PacketPtr packet;
    TimePs due_ps = 0;
  };

  void push_among(PacketPtr packet, TimePs due_ps);
  // Packets are claimed for the engine's pool as they leave the line: they are not looked at before.
  PacketPtr pop_first();
  TimePs first_due_ps() const;
  void prefetch_first() const;
  void prefetch_next() const;
  void on_due();
  void drop_damaged(const Packet& packet);
  static void count_held(const void* line, HeldPackets& held);

  Engine& engine_;
  const Link* link_;
  Node* node_ = nullptr;
  int port_ = 0;
  uint64_t rank_;
  std::shared_ptr<PcapWriter> capture_;
  RingBuffer<InFlight> in_order_;
  // Packets that a fault delays while those behind them come as always: with one fixed extra delay, each of
  // the two queues stays in order by itself.
  RingBuffer<InFlight> overtaken_;
  Timer timer_;
  TrafficCounter damaged_;
};

}  // namespace weft
