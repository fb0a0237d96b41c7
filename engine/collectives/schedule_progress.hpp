// What runs a schedule: it says step by step what is to be done, and learns when it is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/aggregation_parts.hpp"
#include "collectives/reduction.hpp"
#include "hosts/switched_write.hpp"
#include "time/time.hpp"

namespace weft {

// The order is that of a step's kind in records.
enum class StepKind : uint8_t { kWrite, kWait, kReduce, kCopy, kAggregate, kDelay, kRead };

// What a record says of a step. `channel` counts where the step goes through one.
struct StepNote {
  uint32_t step = 0;
  StepKind kind = StepKind::kWrite;
  std::optional<uint32_t> channel;
  uint64_t length_bytes = 0;
  TimePs start_ps = 0;
};

// RDMA WRITE. Null source: zeros, which travel as their number where `as_length`.
struct WriteRequest {
  uint32_t channel = 0;
  const uint8_t* source = nullptr;
  uint64_t length_bytes = 0;
  bool as_length = false;
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  std::optional<uint32_t> immediate;
  uint8_t traffic_kind = 0;  // see Packet::traffic_kind
  SwitchedWrite switched{};  // over scale-up channels
};

// RDMA READ of the peer's memory. Null target: what comes is discarded; its payload travels as its number
// where `as_length`.
struct ReadRequest {
  uint32_t channel = 0;
  uint8_t* target = nullptr;
  uint64_t length_bytes = 0;
  bool as_length = false;
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  uint8_t traffic_kind = 0;  // of its responses, too
};

struct ReduceRequest {
  uint8_t* destination = nullptr;
  const uint8_t* source = nullptr;
  uint64_t length_bytes = 0;
  DataType dtype = DataType::kInt32;
  ReduceOperation operation = ReduceOperation::kSum;
};

struct AggregateRequest {
  uint32_t aggregator = 0;
  uint8_t* data = nullptr;
  uint64_t length_bytes = 0;
  DataType dtype = DataType::kInt32;
  ReduceOperation operation = ReduceOperation::kSum;
  std::vector<AggregationPart> parts;
};

// All of a step's bytes, of which a resumed one has a share left.
constexpr uint32_t kWholeShare = 1u << 16;
inline uint64_t share_of(uint64_t length_bytes, uint32_t share) {
  if (share == kWholeShare || length_bytes == 0) [[likely]]
    return length_bytes;
  const auto left = static_cast<uint64_t>(static_cast<unsigned __int128>(length_bytes) * share / kWholeShare);
  return left == 0 ? 1 : left;
}

// A message of a step: over which channel, and its immediate.
struct StepMessage {
  uint32_t channel = 0;
  uint32_t immediate = 0;
};

// A message that a step waits for, and how long it is.
struct ExpectedMessage {
  uint32_t channel = 0;
  uint32_t immediate = 0;
  uint64_t length_bytes = 0;
};

class RunnableSchedule;

// What a schedule can have done. A *step* is its number within the run; a *token* is what the schedule wants
// to have back when there is more to do. What is asked for first is done first.
class StepActions {
 public:
  virtual ~StepActions() = default;

  virtual TimePs now() const = 0;
  // Calls ScheduleProgress::proceed(token) when all that was made ready before has proceeded.
  virtual void make_ready(uint32_t token) = 0;
  // Calls completed(step) when the peer has acknowledged it.
  virtual void write(uint32_t step, const WriteRequest& request) = 0;
  // Calls completed(step) when all of it is there.
  virtual void read(uint32_t step, const ReadRequest& request) = 0;
  // Returns when a write with this immediate arrived over the channel; none: calls received(token) when it
  // has.
  virtual std::optional<TimePs> receive(uint32_t step, uint32_t channel, uint32_t immediate,
                                        uint32_t token) = 0;
  virtual void reduce(uint32_t step, const ReduceRequest& request) = 0;
  virtual void copy(uint32_t step, uint8_t* destination, const uint8_t* source, uint64_t length_bytes) = 0;
  // All-reduces in the network; calls completed(step) when the result is there.
  virtual void aggregate(uint32_t step, const AggregateRequest& request) = 0;
  // Calls delay_over(token) after that time.
  virtual void delay(uint32_t step, TimePs duration_ps, uint32_t token) = 0;
  // Runs another schedule, whose transfers have this tag and are of this kind of traffic, beside this one;
  // calls completed(step) when it is done. If it fails, so does this one. Only `share` of each of its writes
  // is sent.
  virtual void run_part(uint32_t step, const std::shared_ptr<const RunnableSchedule>& schedule,
                        uint32_t run_tag, uint8_t traffic_kind, uint32_t share) = 0;

  virtual bool is_recording() const = 0;
  // Where steps are recorded: what the step is. It ends with done().
  virtual void begun(const StepNote& note) = 0;
  virtual void done(uint32_t step, TimePs end_ps) = 0;
  // A step of nothing, which counts and is not recorded.
  virtual void skipped(uint32_t step) = 0;
};

// How far a run of a schedule is.
class ScheduleProgress {
 public:
  virtual ~ScheduleProgress() = default;

  virtual void begin(StepActions& actions) = 0;
  virtual bool is_done() const = 0;

  virtual void proceed(StepActions& actions, uint32_t token) = 0;
  virtual void received(StepActions& actions, uint32_t token) = 0;
  virtual void delay_over(StepActions& actions, uint32_t token) = 0;
  virtual void completed(StepActions& actions, uint32_t step) = 0;

  // For clear-to-send: all messages that the run waits for, and whether it knows how long they are.
  virtual void each_receive(const std::function<void(const ExpectedMessage&)>&) const {}
  virtual bool has_lengths() const { return false; }

  // For steps that fast-forward repeats (see FastForward); schedules that it does not know do nothing.
  // Has the rest of the step done after all.
  virtual void resume(StepActions&, uint32_t, uint32_t) {}
  // What it sends to a peer, and over which channels it has all that it sends or receives.
  virtual std::vector<StepMessage> messages_of_step(uint32_t) const { return {}; }
  virtual std::vector<uint32_t> channels_of_step(uint32_t) const { return {}; }
};

// What an executor runs: bound to the buffers and channels of a rank, unchanged by runs.
class RunnableSchedule {
 public:
  virtual ~RunnableSchedule() = default;

  virtual uint32_t step_count() const = 0;
  virtual uint32_t channel_limit() const = 0;     // above every channel named
  virtual uint32_t aggregator_limit() const = 0;  // above every aggregator named
  // Those that it sends or receives over, each once; none if it does not say.
  virtual std::vector<uint32_t> channels() const { return {}; }
  // Of a run; the schedule outlives it.
  // With a tag, that takes the place of its own in the immediates of transfers.
  virtual std::unique_ptr<ScheduleProgress> new_progress(std::optional<uint32_t> run_tag) const = 0;
};

}  // namespace weft
