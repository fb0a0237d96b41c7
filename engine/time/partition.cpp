#include "time/partition.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "links/delay_line.hpp"
#include "links/transmit_port.hpp"
#include "memory/prefetch.hpp"
#include "packets/packet_store.hpp"
#include "time/partitions.hpp"

namespace weft {

namespace {

// Fewer objects than that, with what packets use of each, stay in a second-level cache of a megabyte. Without
// prefetching, a permutation over three tiers takes less time if its fabric has 228 of them, and a tenth more
// if it has 750.
constexpr size_t kFewVisited = 256;
constexpr size_t kBatchDistance = 6;
constexpr size_t kDelayLineDistance = 3;

// Since they were used last, a whole window of other packets has passed.
void prefetch_ahead(const CacheLineVector<DelayLine*>& delay_lines, size_t at) {
  if (at + kDelayLineDistance < delay_lines.size())
    prefetch(delay_lines[at + kDelayLineDistance], kCacheLineBytes);
}

void prefetch_ahead(const CacheLineVector<OutboxBatch*>& batches, size_t at) {
  if (at + kBatchDistance < batches.size()) prefetch(batches[at + kBatchDistance], sizeof(OutboxBatch));
  if (at + kDelayLineDistance < batches.size())
    prefetch(batches[at + kDelayLineDistance]->delay_line, kCacheLineBytes);
}

}  // namespace

Partition::Partition(Partitions& owner, uint32_t index, int group, uint64_t seed, FairLock& lock,
                     std::shared_ptr<PacketStore> store)
    : index_(index), group_(group), owner_(owner), engine_(*this, seed, lock, std::move(store)) {}

void Partition::add_visited(const DelayLine& line) {
  lines_.push_back(&line);
  if (worker_ != nullptr) ++worker_->visited_count_;
}

void Partition::add_visited(const TransmitPort& port) {
  ports_.push_back(&port);
  if (worker_ != nullptr) ++worker_->visited_count_;
}

void Partition::add_visited(Visited visited) {
  visited_.push_back(visited);
  if (worker_ != nullptr) ++worker_->visited_count_;
}

// What few packets need is left to other functions, so that it saves no registers for them.
void Partition::send(Outbox& outbox, PacketPtr packet, TimePs due_ps) {
  PartitionWorker& worker = *worker_;
  if (due_ps <= worker.limit_ps_) [[unlikely]]
    PartitionWorker::throw_late(due_ps, worker.limit_ps_);
  if (outbox.assignment != worker.assignment_) [[unlikely]] {
    if (worker.assignment_ == PartitionWorker::kAbsent) return;
    outbox.assignment = worker.assignment_;
    outbox.near = outbox.target->worker_ == worker_;
  }
  worker.earliest_sent_ps_ = std::min(worker.earliest_sent_ps_, due_ps);
  Packet* sent = engine_.packets().part_with(std::move(packet));
  if (!outbox.near)
    worker.send_far(outbox, sent, due_ps);
  else if (outbox.delay_line->push_from_other(sent, due_ps))
    worker.wake_later(outbox);
}

void PartitionWorker::throw_late(TimePs due_ps, TimePs limit_ps) {
  throw std::logic_error("a packet would reach another partition at " + std::to_string(due_ps) +
                         " ps, and that has been served up to " + std::to_string(limit_ps) + " ps");
}

void PartitionWorker::send_far(Outbox& outbox, Packet* packet, TimePs due_ps) {
  OutboxBatch& batches = (*outbox.batches)[parity_];
  if (batches.chain.empty()) deliveries_to(*outbox.target).batches.push_back(&batches);
  batches.push(packet, due_ps);
}

void PartitionWorker::wake_later(const Outbox& outbox) {
  deliveries_to(*outbox.target).delay_lines.push_back(outbox.delay_line);
}

uint64_t Partition::unclaimed_packets() const {
  uint64_t count = 0;
  for (const DelayLine* each : incoming_) count += each->size();
  return count;
}

void Partition::hand_over(std::shared_ptr<const Listener> listener) {
  if (hand_overs_.empty()) worker_->talkative_.push_back(this);
  hand_overs_.push_back({engine_.now(), std::move(listener)});
}

std::vector<HandOver> Partition::take_hand_overs() { return std::exchange(hand_overs_, {}); }

void Partition::touch() {
  if (touched_) return;
  touched_ = true;
  owner_.touched(*this);
}

// --- the worker

PartitionWorker::PartitionWorker(int index, int worker_count, uint32_t assignment,
                                 std::shared_ptr<PacketStore> store)
    : index_(index), assignment_(assignment), store_(std::move(store)) {
  for (auto& by_worker : addressed_) by_worker.resize(static_cast<size_t>(worker_count) + 1);
}

void PartitionWorker::take(Partition& partition) {
  partition.worker_ = this;
  partition.place_ = static_cast<uint32_t>(partitions_.size());
  partition.engine_.packets().use_store(store_);
  partitions_.push_back(&partition);
  visited_count_ += partition.visited_count();
  next_times_.push_back(kNever);
  look_at(partition);
}

void PartitionWorker::set_partition_count(size_t count) {
  for (auto& by_partition : deliveries_) by_partition.resize(count);
}

void PartitionWorker::look_at(Partition& partition) {
  const TimePs next_ps = partition.engine_.next_event_ps();
  next_times_[partition.place_] = next_ps;
  // What was earlier and is no longer is found out in the next window, which may be served for nothing.
  earliest_ps_ = std::min(earliest_ps_, next_ps);
}

void PartitionWorker::serve_window(std::vector<std::unique_ptr<PartitionWorker>>& all, TimePs limit_ps) {
  const unsigned full = parity_;
  parity_ ^= 1;
  limit_ps_ = limit_ps;
  earliest_sent_ps_ = kNever;
  latest_ps_ = 0;
  for (const auto& sender : all) {
    CacheLineVector<uint32_t>& places = sender->addressed_[full][static_cast<size_t>(index_)];
    for (const uint32_t place : places) next_times_[place] = kDelivery;
    places.clear();
  }
  TimePs earliest_ps = kNever;
  for (size_t place = 0; place < next_times_.size(); ++place) {
    if (next_times_[place] <= limit_ps) {
      Partition& partition = *partitions_[place];
      fetch_ahead(place);
      fetch(partition);
      if (next_times_[place] == kDelivery)
        for (const auto& sender : all) deliver(sender->deliveries_[full][partition.index_]);
      next_times_[place] = visit(partition, limit_ps);
    }
    earliest_ps = std::min(earliest_ps, next_times_[place]);
  }
  earliest_ps_ = earliest_ps;
}

// Of the partitions behind this one in turn, what fetch() reads itself.
void PartitionWorker::fetch_ahead(size_t place) const {
  if (visited_count_ < kFewVisited) return;
  if (place + 2 < partitions_.size())
    prefetch<CacheLevel::kSecond>(partitions_[place + 2], sizeof(Partition));
  if (place + 1 == partitions_.size()) return;
  const Partition& next = *partitions_[place + 1];
  prefetch<CacheLevel::kSecond>(next.lines_.data(), next.lines_.size() * sizeof(next.lines_[0]));
  prefetch<CacheLevel::kSecond>(next.ports_.data(), next.ports_.size() * sizeof(next.ports_[0]));
  prefetch<CacheLevel::kSecond>(next.visited_.data(), next.visited_.size() * sizeof(Visited));
}

// Only where it has left the caches meanwhile, and about as much happens as there is to fetch.
void PartitionWorker::fetch(const Partition& partition) const {
  if (visited_count_ < kFewVisited || partition.events_in_last_visit_ < partition.visited_count()) return;
  [&]<int... kSteps>(std::integer_sequence<int, kSteps...>) {
    (fetch_step<static_cast<PrefetchStep>(kSteps)>(partition), ...);
  }(std::make_integer_sequence<int, kPrefetchSteps>());
}

template <PrefetchStep kStep>
void PartitionWorker::fetch_step(const Partition& partition) const {
  partition.engine_.fetch(kStep);
  if constexpr (kStep <= DelayLine::kLastFetch)
    for (const DelayLine* line : partition.lines_) line->fetch<kStep>(limit_ps_);
  if constexpr (kStep <= TransmitPort::kLastFetch)
    for (const TransmitPort* port : partition.ports_) port->fetch<kStep>();
  for (const Visited& visited : partition.visited_) visited.fetch(visited.object, kStep);
}

TimePs PartitionWorker::visit(Partition& partition, TimePs limit_ps) {
  Engine& engine = partition.engine_;
  if (engine.next_event_ps() <= limit_ps) {
    const uint64_t served_before = engine.events_served();
    // An event that throws does not keep the others from being served: the window is whole for everybody,
    // and the run ends after it.
    for (bool done = false; !done;) {
      try {
        engine.serve_until(limit_ps);
        done = true;
      } catch (...) {
        note_failure(partition);
      }
    }
    partition.events_in_last_visit_ = engine.events_served() - served_before;
    events_served_ += partition.events_in_last_visit_;
    latest_ps_ = std::max(latest_ps_, engine.now());
  }
  return engine.next_event_ps();
}

PartitionWorker::Deliveries& PartitionWorker::deliveries_to(const Partition& target) {
  Deliveries& deliveries = deliveries_[parity_][target.index_];
  if (deliveries.empty())
    addressed_[parity_][static_cast<size_t>(target.worker_->index_)].push_back(target.place_);
  return deliveries;
}

void PartitionWorker::deliver(Deliveries& deliveries) {
  for (size_t i = 0; i < deliveries.delay_lines.size(); ++i) {
    prefetch_ahead(deliveries.delay_lines, i);
    deliveries.delay_lines[i]->wake();
  }
  deliveries.delay_lines.clear();
  for (size_t i = 0; i < deliveries.batches.size(); ++i) {
    prefetch_ahead(deliveries.batches, i);
    deliveries.batches[i]->delay_line->take_in(*deliveries.batches[i]);
  }
  deliveries.batches.clear();
}

void PartitionWorker::deliver_sent() {
  for (auto& by_partition : deliveries_)
    for (Deliveries& deliveries : by_partition) deliver(deliveries);
}

uint64_t PartitionWorker::packets_waiting() const {
  uint64_t count = 0;
  for (const auto& by_partition : deliveries_)
    for (const Deliveries& deliveries : by_partition)
      for (const OutboxBatch* batches : deliveries.batches) count += batches->chain.size();
  return count;
}

void PartitionWorker::note_failure(const Partition& partition) {
  const TimePs time_ps = partition.engine_.now();
  const bool is_first = !failure_ || time_ps < failure_->time_ps ||
                        (time_ps == failure_->time_ps && partition.index_ < failure_->partition);
  if (is_first) failure_ = PartitionFailure{time_ps, partition.index_, std::current_exception()};
}

}  // namespace weft
