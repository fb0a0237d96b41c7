#include "collectives/graph_progress.hpp"

#include <variant>

#include "collectives/lane_schedule.hpp"

namespace weft {
namespace {

StepNote note_of(uint32_t node, const NodeContent& content, TimePs now) {
  StepNote note{.step = node, .kind = static_cast<StepKind>(content.index()), .channel = {}, .start_ps = now};
  if (const auto* write = std::get_if<WriteNode>(&content)) {
    note.channel = write->channel;
    note.length_bytes = write->source.length_bytes;
  } else if (const auto* wait = std::get_if<WaitReceiveNode>(&content)) {
    note.channel = wait->channel;
  } else if (const auto* read = std::get_if<ReadNode>(&content)) {
    note.channel = read->channel;
    note.length_bytes = read->target.length_bytes;
  } else if (const auto* reduction = std::get_if<ReduceNode>(&content)) {
    note.length_bytes = reduction->source.length_bytes;
  } else if (const auto* copy = std::get_if<CopyNode>(&content)) {
    note.length_bytes = copy->source.length_bytes;
  } else if (const auto* aggregate = std::get_if<AggregateNode>(&content)) {
    note.length_bytes = aggregate->range.length_bytes;
  }
  return note;
}

}  // namespace

GraphProgress::GraphProgress(const Schedule& schedule, std::optional<uint32_t> run_tag)
    : schedule_(schedule), run_tag_(run_tag), nodes_left_(schedule.step_count()) {
  predecessors_left_.reserve(nodes_left_);
  for (uint32_t node = 0; node < schedule.step_count(); ++node) {
    predecessors_left_.push_back(schedule.predecessor_count(node));
  }
}

void GraphProgress::begin(StepActions& actions) {
  for (uint32_t node = 0; node < predecessors_left_.size(); ++node) {
    if (predecessors_left_[node] == 0) actions.make_ready(node);
  }
}

void GraphProgress::proceed(StepActions& actions, uint32_t node) {
  const NodeContent& content = schedule_.content(node);
  if (actions.is_recording()) [[unlikely]]
    actions.begun(note_of(node, content, actions.now()));
  std::visit([&](const auto& each) { start(actions, node, each); }, content);
}

void GraphProgress::start(StepActions& actions, uint32_t node, const WriteNode& write) {
  actions.write(node,
                {.channel = write.channel,
                 .source = schedule_.source(write.source),
                 .length_bytes = write.source.length_bytes,
                 .as_length = schedule_.is_as_length(write.source),
                 .remote_address = write.remote_address,
                 .rkey = write.rkey,
                 .immediate = write.immediate ? std::optional(tagged(*write.immediate)) : std::nullopt});
}

void GraphProgress::start(StepActions& actions, uint32_t node, const ReadNode& read) {
  actions.read(node, {.channel = read.channel,
                      .target = schedule_.target(read.target),
                      .length_bytes = read.target.length_bytes,
                      .as_length = schedule_.is_as_length(read.target),
                      .remote_address = read.remote_address,
                      .rkey = read.rkey});
}

void GraphProgress::start(StepActions& actions, uint32_t node, const WaitReceiveNode& wait) {
  if (actions.receive(node, wait.channel, tagged(wait.immediate), node)) done(actions, node);
}

void GraphProgress::start(StepActions& actions, uint32_t node, const ReduceNode& reduction) {
  actions.reduce(node, {.destination = schedule_.data(reduction.destination),
                        .source = schedule_.data(reduction.source),
                        .length_bytes = reduction.source.length_bytes,
                        .dtype = reduction.dtype,
                        .operation = reduction.operation});
  done(actions, node);
}

void GraphProgress::start(StepActions& actions, uint32_t node, const CopyNode& copy) {
  actions.copy(node, schedule_.data(copy.destination), schedule_.data(copy.source), copy.source.length_bytes);
  done(actions, node);
}

void GraphProgress::start(StepActions& actions, uint32_t node, const AggregateNode& aggregate) {
  actions.aggregate(node, {.aggregator = aggregate.aggregator,
                           .data = schedule_.data(aggregate.range),
                           .length_bytes = aggregate.range.length_bytes,
                           .dtype = aggregate.dtype,
                           .operation = aggregate.operation,
                           .parts = aggregate.parts});
}

void GraphProgress::start(StepActions& actions, uint32_t node, const DelayNode& delay) {
  actions.delay(node, delay.duration_ps, node);
}

uint32_t GraphProgress::tagged(uint32_t immediate) const {
  if (!run_tag_) return immediate;
  constexpr uint32_t kTransfers = (1u << LaneSchedule::kTransferBits) - 1;
  return *run_tag_ << LaneSchedule::kTransferBits | (immediate & kTransfers);
}

void GraphProgress::done(StepActions& actions, uint32_t node) {
  actions.done(node, actions.now());
  --nodes_left_;
  for (const uint32_t successor : schedule_.successors(node)) {
    if (--predecessors_left_[successor] == 0) actions.make_ready(successor);
  }
}

void GraphProgress::each_receive(const std::function<void(const ExpectedMessage&)>& visit) const {
  for (uint32_t node = 0; node < schedule_.step_count(); ++node) {
    if (const auto* wait = std::get_if<WaitReceiveNode>(&schedule_.content(node)))
      visit({.channel = wait->channel, .immediate = tagged(wait->immediate)});
  }
}

}  // namespace weft
