#include "collectives/job_progress.hpp"

#include <algorithm>
#include <cmath>

#include "collectives/lane_schedule.hpp"

namespace weft {
namespace {

// Above every operation's number.
constexpr uint32_t kOfStream = 1u << 31;
constexpr uint32_t kTags = 1u << (32 - LaneSchedule::kTransferBits);

}  // namespace

JobProgress::JobProgress(const BoundJob& job, std::shared_ptr<OperationTimes> times)
    : job_(job),
      operations_(job.operations()),
      times_(std::move(times)),
      streams_(operations_.stream_limit()),
      operations_left_(operations_.size()),
      fast_forward_(job.binding().fast_forward.of_fabric.get()) {
  times_->started_ps.assign(operations_left_, kNever);
  times_->finished_ps.assign(operations_left_, kNever);
  predecessors_left_.reserve(operations_left_);
  for (uint32_t each = 0; each < operations_.size(); ++each) {
    predecessors_left_.push_back(operations_.predecessor_count(each));
  }
}

void JobProgress::begin(StepActions& actions) {
  begun_ps_ = actions.now();
  for (uint32_t each = 0; each < operations_.size(); ++each) {
    if (operations_.predecessor_count(each) == 0) become_ready(actions, each);
  }
}

void JobProgress::one_less(StepActions& actions, std::span<const uint32_t> operations) {
  for (const uint32_t each : operations) {
    if (--predecessors_left_[each] == 0) become_ready(actions, each);
  }
}

void JobProgress::become_ready(StepActions& actions, uint32_t operation) {
  const int16_t number = operations_.stream(operation);
  if (number == JobOperations::kNoStream) return actions.make_ready(operation);
  streams_[static_cast<size_t>(number)].ready.emplace(actions.now(), operation);
  choose(actions, static_cast<uint16_t>(number));
}

void JobProgress::choose(StepActions& actions, uint16_t number) {
  Stream& stream = streams_[number];
  if (stream.is_busy || stream.is_choosing || stream.ready.empty()) return;
  stream.is_choosing = true;
  actions.delay(stream.ready.top().second, 0, kOfStream | number);
}

void JobProgress::delay_over(StepActions& actions, uint32_t token) {
  if ((token & kOfStream) == 0) {
    if (shares_accelerator() && operations_.kind(token) == OperationKind::kCompute) [[unlikely]]
      return computed(actions, token);
    return done(actions, token);
  }
  Stream& stream = streams_[token & ~kOfStream];
  stream.is_choosing = false;
  stream.is_busy = true;
  const uint32_t operation = stream.ready.top().second;
  stream.ready.pop();
  actions.make_ready(operation);
}

void JobProgress::start(StepActions& actions, uint32_t operation) {
  times_->started_ps[operation] = actions.now();
  one_less(actions, operations_.successors_of_start(operation));
  if (fast_forward_ != nullptr && is_repeated(operation)) [[unlikely]]
    return;
  if (shares_accelerator() && communicates(operations_.kind(operation))) [[unlikely]]
    communicate(actions, 1);
  switch (operations_.kind(operation)) {
    case OperationKind::kCompute:
      note(actions, operation, StepKind::kDelay);
      if (shares_accelerator()) [[unlikely]]
        return compute(actions, operation);
      return actions.delay(operation, computing_ps(operation), operation);
    case OperationKind::kTimer: {
      note(actions, operation, StepKind::kDelay);
      const TimePs over_ps = actions.now() - begun_ps_;
      const TimePs left_ps = std::max<TimePs>(0, operations_.duration_ps(operation) - over_ps);
      return actions.delay(operation, left_ps, operation);
    }
    case OperationKind::kSend:
      return send(actions, operation);
    case OperationKind::kReceive:
      return receive(actions, operation);
    case OperationKind::kRead:
      return read(actions, operation);
    case OperationKind::kCollective: {
      return call(actions, operation, kWholeShare);
    }
  }
}

void JobProgress::call(StepActions& actions, uint32_t operation, uint32_t share) {
  const uint32_t tag = (job_.binding().run_tag + operations_.number(operation)) % kTags;
  actions.run_part(operation, job_.binding().calls[operations_.target(operation)], tag,
                   operations_.traffic_kind(operation), share);
}

TimePs JobProgress::computing_ps(uint32_t operation) const {
  const TimePs duration_ps = operations_.duration_ps(operation);
  const double scale = job_.binding().compute_scale;
  if (scale == 1.0) return duration_ps;
  const double scaled_ps = static_cast<double>(duration_ps) * scale;
  return static_cast<TimePs>(std::min(std::round(scaled_ps), kMaxDurationPs));
}

uint32_t JobProgress::immediate_of(uint32_t operation) const {
  return job_.binding().run_tag << LaneSchedule::kTransferBits | operations_.number(operation);
}

// Both ends derive the same from the transfer's number and size.
std::vector<JobProgress::Message> JobProgress::messages_of(uint32_t operation) const {
  const std::vector<PeerPath>& paths = job_.binding().peers[operations_.target(operation)];
  const uint64_t size_bytes = operations_.size_bytes(operation);
  const bool is_whole = size_bytes == 0 || size_bytes < job_.binding().stripe_bytes || paths.size() == 1;
  if (is_whole) {
    const PeerPath& path = paths[operations_.number(operation) % paths.size()];
    if (size_bytes <= BoundJob::kMaxMessageBytes) return {{&path, 0, size_bytes}};
  }
  std::vector<Message> messages;
  uint64_t start = 0;
  for (const PeerPath& path : paths) {
    const uint64_t end = size_bytes * path.end_share / BoundJob::kShareUnit;
    for (; start < end; start += messages.back().length_bytes) {
      messages.push_back({&path, start, std::min(end - start, BoundJob::kMaxMessageBytes)});
    }
  }
  return messages;
}

std::vector<JobProgress::Message> JobProgress::begin_messages(uint32_t operation) {
  std::vector<Message> messages = messages_of(operation);
  if (messages.size() > 1) parts_left_[operation] = static_cast<uint32_t>(messages.size());
  return messages;
}

void JobProgress::each_receive(const std::function<void(const ExpectedMessage&)>& visit) const {
  for (uint32_t operation = 0; operation < operations_.size(); ++operation) {
    if (operations_.kind(operation) != OperationKind::kReceive) continue;
    for (const Message& message : messages_of(operation)) {
      visit({.channel = message.path->channel,
             .immediate = immediate_of(operation),
             .length_bytes = message.length_bytes});
    }
  }
}

void JobProgress::send(StepActions& actions, uint32_t operation) {
  note(actions, operation, StepKind::kWrite);
  for (const Message& message : begin_messages(operation)) {
    actions.write(operation, {.channel = message.path->channel,
                              .length_bytes = message.length_bytes,
                              .as_length = job_.binding().as_length,
                              .remote_address = message.path->remote_address,
                              .rkey = message.path->rkey,
                              .immediate = immediate_of(operation),
                              .traffic_kind = operations_.traffic_kind(operation)});
  }
}

void JobProgress::receive(StepActions& actions, uint32_t operation) {
  note(actions, operation, StepKind::kWait);
  TimePs latest_ps = 0;
  for (const Message& message : begin_messages(operation)) {
    const std::optional<TimePs> came_ps =
        actions.receive(operation, message.path->channel, immediate_of(operation), operation);
    if (!came_ps) continue;
    latest_ps = std::max(latest_ps, *came_ps);
    if (part_done(actions, operation)) note_arrival(operation, latest_ps);
  }
}

void JobProgress::received(StepActions& actions, uint32_t operation) {
  if (part_done(actions, operation)) note_arrival(operation, actions.now());
}

void JobProgress::read(StepActions& actions, uint32_t operation) {
  note(actions, operation, StepKind::kRead);
  for (const Message& message : begin_messages(operation)) {
    actions.read(operation, {.channel = message.path->channel,
                             .length_bytes = message.length_bytes,
                             .as_length = job_.binding().as_length,
                             .remote_address = message.path->remote_address + message.offset_bytes,
                             .rkey = message.path->rkey,
                             .traffic_kind = operations_.traffic_kind(operation)});
  }
}

bool JobProgress::part_done(StepActions& actions, uint32_t operation) {
  if (const auto found = parts_left_.find(operation); found != parts_left_.end()) {
    if (--found->second > 0) return false;
    parts_left_.erase(found);
  }
  done(actions, operation);
  return true;
}

void JobProgress::done(StepActions& actions, uint32_t operation) {
  times_->finished_ps[operation] = actions.now();
  actions.done(operation, actions.now());
  if (fast_forward_ != nullptr) [[unlikely]]
    note_end(operation);
  if (shares_accelerator() && communicates(operations_.kind(operation))) [[unlikely]]
    communicate(actions, -1);
  --operations_left_;
  one_less(actions, operations_.successors(operation));
  const int16_t number = operations_.stream(operation);
  if (number == JobOperations::kNoStream) return;
  streams_[static_cast<size_t>(number)].is_busy = false;
  choose(actions, static_cast<uint16_t>(number));
}

void JobProgress::note(StepActions& actions, uint32_t operation, StepKind kind) const {
  if (!actions.is_recording()) return;
  StepNote note{.step = operation, .kind = kind, .channel = {}, .start_ps = actions.now()};
  if (kind == StepKind::kWrite || kind == StepKind::kWait || kind == StepKind::kRead) {
    note.channel = job_.binding().peers[operations_.target(operation)].front().channel;
    note.length_bytes = kind == StepKind::kWait ? 0 : operations_.size_bytes(operation);
  }
  actions.begun(note);
}

}  // namespace weft
