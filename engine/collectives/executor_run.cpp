#include "collectives/executor_run.hpp"

#include <cstring>

#include "hosts/aggregation_client.hpp"
#include "hosts/scale_up.hpp"
#include "hosts/writing_queue_pair.hpp"

namespace weft {

void ScheduleExecutor::Run::write(uint32_t step, const WriteRequest& request) {
  current_step = step;
  const Channel& channel = executor_.channels_[request.channel];
  const uint64_t id = work_id(step);
  const uint8_t traffic_kind = part_of ? part_of->traffic_kind : request.traffic_kind;
  if (channel.scale_up != nullptr) {
    // Terms of a reduction are of one length, whatever is left of a resumed operation at each rank.
    const uint64_t length_bytes =
        request.switched.needs_switch() ? request.length_bytes : share_of(request.length_bytes, share);
    channel.scale_up->post_write(now(), request.source, length_bytes, request.remote_address, request.rkey,
                                 request.immediate, id, request.as_length, traffic_kind, request.switched);
    ++posted;  // a refused one is not; none completes at once
    return;
  }
  if (request.switched.needs_switch() && !channel.is_removed())
    return executor_.fail(*this, step, "its channel does not cross a host's switch");
  post(step, request.channel,
       {.kind = CompletionKind::kWrite,
        .work_id = id,
        .data = request.as_length ? nullptr : request.source,
        .length_bytes = share_of(request.length_bytes, share),
        .remote_address = request.remote_address,
        .rkey = request.rkey,
        .immediate = request.immediate,
        .owner = nullptr,
        .traffic_kind = traffic_kind,
        .as_length = request.as_length});
}

void ScheduleExecutor::Run::read(uint32_t step, const ReadRequest& request) {
  current_step = step;
  if (ScaleUpChannel* const scale_up = executor_.channels_[request.channel].scale_up; scale_up != nullptr) {
    scale_up->post_read(now(), request.as_length ? nullptr : request.target, request.length_bytes,
                        request.remote_address, request.rkey, work_id(step));
    ++posted;
    return;
  }
  post(step, request.channel,
       {.kind = CompletionKind::kRead,
        .work_id = work_id(step),
        .length_bytes = request.length_bytes,
        .remote_address = request.remote_address,
        .rkey = request.rkey,
        .owner = nullptr,
        .traffic_kind = part_of ? part_of->traffic_kind : request.traffic_kind,
        .as_length = request.as_length,
        .target = request.as_length ? nullptr : request.target});
}

void ScheduleExecutor::Run::post(uint32_t step, uint32_t channel, RcRequest request) {
  if (executor_.channels_[channel].is_removed())
    return executor_.fail(*this, step, "its channel has been removed");
  const PartOf recorded = recorded_as(step);
  request.record_id = recorded.run << kStepBits | recorded.step;
  ++posted;
  try {
    executor_.submit(channel, std::move(request), progress_->has_lengths());
  } catch (...) {
    --posted;  // refused: no completion will come
    throw;
  }
}

std::optional<TimePs> ScheduleExecutor::Run::receive(uint32_t step, uint32_t channel, uint32_t immediate,
                                                     uint32_t token) {
  current_step = step;
  return executor_.channels_[channel].arrivals.await(immediate,
                                                     {static_cast<uint32_t>(number_), step, token});
}

void ScheduleExecutor::Run::reduce(uint32_t step, const ReduceRequest& request) {
  current_step = step;
  weft::reduce(request.destination, request.source, request.length_bytes / element_bytes(request.dtype),
               request.dtype, request.operation);
}

void ScheduleExecutor::Run::copy(uint32_t step, uint8_t* destination, const uint8_t* source,
                                 uint64_t length_bytes) {
  current_step = step;
  std::memmove(destination, source, length_bytes);
}

void ScheduleExecutor::Run::aggregate(uint32_t step, const AggregateRequest& request) {
  current_step = step;
  AggregationClient* client = executor_.aggregators_[request.aggregator];
  if (client == nullptr) return executor_.fail(*this, step, "its aggregator has been removed");
  ++posted;
  try {
    const uint64_t count = request.length_bytes / element_bytes(request.dtype);
    client->post(now(), {request.data, request.data, count}, request.parts, request.dtype, request.operation,
                 work_id(step));
  } catch (...) {
    --posted;  // refused: no completion will come
    throw;
  }
}

void ScheduleExecutor::Run::delay(uint32_t step, TimePs duration_ps, uint32_t token) {
  current_step = step;
  executor_.engine_.schedule_at(now() + duration_ps, [&executor = executor_, number = number_, token] {
    Run* run = executor.running(number);
    if (run == nullptr) return;
    run->progress().delay_over(*run, token);
    executor.advance(*run);
  });
}

void ScheduleExecutor::Run::done(uint32_t step, TimePs end_ps) {
  ++status.nodes_done;
  if (!is_recording_ || executor_.probe_ == nullptr) [[likely]]
    return;
  const auto found = notes_.find(step);
  if (found == notes_.end()) return;
  const StepNote& note = found->second;
  const PartOf recorded = recorded_as(step);
  executor_.probe_->step_done({.rank = executor_.rank_,
                               .run = recorded.run,
                               .node = recorded.step,
                               .kind = static_cast<int64_t>(note.kind),
                               .ends = note.channel ? executor_.ends_of(*note.channel) : ConnectionEnds(),
                               .length_bytes = note.length_bytes,
                               .start_ps = note.start_ps,
                               .end_ps = end_ps});
  notes_.erase(found);
}

}  // namespace weft
