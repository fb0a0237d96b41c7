// Operations of a job that fast-forward may repeat: collectives and messages.
#include "collectives/job_progress.hpp"

namespace weft {

OperationPlace JobProgress::place_of(uint32_t operation) const {
  const JobFastForward& known = job_.binding().fast_forward;
  const uint32_t target = operations_.target(operation), number = operations_.number(operation);
  switch (operations_.kind(operation)) {
    case OperationKind::kCollective: {
      const CallInGroup& call = known.calls[target];
      return {call.group, call.place, call.variant, number};
    }
    case OperationKind::kReceive:
      return {known.peers[target].from, 1, operations_.size_bytes(operation), number};
    default:
      return {known.peers[target].to, 0, operations_.size_bytes(operation), number};
  }
}

bool JobProgress::is_repeated(uint32_t operation) const {
  const OperationKind kind = operations_.kind(operation);
  if (kind != OperationKind::kCollective && kind != OperationKind::kSend) return false;
  return fast_forward_->begin(place_of(operation), job_.binding().fast_forward.run, operation);
}

void JobProgress::note_arrival(uint32_t operation, TimePs time_ps) const {
  if (fast_forward_ != nullptr) fast_forward_->arrived(place_of(operation), time_ps);
}

void JobProgress::note_end(uint32_t operation) const {
  const OperationKind kind = operations_.kind(operation);
  if (kind == OperationKind::kCollective || kind == OperationKind::kSend)
    fast_forward_->ended(place_of(operation));
}

void JobProgress::resume(StepActions& actions, uint32_t operation, uint32_t share) {
  if (operations_.kind(operation) == OperationKind::kSend)
    send(actions, operation);
  else
    call(actions, operation, share);
}

std::vector<StepMessage> JobProgress::messages_of_step(uint32_t operation) const {
  std::vector<StepMessage> messages;
  for (const Message& message : messages_of(operation))
    messages.push_back({message.path->channel, immediate_of(operation)});
  return messages;
}

std::vector<uint32_t> JobProgress::channels_of_step(uint32_t operation) const {
  if (operations_.kind(operation) == OperationKind::kCollective)
    return job_.binding().calls[operations_.target(operation)]->channels();
  std::vector<uint32_t> channels;
  for (const Message& message : messages_of(operation)) channels.push_back(message.path->channel);
  return channels;
}

}  // namespace weft
