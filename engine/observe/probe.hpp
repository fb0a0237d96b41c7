// What a run is observed by: one probe an engine, which records what the engine's components report. An
// engine without a probe records nothing, and costs its components a look at a null pointer at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "observe/column_table.hpp"
#include "observe/packet_conservation.hpp"
#include "packets/roce_formats.hpp"
#include "time/engine.hpp"
#include "time/time.hpp"

namespace weft {

class PortSampler;
class TransmitPort;

// A NIC drops for its own reasons (NicDrop), and for what a frame that does not parse is (roce::ParseError).
constexpr size_t kFirstParseErrorDrop = 64;
// By code: "queue full", "link lost", "switch pass_limit", "nic foreign_mac", ... for all that there are.
std::vector<std::pair<int64_t, std::string>> drop_names();
// The drops among them that statistics count: names by statistic, by the statistics' type in Python.
std::map<std::string, std::map<std::string, std::string>> counted_drops();

// Ranks and plane of a connection, as its records name it.
struct ConnectionEnds {
  int32_t source = -1;
  int32_t destination = -1;
  int32_t plane = -1;
};

// A message that its sender knows to have arrived (or to have failed).
struct MessageRecord {
  ConnectionEnds ends;
  uint64_t id = 0;  // the run's number in the upper half, the step's in the lower
  uint64_t length_bytes = 0;
  TimePs posted_ps = 0;
  TimePs completed_ps = 0;
  uint64_t retransmitted_packets = 0;
  int64_t status = 0;  // CompletionStatus
};

// A node of a schedule, from when it could begin until it was done.
struct StepRecord {
  int32_t rank = -1;
  uint64_t run = 0;
  uint32_t node = 0;
  int64_t kind = 0;  // index in NodeContent
  ConnectionEnds ends;
  uint64_t length_bytes = 0;
  TimePs start_ps = 0;
  TimePs end_ps = 0;
};

class Probe {
 public:
  static constexpr size_t kRowLimit = 20'000'000;

  explicit Probe(Engine& engine, size_t row_limit = kRowLimit);
  virtual ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Drops and pauses of this component are recorded under `place`; those of a component without are not.
  void watch(const void* component, int64_t place) { places_[component] = place; }

  void dropped(const void* component, DropPlace kind, size_t reason, uint64_t size_bytes, int priority_class);
  void paused(const void* component, int priority_class, TimePs begin_ps, TimePs end_ps);
  void message_completed(const MessageRecord& record);
  // One row per hop of the stack.
  void telemetry_arrived(TimePs now, const ConnectionEnds& ends, uint32_t psn, const roce::IntStack& stack);
  void step_done(const StepRecord& record);

  // Begins to sample ports, at every multiple of the interval. Throws std::invalid_argument for an interval
  // below 1, std::logic_error where it has begun.
  void start_sampling(TimePs interval_ps);
  // The port's queues and what it has sent become series of this place. Throws std::logic_error before
  // start_sampling().
  void sample(const TransmitPort& port, int64_t place);

  // Samples ports up to a time up to which all events have been served (the engine's now, if that is later).
  void catch_up(TimePs until_ps);
  // Every table by its name.
  struct NamedTable {
    const char* name;
    ColumnTable* table;
  };
  std::vector<NamedTable> tables();

 private:
  Engine& engine_;
  std::unordered_map<const void*, int64_t> places_;
  ColumnTable drops_;
  ColumnTable pauses_;
  ColumnTable flows_;
  ColumnTable telemetry_;
  ColumnTable steps_;
  ColumnTable queues_;
  std::unique_ptr<PortSampler> sampler_;
};

}  // namespace weft
