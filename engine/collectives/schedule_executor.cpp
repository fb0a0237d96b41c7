#include "collectives/schedule_executor.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "collectives/executor_run.hpp"
#include "hosts/scale_up.hpp"
#include "hosts/writing_queue_pair.hpp"

namespace weft {

const char* run_state_name(RunState state) {
  switch (state) {
    case RunState::kWaiting:
      return "waiting";
    case RunState::kRunning:
      return "running";
    case RunState::kFinished:
      return "finished";
    case RunState::kFailed:
      return "failed";
    case RunState::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

ScheduleExecutor::ScheduleExecutor(Engine& engine) : engine_(engine) {}

ScheduleExecutor::~ScheduleExecutor() = default;

uint32_t ScheduleExecutor::add_channel(WritingQueuePair& queue_pair, TimePs step_latency_ps) {
  return insert({.queue_pair = &queue_pair,
                 .number = queue_pair.config().queue_pair,
                 .step_latency_ps = step_latency_ps});
}

uint32_t ScheduleExecutor::add_scale_up_channel(ScaleUpChannel& scale_up, TimePs step_latency_ps) {
  return insert({.scale_up = &scale_up, .number = scale_up.number(), .step_latency_ps = step_latency_ps});
}

void ScheduleExecutor::receive_over(uint32_t channel, uint32_t over) {
  for (const uint32_t each : {channel, over}) {
    if (each >= channels_.size() || channels_[each].is_removed() || channels_[each].stands_for) {
      throw std::invalid_argument("channel " + std::to_string(over) + " cannot receive for channel " +
                                  std::to_string(channel));
    }
  }
  channels_[over].stands_for = channel;
}

uint32_t ScheduleExecutor::insert(Channel channel) {
  if (channel.step_latency_ps < 0) {
    throw std::invalid_argument("step latency of " + std::to_string(channel.step_latency_ps) +
                                " ps (valid: 0 or more)");
  }
  channel.id = next_channel_id_++;
  const auto place = static_cast<uint32_t>(channels_.size());
  if (!channel_of_queue_pair_.emplace(channel.number, {place + 1})) {
    throw std::invalid_argument("queue pair " + std::to_string(channel.number) + " is a channel already");
  }
  channels_.push_back(std::move(channel));
  return place;
}

uint32_t ScheduleExecutor::add_aggregator(AggregationClient& client) {
  aggregators_.push_back(&client);
  return static_cast<uint32_t>(aggregators_.size() - 1);
}

void ScheduleExecutor::remove_channel(uint32_t channel) {
  if (channel >= channels_.size()) return;
  const Channel& removed = channels_[channel];
  if (removed.is_removed()) return;
  if (removed.queue_pair != nullptr || removed.scale_up != nullptr)
    channel_of_queue_pair_.erase(removed.number);
  for (Channel& other : channels_) {
    if (other.stands_for == channel) other.stands_for.reset();
  }
  const std::vector<RcRequest> kept =
      removed.detour ? std::move(removed.detour->kept) : std::vector<RcRequest>();
  const std::vector<RcRequest> held = stop_clearing(channel);
  channels_[channel] = Channel();
  for (const RcRequest& request : held) flush(request);
  for (const RcRequest& request : kept) flush(request);
  // Schedules that have not ended may still name the places of channels that are gone.
  while (runs_.empty() && !channels_.empty() && channels_.back().is_removed()) channels_.pop_back();
}

void ScheduleExecutor::remove_aggregator(uint32_t aggregator) {
  if (aggregator < aggregators_.size()) aggregators_[aggregator] = nullptr;
}

void ScheduleExecutor::replace_aggregator(uint32_t aggregator, AggregationClient& client) {
  if (aggregator >= aggregators_.size() || aggregators_[aggregator] == nullptr) {
    throw std::invalid_argument("no aggregator " + std::to_string(aggregator));
  }
  aggregators_[aggregator] = &client;
}

uint64_t ScheduleExecutor::start(std::shared_ptr<const RunnableSchedule> schedule, TimePs start_ps,
                                 const StartOptions& options) {
  if (schedule->channel_limit() > channels_.size() || schedule->aggregator_limit() > aggregators_.size()) {
    throw std::invalid_argument(
        "schedule names channel " + std::to_string(int64_t{schedule->channel_limit()} - 1) +
        " and aggregator " + std::to_string(int64_t{schedule->aggregator_limit()} - 1) + " (valid: below " +
        std::to_string(channels_.size()) + " and " + std::to_string(aggregators_.size()) + ")");
  }
  const uint64_t number = options.number != 0 ? options.number : next_run_;
  if (runs_.contains(number)) {
    throw std::invalid_argument("run " + std::to_string(number) + " exists already (forget it first)");
  }
  if (number >= kFirstPart) {
    throw std::invalid_argument("run " + std::to_string(number) + " (valid: 1 to " +
                                std::to_string(kFirstPart - 1) + ")");
  }
  next_run_ = std::max(next_run_, number + 1);
  auto run = std::make_unique<Run>(*this, number, std::move(schedule));
  run->keep_writes = options.keep_writes;
  runs_.emplace(number, std::move(run));
  engine_.schedule_at(start_ps, [this, number] { begin(number); });
  return number;
}

ScheduleExecutor::Run& ScheduleExecutor::run_at(uint64_t number) {
  return const_cast<Run&>(std::as_const(*this).run_at(number));
}

const ScheduleExecutor::Run& ScheduleExecutor::run_at(uint64_t number) const {
  const auto found = runs_.find(number);
  if (found == runs_.end() || found->second->forgotten) {
    throw std::invalid_argument("no run " + std::to_string(number));
  }
  return *found->second;
}

// Null for one that has ended, or that there is not.
ScheduleExecutor::Run* ScheduleExecutor::running(uint64_t number) {
  const auto found = runs_.find(number);
  return found != runs_.end() && found->second->is_in(RunState::kRunning) ? found->second.get() : nullptr;
}

const RunStatus& ScheduleExecutor::status(uint64_t run) const { return run_at(run).status; }

const std::vector<WriteRecord>& ScheduleExecutor::writes(uint64_t run) const { return run_at(run).writes; }

void ScheduleExecutor::cancel(uint64_t number) {
  Run& run = run_at(number);
  if (!run.has_ended()) end(run, RunState::kCancelled);
}

void ScheduleExecutor::forget(uint64_t number) {
  Run& run = run_at(number);
  if (!run.has_ended()) {
    throw std::logic_error("run " + std::to_string(number) + " has not ended (cancel it first)");
  }
  forget_parts(number);
  run.forgotten = true;
  if (run.posted == 0) runs_.erase(number);
}

void ScheduleExecutor::begin(uint64_t number) {
  const auto found = runs_.find(number);
  if (found == runs_.end() || !found->second->is_in(RunState::kWaiting)) return;  // cancelled
  Run& run = *found->second;
  run.status.state = RunState::kRunning;
  run.status.started_ps = engine_.now();
  clear_first(run);
  run.progress().begin(run);
  advance(run);
}

// Goes on with what is ready until nothing is. Completions from within (of an empty transfer, say) only add
// to the list.
void ScheduleExecutor::advance(Run& run) {
  if (run.advancing) return;
  run.advancing = true;
  while (run.is_in(RunState::kRunning) && !run.ready.empty()) {
    const uint32_t token = run.ready.front();
    run.ready.pop_front();
    try {
      run.progress().proceed(run, token);
    } catch (const std::logic_error& error) {
      // The request was refused. What a user's code raises while a packet is sent is no such thing: it ends
      // all.
      fail(run, run.current_step, error.what());
    }
  }
  run.advancing = false;
  // It may be gone afterwards.
  if (run.is_in(RunState::kRunning) && run.progress().is_done()) end(run, RunState::kFinished);
}

ConnectionEnds ScheduleExecutor::ends_of(uint32_t channel) const {
  const WritingQueuePair* queue_pair = channels_[channel].queue_pair;
  return queue_pair == nullptr ? ConnectionEnds() : queue_pair->ends();
}

void ScheduleExecutor::on_completion(const Completion& completion) {
  switch (completion.kind) {
    case CompletionKind::kRead:
      return read_done(completion);
    case CompletionKind::kWrite:
    case CompletionKind::kAggregate:
      return queue_pair_done(completion);
    case CompletionKind::kWriteImmediate:
      return arrived(completion);
    case CompletionKind::kCompareSwap:
    case CompletionKind::kFetchAdd:
    case CompletionKind::kSend:
    case CompletionKind::kReceive:
      return;  // schedules post none
  }
}

void ScheduleExecutor::queue_pair_done(const Completion& completion) {
  const uint64_t number = completion.work_id >> Run::kStepBits;
  const auto step = static_cast<uint32_t>(completion.work_id);
  if (number == kClearances) [[unlikely]]
    return clearance_done(completion, step);
  const auto found = runs_.find(number);
  if (found == runs_.end()) return;
  Run& run = *found->second;
  --run.posted;
  if (run.forgotten) {
    if (run.posted == 0) runs_.erase(found);
    return;
  }
  if (completion.status != CompletionStatus::kSuccess) {
    return fail(run, step,
                std::string(completion_status_name(completion.status)) +
                    " (fault: " + fault_name(completion_fault(completion.status)) + ")");
  }
  if (run.keep_writes && completion.kind == CompletionKind::kWrite) {
    run.writes.push_back(
        {step, completion.posted_ps, completion.completed_ps, completion.retransmitted_packets});
  }
  if (!run.is_in(RunState::kRunning)) return;
  run.progress().completed(run, step);
  advance(run);
}

void ScheduleExecutor::read_done(const Completion& completion) {
  const Place* const place = channel_of_queue_pair_.find(completion.queue_pair);
  const TimePs copies_ps =
      place == nullptr ? 0 : channels_[place->number()].copies.alone_ps(completion.length_bytes);
  if (copies_ps == 0 || completion.status != CompletionStatus::kSuccess) return queue_pair_done(completion);
  engine_.schedule_at(engine_.now() + copies_ps, [this, completion] { queue_pair_done(completion); });
}

void ScheduleExecutor::arrived(const Completion& completion) {
  const Place* const place = channel_of_queue_pair_.find(completion.queue_pair);
  if (place == nullptr) return;
  Channel& own = channels_[place->number()];
  ++own.received;
  const uint32_t origin = own.stands_for.value_or(place->number());
  const TimePs copies_ps = own.copies.alone_ps(completion.length_bytes);
  if (own.step_latency_ps == 0 && copies_ps == 0) return seen(origin, completion.immediate);
  // In order: a short message does not overtake the copy of a long one.
  own.seen_ps = std::max(own.seen_ps, engine_.now() + own.step_latency_ps + copies_ps);
  const auto see = [this, origin, id = channels_[origin].id, immediate = completion.immediate] {
    // The channel may have been removed meanwhile, and its place given to another.
    if (origin < channels_.size() && channels_[origin].id == id) seen(origin, immediate);
  };
  engine_.schedule_at(own.seen_ps, see);
}

// A message has arrived for a channel, and its protocol has seen it.
void ScheduleExecutor::seen(uint32_t channel, uint32_t immediate) {
  if (channels_[channel].clearing || channels_[channel].clears) [[unlikely]] {
    if (take_clearing(channel, immediate)) return;
  }
  const std::optional<Arrivals::Waiter> waiter = channels_[channel].arrivals.came(immediate, engine_.now());
  if (!waiter) return;
  Run* run = running(waiter->run);
  if (run == nullptr) return;
  run->progress().received(*run, waiter->token);
  advance(*run);
}

void ScheduleExecutor::fail(Run& run, uint32_t step, const std::string& reason) {
  if (!run.is_in(RunState::kRunning)) return;
  fail(run, "node " + std::to_string(step) + ": " + reason);
}

void ScheduleExecutor::fail(Run& run, const std::string& error) {
  run.status.error = error;
  end(run, RunState::kFailed);
}

// One that has finished waits for nothing.
void ScheduleExecutor::forget_waiters(uint64_t run) {
  for (Channel& channel : channels_) channel.arrivals.forget_waiters(static_cast<uint32_t>(run));
}

void ScheduleExecutor::end(Run& run, RunState state) {
  run.status.state = state;
  run.status.finished_ps = engine_.now();
  run.ready.clear();
  end_clearing(run);
  if (state != RunState::kFinished) {
    forget_waiters(run.number());
    cancel_parts(run.number());
  }
  run.part_of ? part_ended(run) : report_end(run.number());
}

}  // namespace weft
