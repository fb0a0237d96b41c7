// Fast-forward of jobs: operations that take as long each time are repeated without their packets.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collectives/operation_traffic.hpp"
#include "time/listener.hpp"
#include "time/partitions.hpp"
#include "time/time.hpp"

namespace weft {

class ScheduleExecutor;

// A port that a rank's traffic takes, by number, and at which rate at most.
struct PortUse {
  uint32_t port = 0;
  uint64_t rate_bps = 0;
};

// The ranks of operations: the members of a collective's group, or the sender and the receiver of messages.
struct FastForwardGroup {
  std::vector<uint32_t> ranks;
  std::vector<std::vector<PortUse>> ports{};  // by place
  uint32_t alike = 0;     // in groups of the same number an operation of the same variant takes as long
  TimePs latency_ps = 0;  // the part of its time that does not depend on its bytes
  bool is_message = false;
  bool may_repeat = true;  // false: it always runs, and is noted for others that share ports with it
};

// An operation as one of its ranks sees it: the rank's place in the group, the variant (the same for
// operations that do the same), and the number, which no other operation of the group has.
struct OperationPlace {
  uint32_t group = 0;
  uint32_t place = 0;
  uint64_t variant = 0;
  uint32_t number = 0;
};

#define WEFT_FAST_FORWARD_COUNTERS(STATISTIC)                                                           \
  STATISTIC(uint64_t, operations, "collectives and messages that have begun")                           \
  STATISTIC(uint64_t, repeated, "repeated without packets, from begin to end")                          \
  STATISTIC(uint64_t, resumed, "begun without packets, and ended with them: another one shared a port") \
  STATISTIC(uint64_t, compared, "run with packets, alone, and compared with an earlier one")            \
  STATISTIC(uint64_t, deviating, "of the compared ones, beyond the tolerance")                          \
  STATISTIC(uint64_t, disturbed, "run with packets, and shared a port")

struct FastForwardCounts {
  WEFT_STATISTICS(FastForwardCounts, WEFT_FAST_FORWARD_COUNTERS)
  double largest_deviation = 0;  // of the compared ones within the tolerance, or once repeated
  OperationTraffic skipped{};
};

// An operation has run alone if others left it enough of each of its ports meanwhile: if the rates of all
// that were there came to no more than the port's. Two such runs that follow one that took as long, within
// the tolerance, at every rank, show that operations of this variant in groups that are alike may be
// repeated: their ends come as long after the last begin as before. In between some run with packets again,
// to be compared: after 4, 8, 16, ... repetitions. One that deviates ends the repetition.
//
// A repeated operation that meets another one at a port sends the rest of its bytes in packets.
//
// Ranks ask from events of their partitions whether an operation is repeated. The answer is fixed beforehand,
// by numbers that no rank has begun yet, so that all ranks of an operation get the same. Everything else
// happens between windows, one window after the event that was noted, so nothing depends on workers.
class FastForward {
 public:
  // `partitions` outlive it. Throws std::invalid_argument for a tolerance that is not above 0 and below 1.
  FastForward(Partitions& partitions, double tolerance);
  FastForward(const FastForward&) = delete;
  FastForward& operator=(const FastForward&) = delete;

  // Outside of runs. The executor, of an endpoint's rank, outlives the next run. Throws
  // std::invalid_argument for an engine that is no partition of the run.
  void set_rank(uint32_t rank, Engine& engine, ScheduleExecutor& executor);
  // A port of this rate; returns its number.
  uint32_t add_port(uint64_t rate_bps);
  // Throws std::invalid_argument for ranks and ports that are not known, no ranks, and ports of more or fewer
  // places.
  uint32_t add_group(FastForwardGroup group);
  // The part of the time of a group's operations of a variant that does not depend on their bytes, in place
  // of the group's. Throws std::invalid_argument for a group that is not known.
  void set_latency(uint32_t group, uint64_t variant, TimePs latency_ps);
  // Forgets ports, groups and what has been found out, for another run; counts go on.
  void forget();
  const FastForwardCounts& counts() const { return counts_; }

  // From events of the rank: an operation begins there. Returns whether it is repeated: then nothing is to be
  // done but to wait for ScheduleExecutor::end_step() or resume_step() of this run and step.
  bool begin(const OperationPlace& at, uint64_t run, uint32_t step);
  // An operation that has run, or been repeated, is done at the rank.
  void ended(const OperationPlace& at);
  // The message has been there since this time.
  void arrived(const OperationPlace& at, TimePs time_ps);

 private:
  using InstanceKey = uint64_t;  // group and number
  struct Kind {
    bool is_known = false;
    bool is_ready = false;
    bool is_too_short = false;
    uint32_t agreeing = 0;
    uint64_t repeated = 0;
    uint64_t next_sample = 4;
    std::vector<TimePs> took_ps;            // by place, from the last begin
    std::vector<OperationTraffic> traffic;  // by place
  };
  using KindKey = std::pair<uint32_t, uint64_t>;  // alike, variant

  // From which numbers on operations of a variant are repeated or not.
  struct Plan {
    uint64_t variant;
    std::vector<std::pair<uint32_t, bool>> changes;
    bool is_sampling = false;  // the next one has packets, and those after it are repeated
  };
  struct Group {
    FastForwardGroup what;
    std::vector<uint32_t> next_numbers;  // by place: above all that have begun
    std::vector<Plan> plans;
    std::unordered_map<uint64_t, TimePs> latencies_ps;  // by variant
    bool is_repeated(uint64_t variant, uint32_t number) const;
    void change(uint64_t variant, bool repeats, bool is_sampling = false);
    bool is_sampling(uint64_t variant) const;
  };

  enum class Mode : uint8_t { kPackets, kRepeated, kResumed };
  struct Part {
    TimePs begun_ps = kNever;
    TimePs ended_ps = kNever;  // of a repeated one: is due
    bool is_over = false;
    uint64_t run = 0;
    uint32_t step = 0;
    std::optional<OperationTraffic> before;
    std::optional<OperationTraffic> traffic;
  };
  struct Instance {
    uint32_t group = 0;
    uint32_t number = 0;
    uint64_t variant = 0;
    Mode mode = Mode::kPackets;
    bool is_disturbed = false;
    uint32_t begun = 0;
    uint32_t ended = 0;
    uint32_t share = 0;  // of a resumed one: what is left
    uint64_t epoch = 0;  // of its ends
    TimePs last_begun_ps = 0;
    std::vector<Part> parts;
  };
  struct Visit {
    Instance* instance;
    uint64_t rate_bps;
  };
  struct Port {
    uint64_t rate_bps;
    std::vector<Visit> visits;
  };
  enum class What : uint8_t { kBegun, kEnded, kArrived };
  struct Note {
    What what;
    OperationPlace at;
    TimePs time_ps;
    bool is_repeated = false;
    uint64_t run = 0;
    uint32_t step = 0;
    std::unique_ptr<OperationTraffic> traffic;
  };
  // Notes of a partition's ranks since the last look at it.
  struct Log {
    std::vector<Note> notes;
    bool is_due = false;
    std::shared_ptr<const Listener> listener;
  };
  struct Rank {
    Engine* engine = nullptr;
    ScheduleExecutor* executor = nullptr;
    Log* log = nullptr;
  };

  static InstanceKey key_of(uint32_t group, uint32_t number) { return uint64_t{group} << 32 | number; }
  bool is_busy(const Group& group) const;
  Rank& rank_of(const Group& group, uint32_t place) { return ranks_[group.what.ranks[place]]; }
  Kind& kind_of(const Instance& instance);
  void add_note(Rank& rank, Note note);
  void take(Log& log);
  void take_begun(Note& note);
  void take_ended(Note& note);
  static bool is_under_way(const Instance& instance, uint32_t place);
  void occupy(Instance& instance, uint32_t place);
  void vacate(Instance& instance, uint32_t place);
  void meet(Instance& there, Instance& coming);
  void schedule_ends(Instance& instance);
  void end_due(InstanceKey key, uint64_t epoch);
  void end_at(Instance& instance, uint32_t place);
  void resume(Instance& instance);
  void resume_at(Instance& instance, uint32_t place);
  void finish(Instance& instance);
  void compare(const Instance& instance);
  void set_ready(const KindKey& key, bool repeats);
  void count_repeated(const Instance& instance);

  Partitions& partitions_;
  double tolerance_;
  FastForwardCounts counts_;
  std::vector<Rank> ranks_;
  std::map<Engine*, std::unique_ptr<Log>> logs_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Port> ports_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> alike_;  // groups
  std::map<KindKey, Kind> kinds_;
  std::unordered_map<InstanceKey, Instance> instances_;
  uint64_t last_epoch_ = 0;
  std::optional<std::pair<InstanceKey, uint32_t>> ending_;  // and its place
};

}  // namespace weft
