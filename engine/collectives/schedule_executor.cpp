#include "collectives/schedule_executor.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "hosts/aggregation_client.hpp"
#include "hosts/rc_queue_pair.hpp"
#include "hosts/scale_up.hpp"

namespace weft {
namespace {

constexpr int kNodeBits = 32;

uint64_t work_id(uint64_t run, uint32_t node) { return run << kNodeBits | node; }

}  // namespace

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

uint32_t ScheduleExecutor::add_channel(RcQueuePair& queue_pair) {
  return insert({.queue_pair = &queue_pair, .number = queue_pair.config().queue_pair});
}

uint32_t ScheduleExecutor::add_scale_up_channel(ScaleUpChannel& scale_up) {
  return insert({.scale_up = &scale_up, .number = scale_up.number()});
}

uint32_t ScheduleExecutor::insert(Channel channel) {
  const auto place = static_cast<uint32_t>(channels_.size());
  if (!channel_of_queue_pair_.emplace(channel.number, place).second) {
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
  channel_of_queue_pair_.erase(removed.number);
  channels_[channel] = Channel();
  // Schedules that have not ended may still name the places of channels that are gone.
  while (runs_.empty() && !channels_.empty() && channels_.back().is_removed()) channels_.pop_back();
}

void ScheduleExecutor::remove_aggregator(uint32_t aggregator) {
  if (aggregator < aggregators_.size()) aggregators_[aggregator] = nullptr;
}

uint64_t ScheduleExecutor::start(std::shared_ptr<const Schedule> schedule, TimePs start_ps,
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
  next_run_ = std::max(next_run_, number + 1);
  Run& run = runs_[number];
  run.number = number;
  run.keep_writes = options.keep_writes;
  run.status.node_count = static_cast<uint32_t>(schedule->node_count());
  run.predecessors_left.reserve(schedule->node_count());
  for (uint32_t node = 0; node < schedule->node_count(); ++node) {
    run.predecessors_left.push_back(schedule->predecessor_count(node));
  }
  if (probe_ != nullptr) run.step_starts_ps.assign(schedule->node_count(), kNever);
  run.schedule = std::move(schedule);
  engine_.schedule_at(start_ps, [this, number] { begin(number); });
  return number;
}

ScheduleExecutor::Run& ScheduleExecutor::run_at(uint64_t number) {
  return const_cast<Run&>(std::as_const(*this).run_at(number));
}

const ScheduleExecutor::Run& ScheduleExecutor::run_at(uint64_t number) const {
  const auto found = runs_.find(number);
  if (found == runs_.end() || found->second.forgotten) {
    throw std::invalid_argument("no run " + std::to_string(number));
  }
  return found->second;
}

const RunStatus& ScheduleExecutor::status(uint64_t run) const { return run_at(run).status; }

void ScheduleExecutor::cancel(uint64_t number) {
  Run& run = run_at(number);
  if (run.status.state == RunState::kWaiting || run.status.state == RunState::kRunning) {
    end(run, RunState::kCancelled);
  }
}

void ScheduleExecutor::forget(uint64_t number) {
  Run& run = run_at(number);
  if (run.status.state == RunState::kWaiting || run.status.state == RunState::kRunning) {
    throw std::logic_error("run " + std::to_string(number) + " has not ended (cancel it first)");
  }
  run.forgotten = true;
  if (run.posted == 0) runs_.erase(number);
}

void ScheduleExecutor::begin(uint64_t number) {
  const auto found = runs_.find(number);
  if (found == runs_.end() || found->second.status.state != RunState::kWaiting) return;  // cancelled
  Run& run = found->second;
  run.status.state = RunState::kRunning;
  run.status.started_ps = engine_.now();
  for (uint32_t node = 0; node < run.predecessors_left.size(); ++node) {
    if (run.predecessors_left[node] == 0) run.ready.push_back(node);
  }
  advance(run);
}

// Executes ready nodes until none is left. Completions from within (of an empty transfer, say) only add to
// the list.
void ScheduleExecutor::advance(Run& run) {
  if (run.advancing) return;
  run.advancing = true;
  while (run.status.state == RunState::kRunning && !run.ready.empty()) {
    const uint32_t node = run.ready.front();
    run.ready.pop_front();
    execute(run, node);
  }
  run.advancing = false;
  if (run.status.state == RunState::kRunning && run.status.nodes_done == run.status.node_count) {
    end(run, RunState::kFinished);
  }
}

void ScheduleExecutor::execute(Run& run, uint32_t node) {
  if (!run.step_starts_ps.empty()) [[unlikely]]
    run.step_starts_ps[node] = engine_.now();
  try {
    std::visit([&](const auto& content) { start_node(run, node, content); }, run.schedule->content(node));
  } catch (const std::logic_error& error) {
    // The request was refused. What a user's code raises while a packet is sent is no such thing: it ends
    // all.
    fail(run, node, error.what());
  }
}

void ScheduleExecutor::start_node(Run& run, uint32_t node, const WriteNode& write) {
  const Channel& channel = channels_[write.channel];
  const uint64_t id = work_id(run.number, node);
  const uint8_t* source = run.schedule->source(write.source);
  if (channel.scale_up != nullptr) {
    ++run.posted;
    return channel.scale_up->post_write(engine_.now(), source, write.source.length_bytes,
                                        write.remote_address, write.rkey, write.immediate, id);
  }
  if (channel.queue_pair == nullptr) return fail(run, node, "its channel has been removed");
  ++run.posted;
  try {
    if (run.schedule->is_as_length(write.source)) {
      channel.queue_pair->post_write_as_length(engine_.now(), write.source.length_bytes, write.remote_address,
                                               write.rkey, write.immediate, id);
    } else {
      channel.queue_pair->post_write(engine_.now(), source, write.source.length_bytes, write.remote_address,
                                     write.rkey, write.immediate, id);
    }
  } catch (...) {
    --run.posted;  // refused: no completion will come
    throw;
  }
}

void ScheduleExecutor::start_node(Run& run, uint32_t node, const WaitReceiveNode& wait) {
  Channel& channel = channels_[wait.channel];
  Arrival& arrival = channel.arrivals[wait.immediate];
  if (arrival.early == 0) {
    arrival.waiting.emplace_back(run.number, node);
    return;
  }
  if (--arrival.early == 0) channel.arrivals.erase(wait.immediate);
  node_done(run.number, node);
}

void ScheduleExecutor::start_node(Run& run, uint32_t node, const ReduceNode& reduction) {
  const Schedule& schedule = *run.schedule;
  reduce(schedule.data(reduction.destination), schedule.data(reduction.source),
         reduction.source.length_bytes / kElementBytes, reduction.dtype, reduction.operation);
  node_done(run.number, node);
}

void ScheduleExecutor::start_node(Run& run, uint32_t node, const CopyNode& copy) {
  const Schedule& schedule = *run.schedule;
  std::memmove(schedule.data(copy.destination), schedule.data(copy.source), copy.source.length_bytes);
  node_done(run.number, node);
}

void ScheduleExecutor::start_node(Run& run, uint32_t node, const AggregateNode& aggregate) {
  AggregationClient* client = aggregators_[aggregate.aggregator];
  if (client == nullptr) return fail(run, node, "its aggregator has been removed");
  uint8_t* data = run.schedule->data(aggregate.range);
  ++run.posted;
  try {
    client->post_all_reduce(engine_.now(), {data, data, aggregate.range.length_bytes / kElementBytes},
                            aggregate.dtype, aggregate.operation, work_id(run.number, node));
  } catch (...) {
    --run.posted;  // refused: no completion will come
    throw;
  }
}

void ScheduleExecutor::start_node(Run& run, uint32_t node, const DelayNode& delay) {
  engine_.schedule_at(engine_.now() + delay.duration_ps,
                      [this, number = run.number, node] { node_done(number, node); });
}

void ScheduleExecutor::node_done(uint64_t number, uint32_t node) {
  const auto found = runs_.find(number);
  if (found == runs_.end() || found->second.status.state != RunState::kRunning) return;
  Run& run = found->second;
  ++run.status.nodes_done;
  if (!run.step_starts_ps.empty()) [[unlikely]]
    record_step(run, node);
  for (const uint32_t successor : run.schedule->successors(node)) {
    if (--run.predecessors_left[successor] == 0) run.ready.push_back(successor);
  }
  advance(run);
}

ConnectionEnds ScheduleExecutor::ends_of(uint32_t channel) const {
  const RcQueuePair* queue_pair = channels_[channel].queue_pair;
  return queue_pair == nullptr ? ConnectionEnds() : queue_pair->ends();
}

void ScheduleExecutor::record_step(const Run& run, uint32_t node) {
  if (probe_ == nullptr) return;
  const NodeContent& content = run.schedule->content(node);
  StepRecord step{.rank = rank_,
                  .run = run.number,
                  .node = node,
                  .kind = static_cast<int64_t>(content.index()),
                  .ends = {},
                  .start_ps = run.step_starts_ps[node],
                  .end_ps = engine_.now()};
  if (const auto* write = std::get_if<WriteNode>(&content)) {
    step.ends = ends_of(write->channel);
    step.length_bytes = write->source.length_bytes;
  } else if (const auto* wait = std::get_if<WaitReceiveNode>(&content)) {
    step.ends = ends_of(wait->channel);
  } else if (const auto* reduction = std::get_if<ReduceNode>(&content)) {
    step.length_bytes = reduction->source.length_bytes;
  } else if (const auto* copy = std::get_if<CopyNode>(&content)) {
    step.length_bytes = copy->source.length_bytes;
  } else if (const auto* aggregate = std::get_if<AggregateNode>(&content)) {
    step.length_bytes = aggregate->range.length_bytes;
  }
  probe_->step_done(step);
}

void ScheduleExecutor::on_completion(const Completion& completion) {
  switch (completion.kind) {
    case CompletionKind::kWrite:
    case CompletionKind::kAggregate:
      return queue_pair_done(completion);
    case CompletionKind::kWriteImmediate:
      return arrived(completion);
    case CompletionKind::kSend:
    case CompletionKind::kReceive:
      return;  // schedules post none
  }
}

void ScheduleExecutor::queue_pair_done(const Completion& completion) {
  const uint64_t number = completion.work_id >> kNodeBits;
  const auto node = static_cast<uint32_t>(completion.work_id);
  const auto found = runs_.find(number);
  if (found == runs_.end()) return;
  Run& run = found->second;
  --run.posted;
  if (run.forgotten) {
    if (run.posted == 0) runs_.erase(found);
    return;
  }
  if (completion.status == CompletionStatus::kSuccess) {
    if (run.keep_writes && completion.kind == CompletionKind::kWrite) {
      run.writes.push_back(
          {node, completion.posted_ps, completion.completed_ps, completion.retransmitted_packets});
    }
    return node_done(number, node);
  }
  fail(run, node,
       std::string(completion_status_name(completion.status)) +
           " (fault: " + fault_name(completion_fault(completion.status)) + ")");
}

void ScheduleExecutor::arrived(const Completion& completion) {
  const auto found = channel_of_queue_pair_.find(completion.queue_pair);
  if (found == channel_of_queue_pair_.end()) return;
  Channel& channel = channels_[found->second];
  Arrival& arrival = channel.arrivals[completion.immediate];
  if (arrival.waiting.empty()) {
    ++arrival.early;
    return;
  }
  const auto [run, node] = arrival.waiting.front();
  arrival.waiting.pop_front();
  if (arrival.waiting.empty()) channel.arrivals.erase(completion.immediate);
  node_done(run, node);
}

void ScheduleExecutor::fail(Run& run, uint32_t node, const std::string& reason) {
  if (run.status.state != RunState::kRunning) return;
  run.status.error = "node " + std::to_string(node) + ": " + reason;
  end(run, RunState::kFailed);
}

void ScheduleExecutor::end(Run& run, RunState state) {
  run.status.state = state;
  run.status.finished_ps = engine_.now();
  run.ready.clear();
  for (Channel& channel : channels_) {
    for (auto entry = channel.arrivals.begin(); entry != channel.arrivals.end();) {
      Arrival& arrival = entry->second;
      std::erase_if(arrival.waiting, [&](const auto& waiter) { return waiter.first == run.number; });
      const bool unused = arrival.waiting.empty() && arrival.early == 0;
      entry = unused ? channel.arrivals.erase(entry) : std::next(entry);
    }
  }
  report_end(run.number);
}

}  // namespace weft
