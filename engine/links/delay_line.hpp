// Packets on their way to a node, each due at its own time: a queue behind one timer, so that a long link
// with many packets on it costs the event queue one entry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "links/node.hpp"
#include "memory/cache_line.hpp"
#include "memory/prefetch.hpp"
#include "memory/prefetch_step.hpp"
#include "observe/traffic_counter.hpp"
#include "packets/packet.hpp"
#include "packets/packet_chain.hpp"
#include "time/engine.hpp"

namespace weft {

class Link;
class PcapWriter;
struct OutboxBatch;

// Arrivals of a delay line go before all other events of their time, delay lines among each other in the
// order in which they were made. So the outcome does not depend on when a packet is pushed, only on when it
// is due.
class alignas(64) DelayLine : public InCacheLines {
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
    packet->release_context();
    if (add(packet.release(), due_ps)) timer_.arm(engine_.events(), due_ps, rank_);
  }
  // For a delay line between partitions, by the worker that serves both: puts a packet on it that its pool
  // has parted with. Whether it is now the first: then wake() must come before it is due.
  bool push_from_other(Packet* packet, TimePs due_ps) { return add(packet, due_ps); }
  void wake();
  // Takes in what another worker has sent, which leaves the batch empty, and wakes the delay line.
  void take_in(OutboxBatch& batch);
  size_t size() const { return in_order_.size() + overtaken_.size(); }
  // Records every packet as it is delivered; null stops.
  void set_capture(std::shared_ptr<PcapWriter> capture) {
    capture_ = std::move(capture);
    look_for_extras();
  }
  // Takes all packets off the delay line, in order of arrival; they are delivered no more.
  std::vector<PacketPtr> take_all();
  // Arrived with bits wrong, and dropped.
  const TrafficCounter& damaged() const { return damaged_; }
  // As another process has counted it.
  void set_damaged(const TrafficCounter& damaged) { damaged_ = damaged; }
  void reset_counters() { damaged_ = TrafficCounter(); }
  // Prefetches what events up to limit_ps are going to use: itself, then its packets one by one, as each
  // keeps where the next one is.
  template <PrefetchStep kStep>
  void fetch(TimePs limit_ps) const {
    // About as many full frames as arrive between two visits of a partition.
    static_assert(kStep <= kLastFetch);
    if constexpr (kStep == PrefetchStep::kObject) {
      prefetch<CacheLevel::kSecond>(this, kCacheLineBytes);
    } else {
      const Packet* packet = in_order_.first();
      TimePs due_ps = in_order_.first_due_ps();
      for (int before = 1; before < static_cast<int>(kStep) && due_ps <= limit_ps; ++before) {
        due_ps = packet->follower_due_ps;
        packet = packet->follower;
      }
      if (due_ps <= limit_ps) prefetch_packet<CacheLevel::kSecond>(packet);
    }
  }
  static constexpr PrefetchStep kLastFetch = PrefetchStep::kThreeAway;

 private:
  // Whether it is now the first.
  bool add(Packet* packet, TimePs due_ps) {
    const bool is_first = in_order_.empty();
    if (!has_overtaken() && (is_first || in_order_.last_due_ps() <= due_ps)) [[likely]] {
      in_order_.push(packet, due_ps);
      return is_first;
    }
    return add_among(packet, due_ps);
  }
  bool add_among(Packet* packet, TimePs due_ps);
  // From another partition, packets are claimed for the engine's pool as they leave the delay line, when they
  // are in the processor's caches anyway.
  PacketPtr pop_first();
  TimePs first_due_ps() const {
    const TimePs due_ps = in_order_.first_due_ps();
    return extras_ ? std::min(due_ps, overtaken_.first_due_ps()) : due_ps;
  }
  void on_due();
  bool has_overtaken() const { return extras_ && !overtaken_.empty(); }
  void look_for_extras() { extras_ = capture_ != nullptr || !overtaken_.empty(); }
  void drop_damaged(const Packet& packet);
  static void count_held(const void* line, HeldPackets& held);

  // What every packet needs is one cache line: in a large fabric it comes from memory for nearly every
  // packet.
  Engine& engine_;
  Node* node_ = nullptr;
  PacketChain in_order_;
  TimerSlot timer_;
  uint32_t rank_;
  int port_ = 0;
  bool between_partitions_;
  // What few delay lines have is looked at: a capture, or packets that have been overtaken.
  bool extras_ = false;

  std::shared_ptr<PcapWriter> capture_;
  // Packets that a fault delays while those behind them come as always: with one fixed extra delay, each of
  // the two chains stays in order by itself.
  PacketChain overtaken_;
  const Link* link_;
  TrafficCounter damaged_;

  struct Layout;
};

}  // namespace weft
