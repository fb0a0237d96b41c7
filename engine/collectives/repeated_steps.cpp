// The executor's part in fast-forward: steps that are repeated.
#include <algorithm>

#include "collectives/executor_run.hpp"
#include "hosts/scale_up.hpp"
#include "hosts/writing_queue_pair.hpp"

namespace weft {

void ScheduleExecutor::end_step(uint64_t number, uint32_t step) {
  Run* run = running(number);
  if (run == nullptr) return;
  run->progress().completed(*run, step);
  advance(*run);
}

void ScheduleExecutor::resume_step(uint64_t number, uint32_t step, uint32_t share) {
  Run* run = running(number);
  if (run == nullptr) return;
  run->share = share;
  run->progress().resume(*run, step, share);
  run->share = kWholeShare;
  advance(*run);
}

std::vector<SentMessage> ScheduleExecutor::messages_of(uint64_t number, uint32_t step) const {
  std::vector<SentMessage> messages;
  const auto found = runs_.find(number);
  if (found == runs_.end()) return messages;
  for (const StepMessage& message : found->second->progress().messages_of_step(step)) {
    const Channel& channel = channels_[message.channel];
    if (channel.queue_pair != nullptr)
      messages.push_back({channel.queue_pair->config().remote_queue_pair, message.immediate});
    else if (channel.scale_up != nullptr)
      messages.push_back({channel.scale_up->peer_number(), message.immediate});
  }
  return messages;
}

void ScheduleExecutor::deliver(const SentMessage& message) {
  arrived({.kind = CompletionKind::kWriteImmediate,
           .queue_pair = message.queue_pair,
           .has_immediate = true,
           .immediate = message.immediate});
}

std::vector<uint32_t> ScheduleExecutor::channels_of(const std::vector<SentMessage>& messages) const {
  std::vector<uint32_t> channels;
  for (const SentMessage& message : messages) {
    const Place* const place = channel_of_queue_pair_.find(message.queue_pair);
    if (place != nullptr && std::ranges::find(channels, place->number()) == channels.end())
      channels.push_back(place->number());
  }
  return channels;
}

OperationTraffic ScheduleExecutor::traffic_over(const std::vector<uint32_t>& channels) const {
  OperationTraffic traffic;
  const ScaleUpChannel* scale_up = nullptr;
  for (const uint32_t number : channels) {
    const Channel& channel = channels_[number];
    if (channel.queue_pair != nullptr) traffic.network += channel.queue_pair->counters();
    if (channel.scale_up != nullptr) scale_up = channel.scale_up;
  }
  // A rank has one port within its host.
  if (scale_up != nullptr) traffic.scale_up = scale_up->port_counters();
  return traffic;
}

// To the first of the queue pairs: a host reports their sum.
void ScheduleExecutor::add_over(const std::vector<uint32_t>& channels, const OperationTraffic& traffic) {
  WritingQueuePair* queue_pair = nullptr;
  ScaleUpChannel* scale_up = nullptr;
  for (const uint32_t number : channels) {
    const Channel& channel = channels_[number];
    if (queue_pair == nullptr) queue_pair = channel.queue_pair;
    if (scale_up == nullptr) scale_up = channel.scale_up;
  }
  if (queue_pair != nullptr) queue_pair->add_counters(traffic.network);
  if (scale_up != nullptr) scale_up->add_port_counters(traffic.scale_up);
}

OperationTraffic ScheduleExecutor::traffic_of(uint64_t number, uint32_t step) const {
  const auto found = runs_.find(number);
  if (found == runs_.end()) return {};
  return traffic_over(found->second->progress().channels_of_step(step));
}

OperationTraffic ScheduleExecutor::traffic_of(const std::vector<SentMessage>& messages) const {
  return traffic_over(channels_of(messages));
}

void ScheduleExecutor::add_traffic(uint64_t number, uint32_t step, const OperationTraffic& traffic) {
  const auto found = runs_.find(number);
  if (found != runs_.end()) add_over(found->second->progress().channels_of_step(step), traffic);
}

void ScheduleExecutor::add_traffic(const std::vector<SentMessage>& messages,
                                   const OperationTraffic& traffic) {
  add_over(channels_of(messages), traffic);
}

}  // namespace weft
