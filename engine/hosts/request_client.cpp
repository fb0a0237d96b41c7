#include "hosts/request_client.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "hosts/options.hpp"

namespace weft {
namespace {

const RequestConfig& checked(const RequestConfig& config) {
  check(config);
  return config;
}

}  // namespace

void check(const RequestConfig& config) {
  if (config.requests == 0) refuse_setting("client of a service: requests", 0, "1 or more");
  if (!std::has_single_bit(config.window))
    refuse_setting("client of a service: window", config.window, "a power of two");
  if (config.retransmission_timeout_ps <= 0)
    refuse_setting("client of a service: retransmission_timeout_ps",
                   static_cast<uint64_t>(config.retransmission_timeout_ps), "above 0");
  if (config.timeout_backoff_limit > 20)
    refuse_setting("client of a service: timeout_backoff_limit", config.timeout_backoff_limit, "0 to 20");
}

RequestClient::RequestClient(const RequestConfig& config, ScheduleExecutor& executor)
    : config_(checked(config)), executor_(executor), slots_(config.window) {
  status_.node_count = config_.requests;
}

void RequestClient::start(TimePs start_ps) {
  if (start_ps_ != kNever) throw std::logic_error("the client has been started already");
  start_ps_ = start_ps;
  wake();
}

void RequestClient::cancel(TimePs now) {
  if (status_.state == RunState::kWaiting || is_running()) end(now, RunState::kCancelled, "");
}

void RequestClient::end(TimePs now, RunState state, const std::string& reason) {
  status_.state = state;
  status_.finished_ps = now;
  status_.error = reason;
  resend_.clear();
  for (Slot& slot : slots_) slot = Slot();
  executor_.report_end(0);
}

// What is to be tried again goes first.
std::optional<uint32_t> RequestClient::next_request() {
  if (slot_of(next_sequence_).busy) return std::nullopt;
  if (to_retry_) return std::exchange(to_retry_, std::nullopt);
  if (next_request_ == config_.requests) return std::nullopt;
  return next_request_++;
}

PacketPtr RequestClient::pull(TimePs now) {
  if (!is_running()) return nullptr;
  if (!resend_.empty()) {
    Slot& slot = *resend_.front();
    resend_.pop_front();
    slot.queued = false;
    ++retransmitted_packets_;
    return send(now, slot);
  }
  const bool is_again = to_retry_.has_value();
  const std::optional<uint32_t> request = next_request();
  if (!request) return nullptr;
  Slot& slot = slots_[next_sequence_ % config_.window];
  slot = {.busy = true, .sequence = next_sequence_++, .request = *request};
  if (!is_again) begin(now, *request);
  return send(now, slot);
}

PacketPtr RequestClient::send(TimePs now, Slot& slot) {
  const uint32_t backoff = std::min(slot.timeouts, config_.timeout_backoff_limit);
  slot.deadline_ps = now + (config_.retransmission_timeout_ps << backoff);
  return compose(slot.sequence, slot.request);
}

std::optional<uint32_t> RequestClient::awaited(uint32_t sequence) const {
  const Slot& slot = slot_of(sequence);
  if (!is_running() || !slot.busy || slot.sequence != sequence) return std::nullopt;
  return slot.request;
}

void RequestClient::answered(TimePs now, uint32_t sequence, bool again) {
  Slot& slot = slots_[sequence % config_.window];
  if (slot.queued) std::erase(resend_, &slot);
  if (again) to_retry_ = slot.request;
  slot = Slot();
  if (!again && ++status_.nodes_done == status_.node_count) end(now, RunState::kFinished, "");
}

TimePs RequestClient::next_deadline() const {
  if (status_.state == RunState::kWaiting) return start_ps_;
  TimePs earliest = kNever;
  for (const Slot& slot : slots_)
    if (slot.busy && !slot.queued) earliest = std::min(earliest, slot.deadline_ps);
  return earliest;
}

void RequestClient::on_deadline(TimePs now) {
  if (status_.state == RunState::kWaiting && now >= start_ps_) {
    status_.state = RunState::kRunning;
    status_.started_ps = now;
    return;
  }
  if (!is_running()) return;
  for (Slot& slot : slots_) {
    if (!slot.busy || slot.queued || slot.deadline_ps > now) continue;
    if (++slot.timeouts > config_.retry_limit)
      return end(now, RunState::kFailed,
                 "request " + std::to_string(slot.request) + " was not answered (fault: network)");
    slot.queued = true;
    resend_.push_back(&slot);
  }
}

}  // namespace weft
