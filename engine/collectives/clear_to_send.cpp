// Receiver-driven admission of a channel's messages (Gangidi et al., "RDMA over Ethernet for Distributed AI
// Training at Meta Scale", SIGCOMM 2024, section 5.2; in NCCL ncclIbPostFifo of src/transport/net_ib.cc).
//
// When a run begins, its receiver clears up to `window` messages of each channel, and one more whenever one
// has arrived and its protocol has seen it. The sender holds what is not cleared. A clearance is a WRITE with
// immediate and without a payload, over a queue pair in the acknowledgements' class, which repeats it if it
// is lost; the immediate has the run's tag and how many messages are cleared.
//
// No run waits for ever: a message that has been cleared arrives, whatever else is held, because its way
// depends on no schedule; each arrival clears another; and messages leave in the order in which they were
// posted. So all that was posted is sent once the receiver's run has begun, which no message of the run
// precedes.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executor_run.hpp"
#include "collectives/lane_schedule.hpp"

namespace weft {
namespace {

constexpr uint32_t kTransferMask = (1u << LaneSchedule::kTransferBits) - 1;
// In place of a transfer's number: a part of one, not the last.
constexpr uint32_t kPartOfTransfer = kTransferMask;

uint32_t tag_of(uint32_t immediate) { return immediate >> LaneSchedule::kTransferBits; }
uint32_t tagged(uint32_t tag, uint32_t low) { return tag << LaneSchedule::kTransferBits | low; }

uint64_t parts_of(uint64_t length_bytes, uint64_t chunk_bytes) {
  return std::max<uint64_t>(1, (length_bytes + chunk_bytes - 1) / chunk_bytes);
}

void skip_bytes(RcRequest& request, uint64_t bytes) {
  if (request.data != nullptr) request.data += bytes;
  request.remote_address += bytes;
  request.length_bytes -= bytes;
}

}  // namespace

void ScheduleExecutor::clear_to_send(uint32_t place, uint32_t clearances, const ClearToSendConfig& config) {
  const auto has_queue_pair = [this](uint32_t number) {
    return number < channels_.size() && !channels_[number].is_removed() &&
           channels_[number].scale_up == nullptr;
  };
  if (place == clearances || !has_queue_pair(place) || !has_queue_pair(clearances)) {
    throw std::invalid_argument("channel " + std::to_string(clearances) + " cannot clear channel " +
                                std::to_string(place) + " (valid: two channels with queue pairs)");
  }
  if (config.window < 1 || config.window > kMaxClearToSendWindow) {
    throw std::invalid_argument("clear to send: window " + std::to_string(config.window) + " (valid: 1 to " +
                                std::to_string(kMaxClearToSendWindow) + ")");
  }
  if (config.chunk_bytes < kMinClearToSendChunkBytes || config.chunk_bytes > kMaxMessageBytes) {
    throw std::invalid_argument("clear to send: chunk of " + std::to_string(config.chunk_bytes) +
                                " B (valid: " + std::to_string(kMinClearToSendChunkBytes) + " to " +
                                std::to_string(kMaxMessageBytes) + ")");
  }
  if (channels_[place].clearing != nullptr || channels_[clearances].clears) {
    throw std::invalid_argument("channel " + std::to_string(place) + " or " + std::to_string(clearances) +
                                " has clear-to-send already");
  }
  channels_[place].clearing = std::make_unique<ClearingState>(ClearingState{config, clearances, {}});
  channels_[clearances].clears = place;
  ++clearing_channels_;
}

// As a run begins: its buffers are there, so peers may send.
void ScheduleExecutor::clear_first(Run& run) {
  if (clearing_channels_ == 0) [[likely]]
    return;
  std::vector<std::pair<uint32_t, uint32_t>> opened;  // channel, tag
  run.progress().each_receive([&](const ExpectedMessage& expected) {
    ClearingState* const clearing = channels_[expected.channel].clearing.get();
    if (clearing == nullptr) return;
    const uint32_t tag = tag_of(expected.immediate);
    ClearingState::OfRun& state = clearing->runs[tag];
    if (state.transfers_left == 0) opened.emplace_back(expected.channel, tag);
    state.run = run.number();
    ++state.transfers_left;
    state.to_clear +=
        run.progress().has_lengths() ? parts_of(expected.length_bytes, clearing->config.chunk_bytes) : 1;
  });
  for (const auto& [place, tag] : opened) {
    const ClearingState& clearing = *channels_[place].clearing;
    clear_more(place, tag, std::min<uint64_t>(clearing.config.window, clearing.runs.at(tag).to_clear));
  }
}

void ScheduleExecutor::clear_more(uint32_t place, uint32_t tag, uint64_t messages) {
  ClearingState& clearing = *channels_[place].clearing;
  ClearingState::OfRun& state = clearing.runs.at(tag);
  state.to_clear -= std::min(messages, state.to_clear);
  state.in_flight += messages;
  ++clear_to_send_counters_.clearances_sent;
  post(clearing.clearances, {.kind = CompletionKind::kWrite,
                             .work_id = kClearances << Run::kStepBits | state.run,
                             .immediate = tagged(tag, static_cast<uint32_t>(messages))});
}

// Gives a request to its channel, or holds it until it is cleared.
void ScheduleExecutor::submit(uint32_t place, RcRequest request, bool may_cut) {
  const ClearingState* const clearing = channels_[place].clearing.get();
  if (clearing == nullptr || is_read(request.kind) || !request.immediate) [[likely]]
    return post(place, std::move(request));
  if (request.length_bytes > kMaxMessageBytes) return post(place, std::move(request));  // refuses it
  if ((*request.immediate & kTransferMask) == kPartOfTransfer) {
    throw std::invalid_argument("transfer " + std::to_string(kPartOfTransfer) +
                                " (valid with clear-to-send: below; use larger pieces)");
  }
  const uint64_t chunk_bytes = clearing->config.chunk_bytes;
  while (may_cut && request.length_bytes > chunk_bytes) {
    RcRequest part = request;
    part.work_id = 0;  // the last one's completion stands for all, which complete in order
    part.length_bytes = chunk_bytes;
    part.immediate = tagged(tag_of(*request.immediate), kPartOfTransfer);
    skip_bytes(request, chunk_bytes);
    send_or_hold(place, std::move(part));
  }
  send_or_hold(place, std::move(request));
}

void ScheduleExecutor::send_or_hold(uint32_t place, RcRequest request) {
  ClearingState* const clearing = channels_[place].clearing.get();
  if (clearing == nullptr) return flush(request);  // removed as its first parts were posted
  ClearingState::OfRun& state = clearing->runs[tag_of(*request.immediate)];
  if (state.cleared == 0 || !state.held.empty()) {
    ++clear_to_send_counters_.held_messages;
    if (held_now_++ == 0) stalled_since_ps_ = engine_.now();
    state.held.push_back({std::move(request), engine_.now()});
    return;
  }
  --state.cleared;
  ++clear_to_send_counters_.cleared_messages;
  post(place, std::move(request));
}

// A clearance has come: sends what it lets go. What is posted to a queue pair that has failed may end runs,
// and so change what is held.
void ScheduleExecutor::cleared(uint32_t place, uint32_t immediate) {
  const uint32_t tag = tag_of(immediate);
  channels_[place].clearing->runs[tag].cleared += immediate & kTransferMask;
  while (ClearingState* const clearing = channels_[place].clearing.get()) {
    const auto found = clearing->runs.find(tag);
    if (found == clearing->runs.end() || found->second.cleared == 0 || found->second.held.empty()) return;
    ClearingState::OfRun& state = found->second;
    ClearingState::Held held = std::move(state.held.front());
    state.held.pop_front();
    --state.cleared;
    ++clear_to_send_counters_.cleared_messages;
    clear_to_send_counters_.clearance_wait_ps += engine_.now() - held.since_ps;
    no_longer_held(1);
    post(place, std::move(held.request));
  }
}

void ScheduleExecutor::no_longer_held(size_t messages) {
  if (messages == 0) return;
  held_now_ -= messages;
  if (held_now_ == 0) clear_to_send_counters_.clearance_stall_ps += engine_.now() - stalled_since_ps_;
}

// A message has been seen. Returns whether it is no transfer that somebody waits for.
bool ScheduleExecutor::take_clearing(uint32_t place, uint32_t immediate) {
  if (channels_[place].clears) {
    cleared(*channels_[place].clears, immediate);
    return true;
  }
  const bool is_part = (immediate & kTransferMask) == kPartOfTransfer;
  ClearingState& clearing = *channels_[place].clearing;
  const auto found = clearing.runs.find(tag_of(immediate));
  if (found == clearing.runs.end()) return is_part;  // its run has ended
  ClearingState::OfRun& state = found->second;
  if (state.in_flight > 0) --state.in_flight;
  if (!is_part && state.transfers_left > 0) --state.transfers_left;
  // One is under way as long as anything is to come, should the two ends count parts differently.
  const bool wants_more = state.to_clear > 0 || (state.transfers_left > 0 && state.in_flight == 0);
  if (wants_more && state.in_flight < clearing.config.window) clear_more(place, found->first, 1);
  return is_part;
}

// Without its clearance a message would be held for ever.
void ScheduleExecutor::clearance_done(const Completion& completion, uint64_t number) {
  if (completion.status == CompletionStatus::kSuccess) return;
  if (Run* const run = running(number); run != nullptr)
    fail(*run, std::string("clear-to-send: ") + completion_status_name(completion.status) +
                   " (fault: " + fault_name(completion_fault(completion.status)) + ")");
}

// As a run ends: what it still holds is given up, and what is over is forgotten.
void ScheduleExecutor::end_clearing(const Run& run) {
  if (clearing_channels_ == 0) [[likely]]
    return;
  std::vector<RcRequest> given_up;
  for (Channel& channel : channels_) {
    if (channel.clearing == nullptr) continue;
    for (auto& [_, state] : channel.clearing->runs) {
      const auto is_own = [&](const ClearingState::Held& held) {
        return held.request.work_id >> Run::kStepBits == run.number();
      };
      // A run's messages have its own tag, so all that is held belongs to it or none of it does.
      if (std::ranges::none_of(state.held, is_own)) continue;
      no_longer_held(state.held.size());
      for (ClearingState::Held& held : std::exchange(state.held, {}))
        given_up.push_back(std::move(held.request));
    }
    // What a failed run was still to receive does not come any more, and a later run may have its tag.
    std::erase_if(channel.clearing->runs, [&](const auto& each) {
      return each.second.is_over() || (each.second.run != 0 && each.second.run == run.number());
    });
  }
  for (const RcRequest& request : given_up) flush(request);
}

// As a channel is removed, or the one that its clearances take. Returns what it holds, for flush().
std::vector<RcRequest> ScheduleExecutor::stop_clearing(uint32_t place) {
  if (channels_[place].clears) return stop_clearing(*channels_[place].clears);
  std::vector<RcRequest> held;
  const std::unique_ptr<ClearingState> clearing = std::move(channels_[place].clearing);
  if (clearing == nullptr) return held;
  channels_[clearing->clearances].clears.reset();
  --clearing_channels_;
  for (auto& [_, state] : clearing->runs) {
    no_longer_held(state.held.size());
    for (ClearingState::Held& each : state.held) held.push_back(std::move(each.request));
  }
  return held;
}

}  // namespace weft
