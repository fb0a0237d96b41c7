// A transmit port: byte-accounted queues per class in front of a serialiser that keeps the bit rate.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "engine.hpp"
#include "link.hpp"
#include "node.hpp"
#include "packet.hpp"
#include "ring_buffer.hpp"

namespace weft {

class PcapWriter;

struct PortConfig {
  uint64_t rate_bps = 0;                          // 0: unpaced
  uint64_t queue_capacity_bytes = 512ull * 1024;  // all classes together
  int classes = 8;                                // 1 to 8; the highest number is served first
  // Packets come with their serialisation behind them, as from a sender that has paced them itself: on an
  // idle port a packet leaves as it comes, and the port only holds back what comes faster than its rate.
  bool arrivals_serialised = false;
};

// What a transmit port knows about a packet's stay in its queue. Depths are those of the whole port, in
// bytes: before the packet was added, and after it was taken out.
struct QueueStamp {
  TimePs enqueued_ps = 0;
  uint64_t enqueue_depth_bytes = 0;
  TimePs dequeued_ps = 0;
  uint64_t dequeue_depth_bytes = 0;
  int priority_class = 0;
};

struct TrafficCounter {
  uint64_t packets = 0;
  uint64_t bytes = 0;
  void add(uint64_t size) {
    ++packets;
    bytes += size;
  }
};

// The egress pipeline, run when a packet leaves the queue and before it is serialised.
struct EgressStage {
  virtual ~EgressStage() = default;
  // Null drops the packet; the port then takes the next one at once. May enqueue to any port.
  virtual PacketPtr on_dequeue(int port, PacketPtr packet, const QueueStamp& stamp) = 0;
};

// A sender that decides what to send only when the line is free (a NIC).
struct PacketSource {
  virtual ~PacketSource() = default;
  // The packet to send now, or null: then the port asks again after kick().
  virtual PacketPtr pull(TimePs now) = 0;
};

// Strict priority. While packets wait, each transmission starts when the one before ended, however late the
// event that starts it is served; on an idle port it starts at now(). As a Node, a port takes packets into
// class 0 (a host's paced uplink).
class TransmitPort : public Node {
 public:
  static constexpr int kMaxClasses = 8;

  // Throws std::invalid_argument for a number of classes outside 1 to 8 or a capacity of 0.
  TransmitPort(Engine& engine, PortConfig config, Link& link);

  // Queue the packet in a class (larger than the highest: the highest). False: tail drop, counted.
  bool enqueue(PacketPtr packet, int priority_class = 0);
  void receive(int port, PacketPtr packet) override;

  // number is what the stage is told as its port.
  void set_egress_stage(EgressStage* stage, int number);
  // Queued packets go before the source's.
  void set_source(PacketSource* source);
  // The source has something to send (again).
  void kick();
  // Records every frame as its serialisation starts; null stops.
  void set_capture(std::shared_ptr<PcapWriter> capture) { capture_ = std::move(capture); }

  Link& link() { return link_; }
  Engine& engine() override { return engine_; }
  const PortConfig& config() const { return config_; }
  uint64_t rate_bps() const { return config_.rate_bps; }
  // From the next packet on.
  void set_rate_bps(uint64_t rate_bps);

  uint64_t queue_depth_bytes() const { return queue_depth_bytes_; }
  uint64_t queue_depth_bytes(int priority_class) const;
  uint64_t queue_depth_packets() const { return queue_depth_packets_; }
  uint64_t queue_depth_packets(int priority_class) const;
  // Largest depth left waiting since the start or reset_counters(); a packet that finds the line free never
  // waits.
  uint64_t max_queue_depth_bytes() const { return max_queue_depth_bytes_; }
  TimePs busy_until_ps() const { return busy_until_ps_; }

  const TrafficCounter& transmitted() const { return transmitted_; }
  const TrafficCounter& transmitted(int priority_class) const;
  const TrafficCounter& tail_dropped() const { return tail_dropped_; }
  const TrafficCounter& tail_dropped(int priority_class) const;
  // Dropped by the egress stage.
  const TrafficCounter& egress_dropped() const { return egress_dropped_; }
  // Counters and the maximum depth to zero (the maximum: to the present depth).
  void reset_counters();

 private:
  struct Waiting {
    PacketPtr packet;
    TimePs enqueued_ps = 0;
    uint64_t enqueue_depth_bytes = 0;
  };

  struct ClassQueue {
    RingBuffer<Waiting> packets;
    uint64_t depth_bytes = 0;
    TrafficCounter transmitted;
    TrafficCounter tail_dropped;
  };

  int clamp_class(int priority_class) const;
  const ClassQueue& class_queue(int priority_class) const;
  void on_line_free();
  void start_if_idle(TimePs now, TimePs earliest_ps);
  void serve(TimePs start_ps);
  PacketPtr next_packet(TimePs start_ps, int& priority_class);
  PacketPtr dequeue(TimePs start_ps, QueueStamp& stamp);

  Engine& engine_;
  PortConfig config_;
  BitRate rate_;
  Link& link_;
  EgressStage* stage_ = nullptr;
  int stage_port_ = 0;
  PacketSource* source_ = nullptr;
  std::shared_ptr<PcapWriter> capture_;

  Timer line_free_;
  TimePs busy_until_ps_ = 0;
  bool serving_ = false;
  uint32_t nonempty_classes_ = 0;  // bit per class
  uint64_t queue_depth_bytes_ = 0;
  uint64_t queue_depth_packets_ = 0;
  uint64_t max_queue_depth_bytes_ = 0;
  TrafficCounter transmitted_;
  TrafficCounter tail_dropped_;
  TrafficCounter egress_dropped_;
  std::array<ClassQueue, kMaxClasses> classes_;
};

}  // namespace weft
