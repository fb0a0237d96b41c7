// A partition of a virtual run, an engine and what other partitions send it, and the worker that serves it.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "memory/cache_line.hpp"
#include "packets/packet.hpp"
#include "time/engine.hpp"
#include "time/listener.hpp"
#include "time/outbox.hpp"
#include "time/time.hpp"
#include "time/visited.hpp"

namespace weft {

class PacketStore;
class Partitions;
class PartitionWorker;
class TransmitPort;

// A call that an event wants made outside the partitions: of the controller, of a run's owner.
struct HandOver {
  TimePs time_ps;
  std::shared_ptr<const Listener> listener;
};

struct CollectedCall {
  uint32_t partition;
  HandOver what;
};

class Partition : public InCacheLines {
 public:
  Partition(Partitions& owner, uint32_t index, int group, uint64_t seed, FairLock& lock,
            std::shared_ptr<PacketStore> store);

  Engine& engine() { return engine_; }
  Partitions& owner() { return owner_; }
  uint32_t index() const { return index_; }
  int group() const { return group_; }

  // A delay line on which packets of another partition come. It lives until the run's components are
  // destroyed, and is not looked at after that.
  void add_incoming(const DelayLine& delay_line) { incoming_.push_back(&delay_line); }
  // Packets pass this object here. It lives until the run's components are destroyed, and is not looked at
  // after that.
  void add_visited(const DelayLine& line);
  void add_visited(const TransmitPort& port);
  void add_visited(Visited visited);
  // On such delay lines, and no pool's.
  uint64_t unclaimed_packets() const;
  // Sends a packet of this partition's to the other one that the outbox is for. Throws std::logic_error if it
  // would be late there.
  void send(Outbox& outbox, PacketPtr packet, TimePs due_ps);
  // Has the owner make this call between windows, one window after now.
  void hand_over(std::shared_ptr<const Listener> listener);
  std::vector<HandOver> take_hand_overs();
  // Somebody other than its worker has used the engine: its next event may be another.
  void touch();

 private:
  friend class PartitionWorker;
  friend class Partitions;

  // What others read when they send to this partition, apart from what it writes itself.
  alignas(64) PartitionWorker* worker_ = nullptr;
  uint32_t place_ = 0;  // among its worker's
  uint32_t index_;
  int group_;
  Partitions& owner_;

  alignas(64) Engine engine_;
  bool touched_ = false;
  std::vector<HandOver> hand_overs_;
  std::vector<const DelayLine*> incoming_;
  size_t visited_count() const { return lines_.size() + ports_.size() + visited_.size(); }

  CacheLineVector<const DelayLine*> lines_;
  CacheLineVector<const TransmitPort*> ports_;
  CacheLineVector<Visited> visited_;  // all others
  uint64_t events_in_last_visit_ = 0;
};

// What an event has thrown.
struct PartitionFailure {
  TimePs time_ps;
  uint32_t partition;
  std::exception_ptr exception;
};

// Serves its partitions one after the other, each for a whole window, so that what a partition works with
// stays in the processor's caches meanwhile. What is sent in a window to a partition of the same worker lies
// on its delay line already, which is woken at the start of the next window; what is sent to another worker's
// is delivered then, by that one. Windows alternate between two sets of outboxes, so senders and receivers
// need no locks.
class alignas(64) PartitionWorker {
 public:
  // assignment: which assignment of partitions to workers this is, from 1 on; no two have the same.
  // One of kAbsent stands for other processes: it serves nothing, what its partitions send is dropped, and
  // what they are sent waits for take_remote().
  PartitionWorker(int index, int worker_count, uint32_t assignment, std::shared_ptr<PacketStore> store);
  static constexpr uint32_t kAbsent = ~0u;

  void take(Partition& partition);
  // So many partitions may be sent to.
  void set_partition_count(size_t count);
  // Serves all events up to and including limit_ps. All workers of a run, this one included, must be at
  // this, or have been, when the window ends.
  void serve_window(std::vector<std::unique_ptr<PartitionWorker>>& all, TimePs limit_ps);
  // Delivers what it has sent, as serve_window() of the receivers does at its start. Not in a window.
  void deliver_sent();
  // Takes what it has sent to partitions of this absent worker: take(partition, batches) for each link. Not
  // in a window.
  template <class Take>
  void take_remote(const PartitionWorker& absent, Take&& take) {
    for (unsigned parity = 0; parity < 2; ++parity) {
      CacheLineVector<uint32_t>& places = addressed_[parity][static_cast<size_t>(absent.index_)];
      for (const uint32_t place : places) {
        const Partition& target = *absent.partitions_[place];
        Deliveries& deliveries = deliveries_[parity][target.index()];
        for (OutboxBatch* batches : deliveries.batches) take(target, *batches);
        deliveries.batches.clear();
      }
      places.clear();
    }
  }
  // Sent by it to others and not delivered yet. Not in a window.
  uint64_t packets_waiting() const;
  // Looks again when the partition's next event is.
  void look_at(Partition& partition);

  // Of the next event of its partitions, or of the first arrival it has sent to any.
  TimePs earliest_ps() const { return earliest_ps_ < earliest_sent_ps_ ? earliest_ps_ : earliest_sent_ps_; }
  // Of the last event served in the last window.
  TimePs latest_ps() const { return latest_ps_; }
  uint64_t events_served() const { return events_served_; }
  // The first, by time and partition, since it was taken.
  std::optional<PartitionFailure> take_failure() { return std::exchange(failure_, std::nullopt); }
  // Partitions that have handed something over since the last call.
  std::vector<Partition*> take_talkative() { return std::exchange(talkative_, {}); }
  const std::shared_ptr<PacketStore>& store() const { return store_; }

 private:
  friend class Partition;
  // Stands for the time of the next event while there is deliveries: before every window's end.
  static constexpr TimePs kDelivery = INT64_MIN;

  // What is to be brought to one partition.
  struct alignas(kCacheLineBytes) Deliveries {
    CacheLineVector<DelayLine*>
        delay_lines;  // have got their first packet by this worker, and are to be woken
    CacheLineVector<OutboxBatch*> batches;
    bool empty() const { return delay_lines.empty() && batches.empty(); }
  };

  TimePs visit(Partition& partition, TimePs limit_ps);
  void fetch(const Partition& partition) const;
  template <PrefetchStep kStep>
  void fetch_step(const Partition& partition) const;
  void fetch_ahead(size_t place) const;
  Deliveries& deliveries_to(const Partition& target);
  [[gnu::noinline, noreturn]] static void throw_late(TimePs due_ps, TimePs limit_ps);
  [[gnu::noinline]] void send_far(Outbox& outbox, Packet* packet, TimePs due_ps);
  [[gnu::noinline]] void wake_later(const Outbox& outbox);
  static void deliver(Deliveries& deliveries);
  void note_failure(const Partition& partition);

  int index_;
  uint32_t assignment_;
  std::shared_ptr<PacketStore> store_;
  std::vector<Partition*> partitions_;
  size_t visited_count_ = 0;                               // of all its partitions
  std::vector<TimePs> next_times_;                         // of the partitions, by place
  unsigned parity_ = 0;                                    // of the present window, or of the last one
  TimePs limit_ps_ = -1;                                   // the same window's
  std::array<CacheLineVector<Deliveries>, 2> deliveries_;  // by parity and the receiving partition's index
  // Places of partitions that something was sent to, by parity and their worker.
  std::array<std::vector<CacheLineVector<uint32_t>>, 2> addressed_;
  TimePs earliest_ps_ = kNever;
  TimePs earliest_sent_ps_ = kNever;
  TimePs latest_ps_ = 0;
  uint64_t events_served_ = 0;
  std::optional<PartitionFailure> failure_;
  std::vector<Partition*> talkative_;
};

}  // namespace weft
