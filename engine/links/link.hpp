// A link in one direction: propagation delay, seeded faults, and the node at its far end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "links/delay_line.hpp"
#include "links/node.hpp"
#include "memory/prefetch.hpp"
#include "observe/counted_drops.hpp"
#include "observe/statistics.hpp"
#include "observe/traffic_counter.hpp"
#include "time/engine.hpp"
#include "time/outbox.hpp"
#include "time/random.hpp"

namespace weft {

class LinkRetry;
class PcapWriter;
class TransmitPort;
struct LinkRetryConfig;

// Probabilities are per packet and independent of each other.
struct FaultConfig {
  double loss = 0.0;               // it never arrives
  double duplicate = 0.0;          // a second copy arrives together with the first
  double delay_probability = 0.0;  // such a packet (with its copy) takes delay_ps longer, and so is overtaken
  TimePs delay_ps = 0;
  double bit_error_rate = 0.0;  // of each bit: the MAC at the far end drops a packet with a wrong one

  bool any() const { return loss > 0 || duplicate > 0 || delay_probability > 0 || bit_error_rate > 0; }
};

// What is on its way counts as delivered.
#define WEFT_LINK_COUNTERS(STATISTIC)                                          \
  STATISTIC(uint64_t, delivered_packets, "handed to the far end")              \
  STATISTIC(uint64_t, delivered_bytes, "handed to the far end")                \
  STATISTIC(uint64_t, lost_packets, "by a fault")                              \
  STATISTIC(uint64_t, lost_bytes, "by a fault")                                \
  STATISTIC(uint64_t, corrupted_packets, "dropped on arrival for a wrong bit") \
  STATISTIC(uint64_t, corrupted_bytes, "dropped on arrival for a wrong bit")   \
  STATISTIC(TrafficCounter, cut, "on the link as it failed")                   \
  STATISTIC(uint64_t, duplicated_packets, "by a fault")                        \
  STATISTIC(uint64_t, delayed_packets, "by a fault")

struct LinkCounters {
  WEFT_STATISTICS(LinkCounters, WEFT_LINK_COUNTERS)
};

// Why a packet did not come out of a link: it never arrives; it arrives with wrong bits; it was on the link,
// or partly so, as that failed.
#define WEFT_LINK_DROPS(DROP)                      \
  DROP(kLost, "lost", lost_packets)                \
  DROP(kCorrupted, "corrupted", corrupted_packets) \
  DROP(kCut, "cut", cut)
WEFT_COUNTED_DROPS(LinkDrop, kLinkDrops, LinkCounters, WEFT_LINK_DROPS)

class alignas(64) Link {
 public:
  // Throws std::invalid_argument for a negative delay or a probability outside 0 to 1.
  Link(Engine& engine, TimePs delay_ps, FaultConfig faults, Rng rng);
  ~Link();

  // The far end: a switch, a NIC, a packet socket, another transmit port. Throws std::invalid_argument if it
  // is in another partition and the delay is 0, or in an engine of its own; std::logic_error if the link
  // already ends in one partition and the node is in another.
  void connect(Node& node, int port);
  // Another far end, which the link may be joined to later; result: its number, that of connect()'s is 0.
  // Known before the run, so that partitions never go further ahead than the shortest delay of them allows.
  // Throws as connect(); std::logic_error if the link is connected to nothing.
  size_t add_far_end(Node& node, int port);
  // Packets go to the far end of this number from now on; captures end. Between windows only, where
  // partitions are linked. Throws std::out_of_range if there is none, std::logic_error if packets are on the
  // link: cut() first.
  void join(size_t far_end);
  // The packet is ready for the far end at ready_ps (with its last bit, or its first where the link is
  // early), and gets there a delay later. Throws std::logic_error if the link is connected to nothing.
  [[gnu::always_inline]] void transmit(PacketPtr packet, TimePs ready_ps) {
    const TimePs arrival_ps = ready_ps + delay_ps_;
    if (outbox_.delay_line == nullptr || faulty_) [[unlikely]]
      transmit_with_faults(std::move(packet), arrival_ps);
    else
      deliver(std::move(packet), arrival_ps);
  }

  // Send again on the link what gets lost on it; `port` is the one that sends into it. Throws
  // std::logic_error for a second retry, where packets arrive with their first bit, or where faults duplicate
  // or delay packets; else as LinkRetry.
  void enable_retry(TransmitPort& port, const LinkRetryConfig& config);
  const LinkRetry* retry() const { return retry_.get(); }

  // The link fails: drops what is on it, and what has not left its sender whole, and counts it. The sending
  // port is taken down apart (TransmitPort::set_up). Where partitions are linked, between windows only
  // (std::logic_error). Result: what was lost.
  TrafficCounter cut();

  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  // The far end takes packets from their first bit on (cut-through), and not only when they are whole: frames
  // of the MAC's own excepted.
  // Throws std::logic_error where the link sends again what gets lost: only whole frames can be checked.
  void set_early(bool early);
  bool is_early() const { return early_; }
  // Prefetches what a packet for the far end is going to change there, unless another worker serves that.
  void prefetch_far_end() const {
    if (outbox_.target == nullptr || outbox_.near)
      prefetch<CacheLevel::kSecond>(outbox_.delay_line, kCacheLineBytes);
  }
  // Records every packet as it arrives at the far end; null stops.
  void set_capture(std::shared_ptr<PcapWriter> capture);

  TimePs delay_ps() const { return delay_ps_; }
  void set_faults(FaultConfig faults);
  // Faults are drawn from another stream from now on.
  void draw_from(const Rng& rng) { rng_ = rng; }
  const FaultConfig& faults() const { return faults_; }
  LinkCounters counters() const;
  void reset_counters();

 private:
  friend class LinkRetry;

  // Of one sending of a packet, where the link sends again what gets lost.
  enum class Fate : uint8_t { kArrives, kLost, kCorrupted };
  Fate draw_fate(const Packet& packet);
  // Whether a message of the MAC, which is no packet, gets lost.
  bool loses_message(uint64_t bytes);
  void drop_lost(const TrafficCounter& traffic);

  // Where packets may go, and how they get there.
  struct FarEnd {
    std::unique_ptr<DelayLine> delay_line;  // the receiver's, who may be served by another thread
    Outbox outbox;
  };

  static void check(const FaultConfig& faults);
  static void require_no_reordering(const FaultConfig& faults);
  FarEnd far_end_at(Node& node, int port);
  void require_between_windows(const char* what) const;
  void drop(LinkDrop reason, const TrafficCounter& traffic);
  // Throws as transmit().
  void transmit_with_faults(PacketPtr packet, TimePs arrival_ps);
  double damage_probability(uint64_t bytes) const;
  [[gnu::always_inline]] void deliver(PacketPtr packet, TimePs arrival_ps) {
    counters_.delivered_packets += packet->packets();
    counters_.delivered_bytes += packet->wire_bytes();
    if (outbox_.target != nullptr)
      send_across(std::move(packet), arrival_ps);
    else
      outbox_.delay_line->push(std::move(packet), arrival_ps);
  }
  void send_across(PacketPtr packet, TimePs arrival_ps);

  // What every packet needs comes first, in one cache line.
  TimePs delay_ps_;
  [[no_unique_address]] Outbox outbox_;  // the two flags lie in its last bytes
  bool faulty_ = false;
  bool early_ = false;
  LinkCounters counters_;  // the first two of them

  Engine& engine_;
  std::unique_ptr<DelayLine> delay_line_;  // the present far end's
  FaultConfig faults_;
  double log_bit_intact_ = 0.0;  // ln(1 - bit_error_rate)
  Rng rng_;
  std::shared_ptr<PcapWriter> capture_;
  std::unique_ptr<LinkRetry> retry_;  // null: what gets lost is lost
  // By number; what the present one has is above. Empty if there is one alone.
  std::vector<FarEnd> far_ends_;
  size_t present_ = 0;
};

}  // namespace weft
