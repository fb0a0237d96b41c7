// Runs schedules over the queue pairs of a host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/arrivals.hpp"
#include "collectives/clear_to_send.hpp"
#include "collectives/operation_traffic.hpp"
#include "collectives/schedule_progress.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_request.hpp"
#include "memory/flat_map.hpp"
#include "observe/probe.hpp"
#include "time/engine.hpp"
#include "time/time.hpp"

namespace weft {

class AggregationClient;
class WritingQueuePair;
class ScaleUpChannel;

enum class RunState : uint8_t { kWaiting, kRunning, kFinished, kFailed, kCancelled };
const char* run_state_name(RunState state);

// What became of a schedule.
struct RunStatus {
  RunState state = RunState::kWaiting;
  TimePs started_ps = kNever;
  TimePs finished_ps = kNever;
  uint32_t nodes_done = 0;
  uint32_t node_count = 0;
  std::string error;  // why it failed
};

// A WRITE of a schedule that its peer has acknowledged.
struct WriteRecord {
  uint32_t node = 0;
  TimePs posted_ps = 0;
  TimePs completed_ps = 0;
  uint64_t retransmitted_packets = 0;
};

struct StartOptions {
  uint64_t number = 0;       // of the run; 0: the next one
  bool keep_writes = false;  // see ScheduleExecutor::writes()
};

// A message to this queue pair, or scale-up channel, of the peer.
struct SentMessage {
  uint32_t queue_pair = 0;
  uint32_t immediate = 0;
};

// Copies of a message between accelerators and host memory, chunk by chunk while others are under way: what
// is left alone is the first chunk before it is sent, and the last one after it has come.
struct ChunkCopies {
  TimePs latency_ps = 0;
  uint64_t chunk_bytes = 0;  // 0: there are none
  BitRate rate{};            // at which both chunks take the time that they do one after the other

  TimePs alone_ps(uint64_t bytes) const {
    return chunk_bytes == 0 ? 0 : latency_ps + rate.serialisation_ps(std::min(bytes, chunk_bytes));
  }
};

// Takes the completions of all queue pairs that were made with it as their handler. A run is finished when
// all its steps are done; it fails as a whole with the first of its steps that fails. All calls under the
// engine's lock.
class ScheduleExecutor : public CompletionHandler {
 public:
  explicit ScheduleExecutor(Engine& engine);
  ~ScheduleExecutor() override;
  ScheduleExecutor(const ScheduleExecutor&) = delete;
  ScheduleExecutor& operator=(const ScheduleExecutor&) = delete;

  // Make a queue pair known, and return the number by which schedules name it. It outlives the executor or is
  // removed. Steps learn of what arrives `step_latency_ps` later: the time that a protocol takes to see it
  // and to go on. Throws std::invalid_argument if a channel of that number of queue pair is known, and for a
  // negative latency.
  uint32_t add_channel(WritingQueuePair& queue_pair, TimePs step_latency_ps = 0);
  // Messages that arrive over a channel, and data of its READs, are copied by way of host memory: steps learn
  // of them later.
  void set_copies(uint32_t channel, const ChunkCopies& copies) { channels_.at(channel).copies = copies; }
  // The same of a channel between ranks of a host; its number counts as a queue pair's.
  uint32_t add_scale_up_channel(ScaleUpChannel& scale_up, TimePs step_latency_ps = 0);
  // What arrives over one channel, `over`, arrives over another: messages to a rank of another rail go out
  // over scale-up links and come in by a queue pair (ScaleUpRelay). Throws std::invalid_argument for channels
  // that are not there, and for one that carries another's messages.
  void receive_over(uint32_t channel, uint32_t over);
  uint32_t add_aggregator(AggregationClient& client);
  // Forgets a channel; arrivals on it that nobody waited for are forgotten, too. Steps that name it fail.
  void remove_channel(uint32_t channel);
  void remove_aggregator(uint32_t aggregator);
  // Another client does what one did: schedules name it by the same number. Throws std::invalid_argument for
  // an unknown number.
  void replace_aggregator(uint32_t aggregator, AggregationClient& client);

  // A channel whose plane is lost goes on over others, in three steps (channel_detours.cpp):
  // Stops a channel's queue pair, which is to be detached, and keeps what its peer has not acknowledged, and
  // what is posted from now on. Returns how many messages have arrived over it. Throws std::invalid_argument
  // for a channel without a queue pair.
  uint64_t suspend(uint32_t channel);
  // Has other channels carry, in turn, what a suspended one would: what is kept, but for what the peer has
  // received (`peer_received` messages in all), and all that follows. What arrives over them arrives over it.
  // Throws std::invalid_argument if it is not suspended, or for channels that cannot stand for it.
  void detour(uint32_t channel, const std::vector<uint32_t>& over, uint64_t peer_received);
  // Has a new queue pair carry what is posted to a channel from now on. What others carry for it still
  // arrives.
  void resume(uint32_t channel, WritingQueuePair& queue_pair);

  // Has the receivers of a channel's messages clear them first, over a channel of their own, at both ends
  // (see clear_to_send.cpp). Throws std::invalid_argument for settings out of range, for channels without
  // queue pairs, and for ones that have it already.
  void clear_to_send(uint32_t channel, uint32_t clearances, const ClearToSendConfig& config);
  const ClearToSendCounters& clear_to_send_counters() const { return clear_to_send_counters_; }

  // Starts a schedule at `start_ps` (now, if that is past) and returns the number of the run: the given one,
  // or one that none has had (from 1). Throws std::invalid_argument if it names a channel or aggregator that
  // does not exist, or if there is a run of that number.
  uint64_t start(std::shared_ptr<const RunnableSchedule> schedule, TimePs start_ps,
                 const StartOptions& options = {});
  // Throws std::invalid_argument for an unknown run.
  const RunStatus& status(uint64_t run) const;
  // Those acknowledged so far, in that order, of a run that was started to keep them. Throws as status().
  const std::vector<WriteRecord>& writes(uint64_t run) const;
  // Starts nothing of the run any more. What its queue pairs already have completes unheeded.
  void cancel(uint64_t run);
  // Forgets a run that has ended. Its schedule is released once no queue pair works on its buffers any more.
  // Throws std::logic_error if it has not ended.
  void forget(uint64_t run);

  // Every step of the runs that start from now on is recorded as this rank's; null ends it.
  void observe(Probe* probe, int32_t rank) {
    probe_ = probe;
    rank_ = rank;
  }

  // Called, on the engine's thread, when a run ends.
  void set_end_callback(std::function<void(uint64_t run)> callback) { end_callback_ = std::move(callback); }

  // Calls that back for a run that is not the executor's, of an owner that several executors share.
  void report_end(uint64_t run) {
    if (end_callback_) end_callback_(run);
  }

  void on_completion(const Completion& completion) override;

  // For FastForward, between windows. A step of a running run is done without having run:
  void end_step(uint64_t run, uint32_t step);
  // Does the share of a step that is left.
  void resume_step(uint64_t run, uint32_t step, uint32_t share);
  // Bytes that a step would send, by the peers' numbers of queue pairs; and at the peer: notes that they have
  // arrived.
  std::vector<SentMessage> messages_of(uint64_t run, uint32_t step) const;
  void deliver(const SentMessage& message);
  // Counters of a step's channels, or of those with these numbers; and adds to them.
  OperationTraffic traffic_of(uint64_t run, uint32_t step) const;
  OperationTraffic traffic_of(const std::vector<SentMessage>& messages) const;
  void add_traffic(uint64_t run, uint32_t step, const OperationTraffic& traffic);
  void add_traffic(const std::vector<SentMessage>& messages, const OperationTraffic& traffic);

 private:
  class Run;
  // The step of a run that another one is, and the kind of traffic of its transfers.
  struct PartOf {
    uint64_t run;
    uint32_t step;
    uint8_t traffic_kind;
  };
  // Parts of runs have numbers from here on, runs those below.
  static constexpr uint64_t kFirstPart = uint64_t{1} << 31;
  static constexpr uint64_t kPartLimit = (uint64_t{1} << 32) - 1;
  // In place of a run's number, of work requests that are clearances.
  static constexpr uint64_t kClearances = kPartLimit;
  // Of a channel, with one added.
  struct Place {
    uint32_t plus_one = 0;
    explicit operator bool() const { return plus_one != 0; }
    uint32_t number() const { return plus_one - 1; }
  };
  // Of a channel that has been suspended.
  struct Detour {
    std::vector<RcRequest> kept;   // posted, and under way nowhere
    uint64_t completed = 0;        // of what its queue pair was given, before
    std::vector<uint32_t> over{};  // channels, in turn
    size_t next = 0;               // of those
  };
  // Over a queue pair, a scale-up channel or a detour; none of them once it has been removed.
  struct Channel {
    WritingQueuePair* queue_pair = nullptr;
    ScaleUpChannel* scale_up = nullptr;
    uint32_t number = 0;
    Arrivals arrivals{};
    TimePs step_latency_ps = 0;
    ChunkCopies copies{};
    TimePs seen_ps = 0;                         // when steps have learnt of all that came, with copies
    uint64_t id = 0;                            // from 1; no other channel has had it
    uint64_t received = 0;                      // messages, over its queue pair
    std::unique_ptr<Detour> detour{};           // once it has been suspended
    std::optional<uint32_t> stands_for{};       // the channel whose messages it carries, if not its own
    std::unique_ptr<ClearingState> clearing{};  // if its messages are to be cleared
    std::optional<uint32_t> clears{};           // the channel whose clearances it carries
    bool is_removed() const { return queue_pair == nullptr && scale_up == nullptr && detour == nullptr; }
  };

  uint32_t insert(Channel channel);
  void post(uint32_t channel, RcRequest request);
  void flush(const RcRequest& request);
  void clear_first(Run& run);
  void clear_more(uint32_t channel, uint32_t tag, uint64_t messages);
  void submit(uint32_t channel, RcRequest request, bool may_cut);
  void send_or_hold(uint32_t channel, RcRequest request);
  void cleared(uint32_t channel, uint32_t immediate);
  void no_longer_held(size_t messages);
  bool take_clearing(uint32_t channel, uint32_t immediate);
  void clearance_done(const Completion& completion, uint64_t run);
  void end_clearing(const Run& run);
  std::vector<RcRequest> stop_clearing(uint32_t channel);
  Run& run_at(uint64_t number);
  const Run& run_at(uint64_t number) const;
  Run* running(uint64_t number);
  void begin(uint64_t number);
  void start_part(const PartOf& part_of, const std::shared_ptr<const RunnableSchedule>& schedule,
                  uint32_t run_tag, uint32_t share);
  void part_ended(const Run& part);
  void cancel_parts(uint64_t number);
  void forget_parts(uint64_t number);
  void release_ended_parts();
  void advance(Run& run);
  std::vector<uint32_t> channels_of(const std::vector<SentMessage>& messages) const;
  OperationTraffic traffic_over(const std::vector<uint32_t>& channels) const;
  void add_over(const std::vector<uint32_t>& channels, const OperationTraffic& traffic);
  void queue_pair_done(const Completion& completion);
  void read_done(const Completion& completion);
  void arrived(const Completion& completion);
  void seen(uint32_t channel, uint32_t immediate);
  ConnectionEnds ends_of(uint32_t channel) const;
  void fail(Run& run, uint32_t step, const std::string& reason);
  void fail(Run& run, const std::string& error);
  void forget_waiters(uint64_t run);
  void end(Run& run, RunState state);

  Engine& engine_;
  std::vector<Channel> channels_;
  FlatMap<uint32_t, Place> channel_of_queue_pair_;
  std::vector<AggregationClient*> aggregators_;
  std::unordered_map<uint64_t, std::unique_ptr<Run>> runs_;
  uint64_t next_channel_id_ = 1;
  uint64_t next_run_ = 1;
  uint64_t next_part_ = kFirstPart;
  std::vector<uint64_t> ended_parts_;  // not erased yet
  size_t clearing_channels_ = 0;
  size_t held_now_ = 0;  // messages that are not cleared
  TimePs stalled_since_ps_ = 0;
  ClearToSendCounters clear_to_send_counters_;
  std::function<void(uint64_t)> end_callback_;
  Probe* probe_ = nullptr;
  int32_t rank_ = -1;
};

}  // namespace weft
