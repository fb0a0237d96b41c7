// A transmit port: byte-accounted queues per class in front of a serialiser that keeps the bit rate.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "links/deficit_round_robin.hpp"
#include "links/link.hpp"
#include "links/node.hpp"
#include "links/traffic_by_kind.hpp"
#include "links/transmit_observer.hpp"
#include "links/trimming.hpp"
#include "memory/prefetch.hpp"
#include "memory/prefetch_step.hpp"
#include "memory/ring_buffer.hpp"
#include "observe/counted_drops.hpp"
#include "observe/statistics.hpp"
#include "observe/traffic_counter.hpp"
#include "packets/packet.hpp"
#include "switch/shared_buffer.hpp"
#include "time/engine.hpp"

namespace weft {

class PcapWriter;

struct PortConfig {
  uint64_t rate_bps = 0;                          // 0: unpaced
  uint64_t queue_capacity_bytes = 512ull * 1024;  // all classes together
  int classes = 8;                                // 1 to 8; the highest number is served first
  // Packets come with their serialisation behind them, as from a sender that has paced them itself: on an
  // idle port a packet leaves as it comes, and the port only holds back what comes faster than its rate.
  bool arrivals_serialised = false;
  // Bytes a class may send each round of deficit weighted round robin; 0: strict priority, before all classes
  // that have such a quantum.
  DeficitRoundRobin::Quanta quantum_bytes{};
  // While more than that waits in a class, its segments leave packet by packet, marked each on its own.
  uint64_t split_depth_bytes = ~0ull;
};

// What a transmit port knows about a packet's stay in its queue. Depths are those of the whole port, in
// bytes, after it was taken out.
struct QueueStamp {
  TimePs enqueued_ps = 0;
  TimePs dequeued_ps = 0;
  uint64_t dequeue_depth_bytes = 0;
  int priority_class = 0;
  uint64_t class_depth_bytes = 0;  // of its class, after it was taken out
  uint64_t class_depth_packets = 0;
  // Its memory in a shared buffer, which it has until it has left; null without one.
  SharedBuffer::Arrival* arrival = nullptr;
  uint64_t size_bytes = 0;
};

// Packets of one class that wait at a port and came to its switch by one port, in one lane.
struct WaitingFrom {
  int priority_class = 0;
  uint16_t ingress_port = 0;
  uint8_t lane = 0;
  TrafficCounter waiting;
};

#define WEFT_PORT_COUNTERS(STATISTIC)                                                                        \
  STATISTIC(TrafficCounter, control_transmitted, "frames of the MAC")                                        \
  STATISTIC(                                                                                                 \
      TrafficCounter, tail_dropped,                                                                          \
      "found no memory in the queue, in any class: the port's own capacity, or a shared buffer's threshold") \
  STATISTIC(TrafficCounter, headroom_dropped,                                                                \
            "found no memory left for the ingress port and class: more came than flow control allows for")   \
  STATISTIC(TrafficCounter, down_dropped, "queued at, or sent to, a port that was down")                     \
  STATISTIC(TrafficCounter, egress_dropped, "by the egress pipeline")                                        \
  STATISTIC(TrafficCounter, trimmed, "packets trimmed instead of tail-dropped, and the bytes cut off them")  \
  STATISTIC(TrafficCounter, trim_dropped, "trimmed, and then found no memory for trimmed packets either")    \
  STATISTIC(TrafficCounter, storm_dropped, "by the PFC watchdog, in a queue that it has found stormed")      \
  STATISTIC(TrafficCounter, storm_arrival_dropped,                                                           \
            "by the PFC watchdog, as they arrived by the port in a class that it has found stormed")

struct PortCounters {
  WEFT_STATISTICS(PortCounters, WEFT_PORT_COUNTERS)
};

// Why a port did not send a packet that it was given: the queue, or its threshold in a shared buffer, was
// full; more came than flow control allows for; the port was down; it was trimmed, and even then there was no
// room for it; the PFC watchdog has found the queue stormed; so it has, and the packet came by the port.
#define WEFT_QUEUE_DROPS(DROP)                       \
  DROP(kFull, "full", tail_dropped)                  \
  DROP(kNoHeadroom, "no_headroom", headroom_dropped) \
  DROP(kDown, "down", down_dropped)                  \
  DROP(kTrimmed, "trimmed", trim_dropped)            \
  DROP(kStorm, "storm", storm_dropped)               \
  DROP(kStormArrival, "storm_arrival", storm_arrival_dropped)
WEFT_COUNTED_DROPS(QueueDrop, kQueueDrops, PortCounters, WEFT_QUEUE_DROPS)

// The egress pipeline, run when a packet leaves the queue and before it is serialised.
struct EgressStage {
  virtual ~EgressStage() = default;
  // Null drops the packet; the port then takes the next one at once. May enqueue to any port.
  virtual PacketPtr on_dequeue(int port, PacketPtr packet, const QueueStamp& stamp) = 0;
  // Makes a packet the first one of those that it stands for, and returns the others.
  virtual PacketPtr split(Packet& packet) = 0;
  // Cuts a packet, of one, that has found no room in its queue at the stage's port, if it is one to be
  // trimmed. waiting: in the queue of trimmed packets.
  virtual bool trim(Packet& packet, const TrimmingConfig& trimming, const TrafficCounter& waiting) = 0;
  // So many packets of a segment that enqueue() has taken were dropped.
  virtual void on_refused_of_segment(uint64_t packets) = 0;
};

// A sender that decides what to send only when the serialiser is free (a NIC).
struct PacketSource {
  virtual ~PacketSource() = default;
  // The packet to send now and its class, or null: then the port asks again after kick().
  virtual PacketPtr pull(TimePs now, int& priority_class) = 0;
  // Whether pull() may give one, for all that the source knows by now: if not, it is asked after kick() only.
  virtual bool may_have_packets() const = 0;
  // The packet to send now in the middle of a segment of this class, which it goes before, and its own class;
  // or null.
  virtual PacketPtr pull_before(int sending_class, TimePs now, int& priority_class) = 0;
  // Classes (a bit each) of which it must give no packet until the next call.
  virtual void on_blocked_classes(uint32_t blocked_classes) = 0;
};

// Strict priority, then deficit weighted round robin among the classes that have a quantum. While packets
// wait, each transmission starts when the one before ended, however late the event that starts it is served;
// on an idle port it starts at now(). A segment that comes to an idle port leaves as its packets would have
// done, so it starts in the past; what goes before its class leaves between two of its packets. As a Node, a
// port takes packets into class 0 (a host's paced uplink), its port number being their ingress port.
class TransmitPort : public Node {
 public:
  static constexpr int kMaxClasses = 8;

  // Throws std::invalid_argument for a number of classes outside 1 to 8, a capacity of 0, or a quantum below
  // 64 bytes.
  TransmitPort(Engine& engine, PortConfig config, Link& link);

  // Queue the packet in a class (larger than the highest: the highest). False: dropped, and counted.
  // arrival is for the accounts of a shared buffer. A packet that has not come whole (received_ps lies ahead)
  // takes its memory at once, and may be sent when that cannot overtake its end.
  bool enqueue(PacketPtr packet, int priority_class = 0, SharedBuffer::Arrival arrival = {});
  void receive(int port, PacketPtr packet) override;

  // Prefetches what its next events are going to use.
  template <PrefetchStep kStep>
  void fetch() const;
  static constexpr PrefetchStep kLastFetch = PrefetchStep::kThreeAway;
  // Has the processor fetch what enqueue() with this class (0 to 7) is going to use.
  void prefetch_for(int priority_class) const;

  // number is the stage's number of the port.
  void set_egress_stage(EgressStage* stage, int number);
  // Queued packets go before the source's.
  void set_source(PacketSource* source);
  // The source has something to send (again).
  void kick();
  // Records every frame as its serialisation starts; null stops.
  void set_capture(std::shared_ptr<PcapWriter> capture) {
    capture_ = std::move(capture);
    look_for_extras();
  }
  // Packets take the memory of the buffer, in which this is port `number`, instead of queue_capacity_bytes.
  // Before the first packet. Throws std::logic_error when packets wait already.
  void set_buffer(SharedBuffer* buffer, uint32_t number);
  SharedBuffer* buffer() const { return buffer_; }
  // Trim from now on what has no room, if there is a stage to do so. Throws std::invalid_argument for a size
  // below 64 bytes, a class or a DSCP that there is not, a class of trimmed packets that trims, and DSCPs of
  // trimmed packets that may be trimmed.
  void set_trimming(const TrimmingConfig& config);

  // A frame of the MAC's own (pause, credits): before all that waits, past queues and egress stage. A port
  // that is down has nobody to send it to.
  void send_control(PacketPtr frame);
  // Classes (a bit each) that must wait; control frames do not.
  void set_blocked_classes(uint32_t blocked_classes);
  uint32_t blocked_classes() const { return blocked_classes_; }
  void set_observer(TransmitObserver* observer) {
    if (by_kind_ == nullptr)
      observer_ = observer;
    else
      by_kind_->set_next(observer);
    look_for_extras();
  }
  // Counts from now on what is sent of each kind of traffic, but for the MAC's own frames.
  void count_by_kind();
  // Null if nobody has asked for it.
  const TrafficByKind* by_kind() const { return by_kind_.get(); }
  // Down: what waits is dropped, and what comes; the source is not asked. What is under way is the link's
  // (Link::cut). So switches do: their MAC goes on draining the queues of a port without a link and discards
  // what it takes out, because packets that waited for the link would hold memory that other ports need.
  void set_up(bool up);
  bool is_up() const { return up_; }
  // Classes (a bit each) whose packets are dropped, those that wait at once, until the next call. For ports
  // that take the memory of a buffer; others do not look at it.
  void set_discarded_classes(uint32_t classes);
  // Dropped because of that.
  TrafficCounter discarded(int priority_class) const;
  // Counts a packet as dropped that arrived by the port and is not handed on.
  void drop_arrival(int priority_class, const TrafficCounter& traffic) {
    drop(QueueDrop::kStormArrival, priority_class, traffic);
  }
  // When what waits first in a class came; kNever: nothing waits.
  TimePs waits_since_ps(int priority_class) const;
  // Until then the serialiser is busy with what the link sends again.
  void occupy_until(TimePs until_ps);
  // When the serialiser is free.
  TimePs busy_until_ps() const { return busy_until_ps_; }

  Link& link() { return link_; }
  Engine& engine() override { return engine_; }
  int last_class() const { return last_class_; }
  const PortConfig& config() const { return config_; }
  uint64_t rate_bps() const { return config_.rate_bps; }
  const BitRate& rate() const { return rate_; }
  // From the next packet on.
  void set_rate_bps(uint64_t rate_bps);
  // What packets come to from now on; those that wait stay. Throws std::invalid_argument for 0.
  void set_queue_capacity_bytes(uint64_t queue_capacity_bytes);
  // From the next packet on, so many packets leave a second at most, frames of the MAC apart; 0: as the rate
  // allows.
  void set_packet_rate_pps(uint64_t packet_rate_pps);
  uint64_t packet_rate_pps() const { return packet_rate_pps_; }

  uint64_t queue_depth_bytes() const { return queue_depth_bytes_; }
  uint64_t queue_depth_bytes(int priority_class) const;
  uint64_t queue_depth_packets() const { return queue_depth_packets_; }
  uint64_t queue_depth_packets(int priority_class) const;
  // Both, of one of the classes from 0 to last_class().
  TrafficCounter waiting(int priority_class) const {
    const ClassQueue& queue = classes_[static_cast<size_t>(priority_class)];
    return {queue.depth_packets, queue.depth_bytes};
  }
  // What waits, by where it came from; without a shared buffer nobody has kept that.
  std::vector<WaitingFrom> waiting_by_arrival() const;
  // Largest depth left waiting since the start or reset_counters(); a packet that finds the serialiser free
  // never waits.
  uint64_t max_queue_depth_bytes() const { return max_queue_depth_bytes_; }
  // Of the frame that is being sent, what has not left by then, and its class (below 0: the MAC's own frame).
  uint64_t unsent_bytes(TimePs time_ps) const;
  int sending_class() const { return sending_class_; }

  // All frames, those of the MAC included.
  TrafficCounter transmitted() const;
  const TrafficCounter& transmitted(int priority_class) const;
  const TrafficCounter& control_transmitted() const { return counters_.control_transmitted; }
  // Found no memory in the queue, in any class: the port's own capacity, or a shared buffer's threshold.
  const TrafficCounter& tail_dropped() const { return counters_.tail_dropped; }
  const TrafficCounter& tail_dropped(int priority_class) const;
  // Trimmed since this class had no room for them, and what was cut off.
  TrafficCounter trimmed(int priority_class) const;
  // Found no memory left for its ingress port and class: more came than flow control allows for.
  const TrafficCounter& headroom_dropped() const { return counters_.headroom_dropped; }
  // Queued at, or sent to, a port that was down.
  const TrafficCounter& down_dropped() const { return counters_.down_dropped; }
  // When the last of these, frames of the MAC apart, was dropped; -1: none was.
  TimePs last_down_drop_ps() const { return last_down_drop_ps_; }
  // The same of the last that carried data, not only an answer or a probe of hosts.
  TimePs last_down_data_drop_ps() const { return last_down_data_drop_ps_; }
  // Dropped by the egress stage.
  const TrafficCounter& egress_dropped() const { return counters_.egress_dropped; }
  // What is counted of few packets; transmitted() is not among them.
  const PortCounters& counters() const { return counters_; }
  // Counters and the maximum depth to zero (the maximum: to the present depth).
  void reset_counters();

 private:
  static constexpr uint32_t kControlBit = 1u << kMaxClasses;
  static constexpr int kControl = -1;  // instead of a class
  // What every packet needs, apart from its class's.
  static constexpr size_t kHotBytes = 2 * kCacheLineBytes;
  // Of a class: about as many full frames as leave between two visits of a partition.
  static constexpr size_t kFetchedWaiting = 3;

  // With what is to be known before the packet is looked at: one that has waited for long has left the
  // caches. When it came is in the packet (enqueued_ps).
  struct Waiting {
    Waiting(PacketPtr waiting, TimePs now, SharedBuffer::Arrival from);

    PacketPtr packet;
    PacketContext* context;  // the packet's, so that it can be prefetched without a look at the packet
    SharedBuffer::Arrival arrival;
    uint32_t size_bytes;
    uint8_t packets;
    uint16_t context_bytes;  // of the packet's context, that the stage is going to use, up to 64 KB

    TrafficCounter traffic() const { return {packets, size_bytes}; }

    void prefetch() const {
      prefetch_packet<CacheLevel::kSecond>(packet.get());
      weft::prefetch<CacheLevel::kSecond>(context, context_bytes);
    }
  };
  static_assert(sizeof(Waiting) == 32, "two in a cache line");

  // A cache line each.
  struct alignas(64) ClassQueue {
    RingBuffer<Waiting> packets;
    uint64_t depth_bytes = 0;
    uint64_t depth_packets = 0;
    TrafficCounter transmitted;
  };
  static_assert(sizeof(ClassQueue) == 64);

  int clamp_class(int priority_class) const {
    return priority_class < 0 ? 0 : (priority_class > last_class_ ? last_class_ : priority_class);
  }
  const ClassQueue& class_queue(int priority_class) const;
  void push_when_whole(Waiting waiting, int priority_class, TimePs whole_ps);
  void leave_queue(const Waiting& waiting, int priority_class);
  // Plain ports are known by their first line. The pointer lies in one that nothing else needs for a packet.
  bool has_buffer() const { return !plain_ && buffer_ != nullptr; }
  void leave(const Waiting& waiting) {
    if (has_buffer()) [[unlikely]]
      buffer_->leave(waiting.arrival, waiting.size_bytes);
  }
  void drop_refused(const Waiting& waiting, int priority_class);
  void drop_waiting(int priority_class);
  // Of packets of a class that the port does not take now.
  bool refuses(int priority_class) const { return (refused_classes_ >> priority_class & 1) != 0; }
  void note_lost_data(const Packet& packet);
  QueueDrop refusal() const { return up_ ? QueueDrop::kStorm : QueueDrop::kDown; }
  void look_for_refused();
  void drop(QueueDrop reason, int priority_class, const TrafficCounter& traffic);
  enum class Admission : uint8_t { kAdmitted, kFull, kDropped };
  Admission admit(int priority_class, SharedBuffer::Arrival& arrival, const TrafficCounter& traffic);
  // Of a packet that its queue has no room for: what enqueue() returns. Out of the way of those that fit.
  [[gnu::cold, gnu::noinline]] bool trim_or_drop(PacketPtr packet, int priority_class,
                                                 SharedBuffer::Arrival arrival);
  bool enqueue_each(PacketPtr segment, int priority_class, SharedBuffer::Arrival arrival);
  bool enqueue_trimmed(PacketPtr packet, SharedBuffer::Arrival arrival);
  bool is_whole(const Packet& packet, TimePs now) const {
    return packet.received_ps <= now ||
           now + rate_.serialisation_ps(packet.wire_bytes()) >= packet.received_ps;
  }
  void on_serialiser_free();
  void start_if_idle(TimePs now, TimePs earliest_ps);
  // An egress stage or a source may call back into enqueue() or kick() meanwhile; what they add is sent by
  // who is serving.
  struct Serving {
    bool& flag;
    explicit Serving(bool& serving) : flag(serving) { flag = true; }
    ~Serving() { flag = false; }
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;
  };
  // When the first bit of a packet that comes now leaves an idle port. The first of a segment left when it
  // was there (received_ps), or later, if the last would leave before it comes.
  TimePs begin_ps(TimePs now, const Packet& packet) const {
    if (packet.packets() > 1) [[unlikely]] {
      const size_t before_last_bytes = packet.wire_bytes() - packet.frame_bytes();
      return std::max(packet.received_ps, now - rate_.serialisation_ps(before_last_bytes));
    }
    return arrivals_serialised_ ? now - rate_.serialisation_ps(packet.wire_bytes()) : now;
  }
  // What a packet that passes at once skips: queue, weighted turns, and the wait for the serialiser.
  bool passes_at_once(int priority_class, TimePs now) const {
    return plain_ && !serving_ && !serialiser_armed_ && busy_until_ps_ <= now && source_ == nullptr &&
           (queue_depth_packets_ | nonempty_classes_ | dwrr_classes_) == 0 &&
           (blocked_classes_ >> priority_class & 1) == 0;
  }
  void pass(PacketPtr packet, int priority_class, TimePs now);
  // Apart from enqueue(), so that a packet that passes does not save the registers that this needs.
  [[gnu::noinline]] void wait(PacketPtr packet, int priority_class, SharedBuffer::Arrival arrival,
                              bool whole);
  void arm_serialiser() {
    serialiser_armed_ = true;
    serialiser_free_.arm(busy_until_ps_);
  }
  void look_for_extras();
  void set_nonempty(int priority_class) {
    nonempty_classes_ = static_cast<uint16_t>(nonempty_classes_ | 1u << priority_class);
  }
  void set_empty(int priority_class) {
    nonempty_classes_ = static_cast<uint16_t>(nonempty_classes_ & ~(1u << priority_class));
  }
  void serve(TimePs start_ps);
  void send_waiting(TimePs start_ps);
  // Whether the serialiser is busy then.
  bool send(PacketPtr packet, int priority_class, TimePs start_ps);
  bool send_with_extras(PacketPtr packet, int priority_class, TimePs start_ps);
  // Puts it on the link; result: when its last bit leaves.
  TimePs transmit(PacketPtr packet, int priority_class, TimePs start_ps);
  void send_between_packets(TimePs now);
  PacketPtr next_before_segment(TimePs start_ps, int& priority_class);
  bool may_send() const;
  PacketPtr next_packet(TimePs start_ps, int& priority_class);
  int next_class(uint32_t ready);
  Waiting take_first(int priority_class);
  bool must_split(const ClassQueue& queue) const;
  Waiting take_first_of_segment(int priority_class);
  static void prefetch_waiting(const RingBuffer<Waiting>& packets);
  PacketPtr dequeue(int priority_class, TimePs start_ps);
  PacketPtr through_stage(PacketPtr packet, const QueueStamp& stamp);
  PacketPtr pop_control(int& priority_class);
  PacketPtr pull_from_source(TimePs start_ps, int& priority_class);
  // What the source has given is in the network.
  PacketPtr entered(PacketPtr packet);
  template <PrefetchStep kStep>
  void fetch_waiting() const;
  static void count_held(const void* port, HeldPackets& held);
  void drop_all_waiting();

  // What every packet needs comes first, in two cache lines and its class's: in a large fabric each of them
  // comes from memory for nearly every packet.
  Engine& engine_;
  Link& link_;
  EgressStage* stage_ = nullptr;
  BitRate rate_;
  TimePs busy_until_ps_ = 0;
  uint16_t stage_port_ = 0;
  int8_t last_class_;
  int8_t sending_class_ = kControl;
  bool serving_ = false;
  bool arrivals_serialised_;
  bool plain_ = true;  // up, and with a capacity of its own
  bool serialiser_armed_ = false;
  // The second line.
  PacketSource* source_ = nullptr;
  uint64_t queue_depth_bytes_ = 0;
  uint64_t queue_capacity_bytes_;
  uint64_t max_queue_depth_bytes_ = 0;
  uint32_t queue_depth_packets_ = 0;
  uint16_t nonempty_classes_ = 0;  // bit per class, and kControlBit
  uint16_t blocked_classes_ = 0;
  uint8_t dwrr_classes_ = 0;
  uint8_t used_classes_ = 0;  // bit per class that packets have been sent of
  bool up_ = true;
  // What few ports have is looked at: a capture, an observer, an interval between packets and what it leaves,
  // or a segment that is being sent.
  bool extras_ = false;
  uint8_t refused_classes_ = 0;  // all while the port is down, else those that are discarded
  Timer serialiser_free_;        // armed: serialiser_armed_

  TransmitObserver* observer_ = nullptr;
  SharedBuffer* buffer_ = nullptr;
  std::shared_ptr<PcapWriter> capture_;
  // Of a segment that is being sent (0: none is): each packet's time, the end, and when what was sent in
  // between has left.
  TimePs segment_packet_ps_ = 0;
  TimePs segment_end_ps_ = 0;
  TimePs between_until_ps_ = 0;
  TimePs packet_interval_ps_ = 0;  // from one packet's start to the next one's, at least
  TimePs rest_ps_ = 0;             // of busy_until_ps_, what the interval has added
  uint64_t packet_rate_pps_ = 0;
  std::array<ClassQueue, kMaxClasses> classes_;

  std::array<TrafficCounter, kMaxClasses> tail_dropped_{};  // by class
  RingBuffer<PacketPtr> control_;
  uint32_t buffer_port_ = 0;
  DeficitRoundRobin round_robin_;
  PortConfig config_;
  PortCounters counters_;
  TimePs last_down_drop_ps_ = -1;
  TimePs last_down_data_drop_ps_ = -1;
  std::unique_ptr<TrafficByKind> by_kind_;  // the observer, if there is one
  std::unique_ptr<Trimming> trimming_;      // null: what has no room is dropped
  // Null: no class ever was discarded.
  struct Discarding {
    uint8_t classes = 0;
    std::array<TrafficCounter, kMaxClasses> dropped{};
  };
  std::unique_ptr<Discarding> discarding_;

  struct Layout;
};

// Of each class, what waits first: where it is noted, then the packets with their contexts.
template <PrefetchStep kStep>
void TransmitPort::fetch_waiting() const {
  for (uint32_t left = nonempty_classes_ & ~kControlBit; left != 0; left &= left - 1) {
    const RingBuffer<Waiting>& packets = classes_[static_cast<size_t>(std::countr_zero(left))].packets;
    if constexpr (kStep == PrefetchStep::kTwoAway)
      // take_first() looks as far ahead of each as it is one of kFetchedWaiting.
      prefetch<CacheLevel::kSecond>(packets.first_slot(), 2 * kFetchedWaiting * sizeof(Waiting));
    else
      for (size_t i = 0; i < std::min(kFetchedWaiting, packets.size()); ++i) packets[i].prefetch();
  }
}

template <PrefetchStep kStep>
void TransmitPort::fetch() const {
  static_assert(kStep <= kLastFetch);
  if constexpr (kStep == PrefetchStep::kObject) {
    prefetch<CacheLevel::kSecond>(this, kHotBytes);
  } else if constexpr (kStep == PrefetchStep::kOneAway) {
    prefetch<CacheLevel::kSecond>(&link_, kCacheLineBytes);
    for (uint32_t left = used_classes_; left != 0; left &= left - 1)
      prefetch<CacheLevel::kSecond>(&classes_[static_cast<size_t>(std::countr_zero(left))],
                                    sizeof(ClassQueue));
  } else {
    if constexpr (kStep == PrefetchStep::kTwoAway) link_.prefetch_far_end();
    fetch_waiting<kStep>();
  }
}

}  // namespace weft
