// A virtual run in partitions: engines of one clock that are served apart, by one thread or several, with
// the same outcome.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "observe/packet_conservation.hpp"
#include "time/engine.hpp"
#include "time/event_queue.hpp"
#include "time/fair_lock.hpp"
#include "time/listener.hpp"
#include "time/load_sharing.hpp"
#include "time/one_shot.hpp"
#include "time/process_group.hpp"
#include "time/time.hpp"

namespace weft {

class DelayLine;
class PacketDepot;
class Partition;
class PartitionWorker;
class WorkerPool;
struct CollectedCall;
struct PartitionFailure;

// Conservative parallel simulation (Chandy and Misra 1979; windows as in Nicol's YAWNS, 1993): partitions
// meet only through links, and the shortest propagation delay of a link between two of them is the
// look-ahead. From the earliest event on, a window of that length can be served in each partition without
// regard to the others, because nothing that happens in it reaches another partition before its end.
//
// Order of events is (time, arrivals from links in the order of the links, then first scheduled first
// served) within a partition. No component of one partition may touch one of another. Hence the outcome
// depends neither on the number of workers nor on where windows begin and end.
//
// A run may be distributed over processes (distribute()): each has all partitions and serves some, with its
// own workers. Whoever drives it does the same in all processes; what differs are the partitions' events.
//
// Control events (schedule_at()) are served between windows, after all events of their time; they may touch
// everything. What an event hands over to the outside (Engine::hand_over()) becomes a control event one
// window's length later.
class Partitions {
 public:
  // With no shorter look-ahead, windows are this long.
  static constexpr TimePs kLongestWindowPs = 1'000'000;
  static constexpr int kMaxWorkers = 256;

  // Throws std::invalid_argument for a number of workers outside 1 to 256.
  explicit Partitions(uint64_t seed = 0, int workers = 1);
  ~Partitions();
  Partitions(const Partitions&) = delete;
  Partitions& operator=(const Partitions&) = delete;

  // The group of a partition that is of none.
  static constexpr int kNoGroup = -1;

  // A new partition's engine. It lives as long as this. Partitions of one group have their traffic with each
  // other, as a plane's switches do: one worker serves them all, where groups can be shared out evenly.
  Engine& add(int group = kNoGroup);
  size_t count() const { return partitions_.size(); }
  uint64_t seed() const { return seed_; }
  int workers() const { return worker_count_; }
  // From the next run on. Throws std::logic_error for a run that is distributed.
  void set_workers(int workers);
  // Which partitions, by number, each of the workers serves; of all processes, one after the other.
  std::vector<std::vector<uint32_t>> shares() const;

  // Has this process serve its share of the partitions from now on. All that is there already must have come
  // about alike in all processes. Throws std::invalid_argument for a process that is not among the count,
  // std::logic_error if there has been a run.
  void distribute(int process, int process_count, ProcessGroup::Exchange exchange);
  // Which process serves a partition; 0 in a run that is not distributed.
  int process_of(uint32_t partition) const;
  // Gives every process what delay lines of the others' partitions have counted. All must call it.
  void agree_on_delay_lines();

  // Between windows: of the last event or control event served, or where a run_until() ended.
  TimePs now() const { return now_; }
  // Of the next event or control event; kNever without one. Between windows.
  TimePs next_event_ps();
  // How long windows are now.
  TimePs window_ps() const { return window_ps_; }
  uint64_t windows_served() const { return windows_served_; }
  uint64_t events_served() const;
  uint64_t live_packets() const;
  // Of all partitions, between windows. Of a distributed run all processes must call it.
  ConservationBalance balance();
  // Brings what is on its way from one partition to another to its delay lines: sooner than the next window
  // does, for the same outcome. Between windows.
  void deliver_outboxes();

  // Calls callable() at time (now() if that is past), between windows. Not from events of partitions.
  template <class Callable>
  void schedule_at(TimePs time, Callable&& callable) {
    one_shots_->schedule(time < now_ ? now_ : time, std::forward<Callable>(callable));
  }

  // Calls `call` between windows, once this many events have been served from now on. There is one such call
  // at a time: it replaces the one before. The moment depends on where windows end, so the call must not
  // change any outcome.
  void after_events(uint64_t events, std::function<void()> call) {
    alarm_events_ = events_of_windows_ + events;
    alarm_ = std::move(call);
  }

  // Drops the calls that were scheduled or handed over and have not been made, and with them what they keep
  // alive: for who has run this for the last time. Throws std::logic_error within a run.
  void forget_scheduled();

  // As Engine's. What an event throws is thrown when its window has been served.
  void run_until(TimePs time, Engine::InterruptCheck check = nullptr);
  void run(Engine::InterruptCheck check = nullptr) { run_until(kNever, check); }
  // Makes the run in progress return after the present control event or window.
  void request_stop() { stop_requested_ = true; }

  // Holds the lock that all partitions share. Recursive.
  class Guard {
   public:
    explicit Guard(Partitions& partitions);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Partitions& partitions_;
  };

  // --- for engines and links

  // The engine destroys no component itself: links of one partition end in another.
  void adopt(std::shared_ptr<void> component) { components_.push_back(std::move(component)); }
  // Throws std::invalid_argument unless both engines are partitions of the same run and the delay is above 0.
  static void join(Engine& from, Engine& to, TimePs delay_ps);
  void touched(Partition& partition) { touched_.push_back(&partition); }
  std::shared_ptr<const Listener> add_listener(std::function<void()> call);
  // In a distributed run replaces numbers by those of the process that serves the partition; all must call
  // it.
  void share(const Partition& partition, std::vector<uint64_t>& numbers);
  // A delay line between two partitions; result: its number.
  uint32_t add_line(DelayLine& line);

 private:
  void assign();
  std::vector<std::vector<uint32_t>> shares_of(size_t most_workers) const;
  std::vector<std::vector<uint32_t>> own_shares() const;
  void set_absent();
  std::vector<CollectedCall> take_hand_overs();
  void schedule_calls(std::vector<CollectedCall> calls);
  void look_again();
  void meet();
  ConservationBalance balance_of_all(const ConservationBalance& own);
  void send_remote();
  void take_packets(const std::string& message);
  void drop_listeners();
  void rethrow_failure_of_any(const ProcessReport& latest);
  TimePs earliest_ps() const;
  void serve_window(TimePs limit_ps);
  void serve_control();
  void rethrow_failure();

  uint64_t seed_;
  int worker_count_;
  FairLock lock_;
  TimePs now_ = 0;
  TimePs window_ps_ = kLongestWindowPs;
  TimePs limit_ps_ = 0;  // of the window being served
  uint64_t windows_served_ = 0;
  uint64_t events_in_last_window_ = 0;
  uint64_t events_of_windows_ = 0;
  uint64_t alarm_events_ = 0;
  std::function<void()> alarm_;
  EventQueue control_;
  std::unique_ptr<OneShotPool> one_shots_ = std::make_unique<OneShotPool>(control_);
  std::atomic<bool> stop_requested_{false};

  std::shared_ptr<PacketDepot> depot_;
  std::vector<std::unique_ptr<PartitionWorker>> workers_;
  std::vector<std::unique_ptr<Partition>> partitions_;
  NeighbourLoads neighbours_;
  bool assigned_ = false;
  bool running_ = false;
  uint32_t assignments_ = 1;
  std::unique_ptr<WorkerPool> pool_;
  std::vector<Partition*> touched_;
  std::vector<std::shared_ptr<void>> components_;
  Listeners listeners_;
  // Of a distributed run: other processes may have called them before they were dropped, and say so at the
  // next meeting.
  std::vector<std::shared_ptr<const Listener>> kept_listeners_;
  size_t most_kept_listeners_ = 0;  // before those are dropped that nobody else keeps

  std::vector<DelayLine*> lines_;
  std::unique_ptr<ProcessGroup> group_;              // null unless distributed
  std::vector<std::vector<uint32_t>> distribution_;  // shares() as it was then
  std::vector<int> processes_;                       // of the partitions
  std::unique_ptr<PartitionWorker> absent_;          // has what others serve
  std::unique_ptr<PartitionFailure> failure_;        // for the next meeting
  TimePs earliest_of_all_ps_ = kNever;               // as of the last meeting
};

}  // namespace weft
