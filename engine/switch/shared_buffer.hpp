// A switch's packet memory, shared by its ports: reservations, dynamic thresholds, and what came in by each
// port.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "observe/statistics.hpp"
#include "observe/traffic_counter.hpp"

namespace weft {

class Engine;

// Of one class: what each port's queue has for itself, and how far it may reach into the shared rest.
struct ClassMemory {
  uint64_t reserved_bytes = 0;
  // Dynamic threshold (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet
  // Switches", IEEE/ACM ToN 6(2), 1998): a queue may take more while it holds less than alpha times what is
  // free of the shared memory. The class of a paused group is held by its pause threshold instead.
  double alpha = 1.0;
};

// Of one class at one ingress port: how its sender is held back before memory runs out.
struct IngressLimits {
  enum class Kind : uint8_t {
    kNone,     // not at all: the egress queues' thresholds drop
    kPause,    // a signal at a threshold (PFC), then a headroom of its own
    kCredits,  // memory of its own, which the sender knows from its credits
  };
  Kind kind = Kind::kNone;
  uint64_t own_bytes = 0;   // headroom, or the memory that credits promise
  uint64_t xoff_bytes = 0;  // pause above that; 0: above alpha times the free shared memory
  double alpha = 0.0;
  uint64_t hysteresis_bytes = 0;  // go on below the threshold less this (and at nothing at all)
};

struct SharedBufferConfig {
  static constexpr int kClasses = 8;
  uint64_t capacity_bytes = 0;
  std::array<ClassMemory, kClasses> classes{};
};

// Is notified when the memory that a port holds for a class asks something of its sender.
struct IngressListener {
  virtual ~IngressListener() = default;
  virtual void on_pause_wanted(int priority_class, bool wanted) = 0;
  // Memory of a group with credits was given back.
  virtual void on_credit_freed(int priority_class, uint64_t bytes) = 0;
};

// What came in by a port in a class and is still held.
#define WEFT_INGRESS_STATISTICS(STATISTIC)                                                                \
  STATISTIC(uint64_t, held_bytes, "held now")                                                             \
  STATISTIC(uint64_t, max_held_bytes, "the most held")                                                    \
  STATISTIC(uint64_t, own_used_bytes, "of that, in memory of its own: headroom, or what credits promise") \
  STATISTIC(uint64_t, max_own_used_bytes, "the most used of it")                                          \
  STATISTIC(bool, is_paused, "the far end has been asked to pause")                                       \
  STATISTIC(uint64_t, dropped_packets, "found no memory left")                                            \
  STATISTIC(uint64_t, dropped_bytes, "found no memory left")

struct IngressStatistics {
  WEFT_STATISTICS(IngressStatistics, WEFT_INGRESS_STATISTICS)
};

// A packet is charged as a whole to the reservation of its queue, to the shared memory, or to the own memory
// of its ingress group; its queue entry remembers to which. The group is that of the lane it came in,
// whatever class it is queued in. What a group with pauses gives back goes to its headroom first, so that
// this is whole again before its sender may go on.
//
// Copies of a packet that came in by a group with flow control share its memory: it is taken once, and given
// back when the last of them has left. Other copies take memory each, as packets of no group.
class SharedBuffer {
 public:
  static constexpr int kClasses = SharedBufferConfig::kClasses;
  static constexpr uint32_t kNoIngress = 0xffff;

  enum class Charge : uint8_t { kReserved, kShared, kOwn, kRefusedQueue, kRefusedIngress };
  static bool admitted(Charge charge) { return charge <= Charge::kOwn; }
  // Memory that credits promise is given in whole blocks (InfiniBand Architecture 1.4, 7.9.4.2).
  static constexpr uint64_t kCreditBlockBytes = 64;
  static uint64_t in_blocks(uint64_t size_bytes) {
    return (size_bytes + kCreditBlockBytes - 1) / kCreditBlockBytes * kCreditBlockBytes;
  }

  // How a packet came in, and what memory it has been charged to.
  struct Arrival {
    static constexpr uint32_t kAlone = 0xffffffff;
    Arrival() = default;
    Arrival(int by_port, int in_lane)
        : port(static_cast<uint16_t>(by_port)), lane(static_cast<uint8_t>(in_lane)) {}
    uint16_t port = static_cast<uint16_t>(kNoIngress);
    uint8_t lane = 0xff;  // the class it was queued in at the far end; above 7: not known, that of its queue
    Charge charge = Charge::kShared;
    uint32_t account = kAlone;  // that copies share
  };

  struct Group : IngressStatistics {
    IngressLimits limits;
    IngressListener* listener = nullptr;
  };

  // Throws std::invalid_argument for a capacity of 0 or an alpha that is not above 0.
  SharedBuffer(Engine& engine, const SharedBufferConfig& config);

  // A port of the switch, from 0 to 511. Its reservations leave the shared memory; so does the own memory of
  // set_ingress(). Both throw std::invalid_argument when that is more than there is, or for limits that
  // cannot work.
  void add_port(uint32_t port);
  void set_ingress(uint32_t port, int priority_class, const IngressLimits& limits, IngressListener* listener);

  // Memory for a packet, or a segment of packets, that goes to the queue (egress_port, priority_class). A
  // port that was not added (of a clone, a packet of the controller) belongs to no group. A charge that is
  // not admitted() has been counted as a drop.
  Charge admit(Arrival& arrival, uint32_t egress_port, int priority_class, const TrafficCounter& traffic);
  // A packet that the queue has refused is not dropped: it is given in again as something else.
  void forget_refusal(const Arrival& arrival, const TrafficCounter& traffic);
  // The packet has left the queue, and then the switch.
  void leave_queue(const Arrival& arrival, uint32_t egress_port, int priority_class, uint64_t size_bytes);
  void leave(const Arrival& arrival, uint64_t size_bytes);
  // What copies of an arrival are to be admitted as, up to let_go().
  Arrival open_account(const Arrival& arrival, const TrafficCounter& traffic);
  // What a packet is to be admitted as once more that has left its queue and not the switch: with the memory
  // that it has, where its group has flow control, and otherwise with none.
  Arrival admit_again(Arrival& arrival, uint64_t size_bytes);
  void let_go(const Arrival& shared);

  Engine& engine() { return engine_; }
  const SharedBufferConfig& config() const { return config_; }
  uint64_t shared_capacity_bytes() const { return shared_capacity_bytes_; }
  uint64_t shared_used_bytes() const { return shared_used_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t max_used_bytes() const { return max_used_bytes_; }
  // What a queue of the class may take of the shared memory at this moment.
  uint64_t threshold_bytes(int priority_class) const;
  uint64_t queue_bytes(uint32_t egress_port, int priority_class) const;
  // In all queues of the class; copies that share memory count in each.
  uint64_t class_bytes(int priority_class) const;
  const Group& group(uint32_t ingress_port, int priority_class) const;
  std::vector<uint32_t> ports() const;
  // Drop counters to zero, largest figures to the present ones.
  void reset_counters();

 private:
  // Of copies, and of who may still make some.
  struct Account {
    Arrival arrival;
    uint64_t size_bytes = 0;
    uint32_t holders = 0;
  };
  struct Queue {
    uint64_t reserved_used_bytes = 0;
    uint64_t shared_used_bytes = 0;  // beyond the reservation, in headroom or not
    uint64_t credit_used_bytes = 0;  // in memory that credits promise
    uint64_t bytes() const { return reserved_used_bytes + shared_used_bytes + credit_used_bytes; }
  };
  struct Port {
    std::array<Queue, kClasses> queues;
    std::array<Group, kClasses> groups;
  };

  static size_t slot(int priority_class) { return static_cast<size_t>(priority_class); }
  uint64_t free_shared_bytes() const { return shared_capacity_bytes_ - shared_used_bytes_; }
  void carve(uint64_t bytes, const std::string& what);
  const Port& port(uint32_t number) const;
  Group* group_of(uint32_t ingress_port, int priority_class);
  Charge choose(const Group* group, const Queue& queue, int priority_class, uint64_t size_bytes) const;
  uint64_t pause_threshold_bytes(const Group& group) const;
  static uint64_t& part_of(Queue& queue, const Group* group, Charge charge);
  void take(Group* group, int lane, uint64_t size_bytes, Charge charge);
  void give_back(Group* group, int lane, uint64_t size_bytes, Charge charge);
  static Charge refuse(Group* group, const TrafficCounter& traffic, Charge charge);
  Arrival new_account(const Arrival& arrival, uint64_t size_bytes, uint32_t holders);
  void update_pause(Group& group, int priority_class);

  Engine& engine_;
  SharedBufferConfig config_;
  uint64_t shared_capacity_bytes_;
  uint64_t shared_used_bytes_ = 0;
  uint64_t used_bytes_ = 0;
  uint64_t max_used_bytes_ = 0;
  std::vector<uint16_t> index_;  // by port number, kNoIngress where there is none
  std::vector<Port> ports_;
  std::vector<Account> accounts_;
  std::vector<uint32_t> free_accounts_;
};

}  // namespace weft
