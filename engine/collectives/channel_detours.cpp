// Channels whose plane is lost: what they would carry goes over others.
//
// The two ends stop their queue pairs first, so that nothing arrives that has not been counted; then each
// learns how many messages the other has received. The first of those that it keeps have arrived though no
// acknowledgement has, and the rest are sent again. Thus every message arrives once.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "collectives/schedule_executor.hpp"
#include "hosts/writing_queue_pair.hpp"

namespace weft {

uint64_t ScheduleExecutor::suspend(uint32_t place) {
  if (place >= channels_.size() || channels_[place].queue_pair == nullptr) {
    throw std::invalid_argument("channel " + std::to_string(place) + " has no queue pair to suspend");
  }
  Channel& channel = channels_[place];
  auto detour = std::make_unique<Detour>();
  detour->completed = channel.queue_pair->completed_requests();
  detour->kept = channel.queue_pair->withdraw(engine_.now());
  channel_of_queue_pair_.erase(channel.number);
  channel.queue_pair = nullptr;
  channel.detour = std::move(detour);
  return std::exchange(channel.received, 0);
}

void ScheduleExecutor::detour(uint32_t place, const std::vector<uint32_t>& over, uint64_t peer_received) {
  const bool suspended = place < channels_.size() && channels_[place].queue_pair == nullptr &&
                         channels_[place].detour != nullptr && channels_[place].detour->over.empty();
  if (!suspended) throw std::invalid_argument("channel " + std::to_string(place) + " is not suspended");
  // One that stands for another itself leaves what it carries to others that do.
  const uint32_t origin = channels_[place].stands_for.value_or(place);
  for (const uint32_t other : over) {
    const bool fit = other < channels_.size() && other != place && channels_[other].queue_pair != nullptr &&
                     channels_[other].stands_for.value_or(origin) == origin;
    if (!fit) {
      throw std::invalid_argument("channel " + std::to_string(other) + " cannot stand for channel " +
                                  std::to_string(place));
    }
  }
  Detour& detour = *channels_[place].detour;
  const auto kept_messages =
      static_cast<uint64_t>(std::count_if(detour.kept.begin(), detour.kept.end(),
                                          [](const RcRequest& request) { return !is_read(request.kind); }));
  if (over.empty() || peer_received < detour.completed || peer_received - detour.completed > kept_messages) {
    throw std::invalid_argument("channel " + std::to_string(place) + ": " + std::to_string(over.size()) +
                                " others, and " + std::to_string(peer_received) +
                                " messages received (valid: " + std::to_string(detour.completed) + " to " +
                                std::to_string(detour.completed + kept_messages) + ")");
  }
  for (const uint32_t other : over) channels_[other].stands_for = origin;
  const uint64_t delivered = peer_received - detour.completed;
  std::vector<RcRequest> kept = std::exchange(detour.kept, {});
  detour.over = over;
  uint64_t messages = 0;
  for (RcRequest& request : kept) {
    // The peer counts no READs; they are done again.
    if (is_read(request.kind) || ++messages > delivered) {
      post(place, std::move(request));
      continue;
    }
    on_completion({.work_id = request.work_id,
                   .kind = request.kind,
                   .status = CompletionStatus::kSuccess,
                   .length_bytes = request.length_bytes,
                   .posted_ps = request.posted_ps,
                   .completed_ps = engine_.now()});
  }
}

void ScheduleExecutor::resume(uint32_t place, WritingQueuePair& queue_pair) {
  const bool on_detour = place < channels_.size() && channels_[place].queue_pair == nullptr &&
                         channels_[place].detour != nullptr && !channels_[place].detour->over.empty();
  if (!on_detour) throw std::invalid_argument("channel " + std::to_string(place) + " is on no detour");
  const uint32_t number = queue_pair.config().queue_pair;
  if (!channel_of_queue_pair_.emplace(number, {place + 1})) {
    throw std::invalid_argument("queue pair " + std::to_string(number) + " is a channel already");
  }
  Channel& channel = channels_[place];
  channel.queue_pair = &queue_pair;
  channel.number = number;
  channel.received = 0;
}

// Completes a request that no queue pair will carry.
void ScheduleExecutor::flush(const RcRequest& request) {
  on_completion({.work_id = request.work_id,
                 .kind = request.kind,
                 .status = CompletionStatus::kFlushed,
                 .length_bytes = request.length_bytes,
                 .posted_ps = request.posted_ps,
                 .completed_ps = engine_.now()});
}

// Gives a request to the channel's queue pair, or to those of its detour in turn.
void ScheduleExecutor::post(uint32_t place, RcRequest request) {
  Channel& channel = channels_[place];
  if (channel.queue_pair != nullptr) return channel.queue_pair->post(engine_.now(), std::move(request));
  if (channel.is_removed()) return flush(request);
  Detour& detour = *channel.detour;
  if (detour.over.empty()) {
    detour.kept.push_back(std::move(request));
    return;
  }
  const uint32_t next = detour.over[detour.next];
  detour.next = (detour.next + 1) % detour.over.size();
  post(next, std::move(request));
}

}  // namespace weft
