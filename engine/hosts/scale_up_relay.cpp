#include "hosts/scale_up_relay.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "hosts/writing_queue_pair.hpp"

namespace weft {

ScaleUpRelay::ScaleUpRelay(ScaleUpDomain& domain, uint32_t port, uint32_t number, uint32_t source_port,
                           uint32_t source_number, TimePs step_latency_ps)
    : domain_(domain),
      channel_(domain, port, number, source_port, source_number, nullptr),
      step_latency_ps_(step_latency_ps) {
  channel_.set_forwarder(*this);
}

void ScaleUpRelay::close() {
  channel_.close();
  queue_pair_ = nullptr;
  for (const auto& [work_id, each] : std::exchange(under_way_, {}))
    domain_.forwarded(each.message, std::nullopt);
}

void ScaleUpRelay::forward(const ScaleUpMessage& message) {
  UnderWay arrived{message, nullptr, domain_.engine().now()};
  arrived.message.data = nullptr;
  // The sender may take its data back when its channel is closed, while the queue pair repeats packets.
  if (message.data != nullptr && !message.as_length && message.length_bytes > 0) {
    auto data = std::make_shared_for_overwrite<uint8_t[]>(message.length_bytes);
    std::memcpy(data.get(), message.data, message.length_bytes);
    arrived.data = std::move(data);
  }
  const uint64_t work_id = next_work_id_++;
  under_way_.emplace(work_id, std::move(arrived));
  if (step_latency_ps_ == 0) return send(work_id);
  // The engine keeps its components, so the relay is there then, if closed.
  domain_.engine().schedule_at(domain_.engine().now() + step_latency_ps_, [this, work_id] { send(work_id); });
}

void ScaleUpRelay::send(uint64_t work_id) {
  const auto found = under_way_.find(work_id);
  if (found == under_way_.end()) return;  // closed
  const UnderWay& waiting = found->second;
  if (queue_pair_ == nullptr) return end(work_id, CompletionStatus::kFlushed);
  try {
    queue_pair_->post(domain_.engine().now(), {.work_id = work_id,
                                               .data = waiting.data.get(),
                                               .length_bytes = waiting.message.length_bytes,
                                               .remote_address = waiting.message.remote_address,
                                               .rkey = waiting.message.rkey,
                                               .immediate = waiting.message.immediate,
                                               .owner = waiting.data,
                                               .traffic_kind = waiting.message.traffic_kind,
                                               .as_length = waiting.message.as_length});
  } catch (const std::invalid_argument&) {
    end(work_id, CompletionStatus::kRemoteInvalidRequest);
  }
}

void ScaleUpRelay::on_completion(const Completion& completion) {
  if (completion.kind == CompletionKind::kWrite) end(completion.work_id, completion.status);
}

void ScaleUpRelay::end(uint64_t work_id, CompletionStatus status) {
  const auto found = under_way_.find(work_id);
  if (found == under_way_.end()) return;  // closed
  const UnderWay ended = std::move(found->second);
  under_way_.erase(found);
  if (status == CompletionStatus::kSuccess) domain_.count_relayed(ended.message, ended.arrived_ps);
  domain_.forwarded(ended.message, status);
}

}  // namespace weft
