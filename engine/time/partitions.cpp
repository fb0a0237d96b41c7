#include "time/partitions.hpp"

#include <algorithm>
#include <ctime>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "packets/packet_store.hpp"
#include "time/partition.hpp"
#include "time/worker_pool.hpp"

namespace weft {

namespace {

constexpr uint64_t kWindowsPerInterruptCheck = 64;
constexpr int64_t kInterruptCheckNs = 100'000'000;
// Windows of fewer events than this are served by one thread: waking the others would take longer.
constexpr uint64_t kEventsWorthSharing = 64;

// Says for as long as it lives that there is a run.
class Running {
 public:
  explicit Running(bool& running) : running_(running), before_(std::exchange(running, true)) {}
  ~Running() { running_ = before_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  bool& running_;
  bool before_;
};

int checked_workers(int workers) {
  if (workers < 1 || workers > Partitions::kMaxWorkers)
    throw std::invalid_argument(std::to_string(workers) + " workers (1 to " +
                                std::to_string(Partitions::kMaxWorkers) + ")");
  return workers;
}

}  // namespace

Partitions::Partitions(uint64_t seed, int workers)
    : seed_(seed), worker_count_(checked_workers(workers)), depot_(std::make_shared<PacketDepot>()) {
  workers_.push_back(
      std::make_unique<PartitionWorker>(0, 1, assignments_, std::make_shared<PacketStore>(depot_)));
}

Partitions::~Partitions() {
  pool_.reset();
  // Packets under way come to their delay lines, and end with them.
  for (const auto& worker : workers_) worker->deliver_sent();
  while (!components_.empty()) components_.pop_back();
}

Engine& Partitions::add(int group) {
  if (group_ != nullptr) throw std::logic_error("a distributed run keeps its partitions");
  partitions_.push_back(std::make_unique<Partition>(*this, static_cast<uint32_t>(partitions_.size()), group,
                                                    seed_, lock_, workers_.front()->store()));
  for (const auto& worker : workers_) worker->set_partition_count(partitions_.size());
  workers_.front()->take(*partitions_.back());
  neighbours_.emplace_back();
  assigned_ = false;
  return partitions_.back()->engine();
}

void Partitions::set_workers(int workers) {
  if (checked_workers(workers) == worker_count_) return;
  if (group_ != nullptr) throw std::logic_error("a distributed run keeps its number of workers");
  worker_count_ = workers;
  assigned_ = false;
}

void Partitions::join(Engine& from, Engine& to, TimePs delay_ps) {
  if (from.partition() == nullptr || to.partition() == nullptr ||
      &from.partition()->owner() != &to.partition()->owner())
    throw std::invalid_argument("a link from one engine to another needs both to be partitions of one run");
  if (delay_ps <= 0)
    throw std::invalid_argument("a link of delay 0 between two partitions (above 0; or one partition)");
  Partitions& owner = from.partition()->owner();
  owner.window_ps_ = std::min(owner.window_ps_, delay_ps);
  ++owner.neighbours_[from.partition()->index()][to.partition()->index()];
  ++owner.neighbours_[to.partition()->index()][from.partition()->index()];
}

uint64_t Partitions::events_served() const {
  uint64_t count = 0;
  for (const auto& partition : partitions_) count += partition->engine().events_served();
  return count;
}

uint64_t Partitions::live_packets() const {
  uint64_t count = 0;
  for (const auto& partition : partitions_)
    count += partition->engine().packets().live_packets() + partition->unclaimed_packets();
  for (const auto& worker : workers_) count += worker->packets_waiting();
  return count;
}

ConservationBalance Partitions::balance() {
  deliver_outboxes();
  ConservationBalance balance;
  for (const auto& partition : partitions_)
    if (group_ == nullptr || processes_[partition->index()] == group_->process())
      balance.add(partition->engine().conservation());
  return group_ == nullptr ? balance : balance_of_all(balance);
}

void Partitions::deliver_outboxes() {
  if (group_ != nullptr) meet();
  for (const auto& worker : workers_) worker->deliver_sent();
}

void Partitions::forget_scheduled() {
  if (running_) throw std::logic_error("forget_scheduled() within a run");
  for (const auto& worker : workers_)
    for (Partition* partition : worker->take_talkative()) partition->take_hand_overs();
  one_shots_ = std::make_unique<OneShotPool>(control_);
  kept_listeners_.clear();
  alarm_ = nullptr;
}

// --- running

void Partitions::run_until(TimePs time, Engine::InterruptCheck check) {
  if (Engine::served_here() != nullptr) throw std::logic_error("a run within an event of a partition");
  Guard guard(*this);
  const Running running(running_);
  stop_requested_ = false;
  if (!assigned_) assign();
  int64_t next_check_ns = 0;
  for (uint64_t turn = 1; !stop_requested_; ++turn) {
    // Another thread waits, such as one that reads counters: it gets its turn between windows.
    if (lock_.contended()) {
      lock_.unlock();
      lock_.lock();
      if (!assigned_) assign();
    }
    if (check != nullptr && turn % kWindowsPerInterruptCheck == 0 && monotonic_now_ns() >= next_check_ns) {
      next_check_ns = monotonic_now_ns() + kInterruptCheckNs;
      check();
    }
    if (events_of_windows_ >= alarm_events_ && alarm_ != nullptr) [[unlikely]]
      std::exchange(alarm_, nullptr)();
    if (group_ != nullptr) {
      meet();
    } else {
      schedule_calls(take_hand_overs());
      look_again();
    }
    const TimePs next_ps = earliest_ps();
    const TimePs next_control_ps = control_.next_time();
    const TimePs first_ps = std::min(next_ps, next_control_ps);
    if (first_ps > time || first_ps == kNever) break;
    if (next_ps <= next_control_ps)
      // The last picosecond before a packet that is sent in this window can reach another partition.
      serve_window(std::min({next_ps + window_ps_ - 1, next_control_ps, time}));
    else
      serve_control();
  }
  if (!stop_requested_ && time != kNever) now_ = std::max(now_, time);
}

TimePs Partitions::next_event_ps() {
  Guard guard(*this);
  if (group_ != nullptr) throw std::logic_error("a distributed run knows its next event when it meets");
  if (!assigned_) assign();
  schedule_calls(take_hand_overs());
  look_again();
  return std::min(earliest_ps(), control_.next_time());
}

TimePs Partitions::earliest_ps() const {
  if (group_ != nullptr) return earliest_of_all_ps_;
  TimePs earliest_ps = kNever;
  for (const auto& worker : workers_) earliest_ps = std::min(earliest_ps, worker->earliest_ps());
  return earliest_ps;
}

void Partitions::serve_window(TimePs limit_ps) {
  limit_ps_ = limit_ps;
  ++windows_served_;
  uint64_t served = 0;
  for (const auto& worker : workers_) served -= worker->events_served();
  if (pool_ != nullptr && events_in_last_window_ >= kEventsWorthSharing)
    pool_->run_round();
  else
    for (const auto& worker : workers_) worker->serve_window(workers_, limit_ps);
  for (const auto& worker : workers_) {
    served += worker->events_served();
    // The latest event, not the window's end: what Python schedules then counts from an event's time.
    now_ = std::max(now_, worker->latest_ps());
  }
  events_in_last_window_ = served;
  events_of_windows_ += served;
  rethrow_failure();
}

void Partitions::serve_control() {
  now_ = std::max(now_, control_.next_time());
  const TimerAction action = control_.take(control_.first());
  action.function(action.object);
}

void Partitions::rethrow_failure() {
  std::optional<PartitionFailure> first;
  for (const auto& worker : workers_) {
    std::optional<PartitionFailure> failure = worker->take_failure();
    if (failure && (!first || std::tie(failure->time_ps, failure->partition) <
                                  std::tie(first->time_ps, first->partition)))
      first = std::move(failure);
  }
  if (!first) return;
  if (group_ == nullptr) std::rethrow_exception(std::move(first->exception));
  failure_ = std::make_unique<PartitionFailure>(std::move(*first));
}

std::vector<CollectedCall> Partitions::take_hand_overs() {
  std::vector<CollectedCall> calls;
  for (const auto& worker : workers_)
    for (Partition* partition : worker->take_talkative())
      for (HandOver& what : partition->take_hand_overs())
        calls.push_back({partition->index(), std::move(what)});
  return calls;
}

void Partitions::schedule_calls(std::vector<CollectedCall> calls) {
  // By time and partition, never by worker: Python's calls come in the same order with any number of workers.
  std::stable_sort(calls.begin(), calls.end(), [](const CollectedCall& a, const CollectedCall& b) {
    return std::tie(a.what.time_ps, a.partition) < std::tie(b.what.time_ps, b.partition);
  });
  for (CollectedCall& call : calls)
    // Exactly one window later, wherever windows begin: the earliest time that no partition has passed by
    // then.
    schedule_at(call.what.time_ps + window_ps_,
                [listener = std::move(call.what.listener)] { listener->call(); });
}

void Partitions::look_again() {
  for (Partition* partition : touched_) {
    partition->touched_ = false;
    partition->worker_->look_at(*partition);
  }
  touched_.clear();
}

// Which partitions each worker serves: how many timers a partition has is how many links and ports, and so
// how much happens there.
std::vector<std::vector<uint32_t>> Partitions::shares() const {
  if (group_ != nullptr) return distribution_;
  return shares_of(static_cast<size_t>(worker_count_));
}

std::vector<std::vector<uint32_t>> Partitions::shares_of(size_t most_workers) const {
  const size_t workers = std::min(most_workers, std::max<size_t>(1, partitions_.size()));
  std::map<int, Load> groups;
  std::vector<Load> single;
  std::vector<Load> whole;
  for (uint32_t index = 0; index < partitions_.size(); ++index) {
    const Load alone{partitions_[index]->engine().events().timer_count() + 1, {index}};
    single.push_back(alone);
    if (partitions_[index]->group() == kNoGroup)
      whole.push_back(alone);
    else
      groups[partitions_[index]->group()].add(alone);
  }
  for (auto& [group, load] : groups) whole.push_back(std::move(load));
  std::vector<Load> shared;
  if (!groups.empty()) shared = share_out(std::move(whole), workers);
  if (groups.empty() || !is_even(shared)) shared = share_out(join_neighbours(single, neighbours_), workers);
  // An uneven share costs more than packets that cross workers.
  if (!is_even(shared)) shared = share_out(std::move(single), workers);
  std::vector<std::vector<uint32_t>> result;
  for (Load& load : shared) result.push_back(std::move(load.partitions));
  return result;
}

void Partitions::assign() {
  pool_.reset();
  schedule_calls(take_hand_overs());
  for (const auto& worker : workers_) worker->deliver_sent();

  const std::vector<std::vector<uint32_t>> shared = own_shares();
  const auto count = static_cast<int>(shared.size());
  std::vector<std::unique_ptr<PartitionWorker>> workers;
  ++assignments_;
  for (const std::vector<uint32_t>& share : shared) {
    const auto index = static_cast<int>(workers.size());
    workers.push_back(
        std::make_unique<PartitionWorker>(index, count, assignments_, std::make_shared<PacketStore>(depot_)));
    workers.back()->set_partition_count(partitions_.size());
    for (const uint32_t partition : share) workers.back()->take(*partitions_[partition]);
  }
  workers_ = std::move(workers);
  if (group_ != nullptr) set_absent();
  if (count > 1)
    pool_ = std::make_unique<WorkerPool>(count, [this](int member) {
      workers_[static_cast<size_t>(member)]->serve_window(workers_, limit_ps_);
    });
  assigned_ = true;
}

// --- the lock

Partitions::Guard::Guard(Partitions& partitions) : partitions_(partitions) { partitions_.lock_.lock(); }
Partitions::Guard::~Guard() { partitions_.lock_.unlock(); }

}  // namespace weft
