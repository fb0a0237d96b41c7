#include "hosts/service_client.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "hosts/rc_config.hpp"
#include "hosts/service_format.hpp"

namespace weft {
namespace {

[[noreturn]] void refuse(const char* parameter, uint64_t value, const char* valid) {
  throw std::invalid_argument(std::string("service client: ") + parameter + " " + std::to_string(value) +
                              " (valid: " + valid + ")");
}

const ServiceConfig& checked(const ServiceConfig& config) {
  check(config);
  return config;
}

roce::RoceHeaders request_headers(const ServiceConfig& config) {
  roce::RoceHeaders headers = headers_on_path(config);
  headers.bth.opcode = roce::kUdSendOnly;
  headers.bth.destination_qp = service::kQueuePair;
  headers.deth = {config.q_key, service::kQueuePair};
  return headers;
}

}  // namespace

void check(const ServiceConfig& config) {
  if (config.requests == 0) refuse("requests", 0, "1 or more");
  if (config.cells == 0) refuse("cells", 0, "1 or more");
  if (!std::has_single_bit(config.window)) refuse("window", config.window, "a power of two");
  if (config.window != 1 && config.operation != ServiceOperation::kFetchAndAdd)
    refuse("window", config.window, "1 unless fetch-and-add");
  if (config.retransmission_timeout_ps <= 0)
    refuse("retransmission_timeout_ps", static_cast<uint64_t>(config.retransmission_timeout_ps), "above 0");
  if (config.timeout_backoff_limit > 20)
    refuse("timeout_backoff_limit", config.timeout_backoff_limit, "0 to 20");
  if (config.source_ip.is_ipv6 != config.destination_ip.is_ipv6)
    throw std::invalid_argument("service client: source and destination are of different IP versions");
}

ServiceClient::ServiceClient(const ServiceConfig& config, PacketPool& pool, ScheduleExecutor& executor)
    : config_(checked(config)),
      pool_(pool),
      executor_(executor),
      headers_(request_headers(config)),
      template_(headers_),
      slots_(config.window),
      expected_(config.cells),
      records_(config.requests) {
  status_.node_count = config_.requests;
}

void ServiceClient::start(TimePs start_ps) {
  if (start_ps_ != kNever) throw std::logic_error("the service client has been started already");
  start_ps_ = start_ps;
  wake();
}

void ServiceClient::cancel(TimePs now) {
  if (status_.state == RunState::kWaiting || is_running()) end(now, RunState::kCancelled, "");
}

void ServiceClient::end(TimePs now, RunState state, const std::string& reason) {
  status_.state = state;
  status_.finished_ps = now;
  status_.error = reason;
  resend_.clear();
  for (Slot& slot : slots_) slot = Slot();
  executor_.report_end(0);
}

PulledPacket ServiceClient::last_pulled() const {
  return {.payload_bytes = service::kHeaderBytes, .starts_message = true};
}

// A counter of several cells is asked in turn, and a request that is to be tried again goes first.
std::optional<uint32_t> ServiceClient::next_request() {
  if (slots_[next_sequence_ % config_.window].busy) return std::nullopt;
  if (to_retry_) return std::exchange(to_retry_, std::nullopt);
  if (next_request_ == config_.requests) return std::nullopt;
  return next_request_++;
}

PacketPtr ServiceClient::pull(TimePs now) {
  if (!is_running()) return nullptr;
  if (!resend_.empty()) {
    Slot& slot = *resend_.front();
    resend_.pop_front();
    slot.queued = false;
    ++counters_.retransmitted_packets;
    return send(now, slot);
  }
  const std::optional<uint32_t> request = next_request();
  if (!request) return nullptr;
  Slot& slot = slots_[next_sequence_ % config_.window];
  slot = {.busy = true,
          .sequence = next_sequence_++,
          .request = *request,
          .comparand = expected_[cell_of(*request)]};
  ServiceRecord& record = records_[*request];
  if (record.attempts++ == 0) record.started_ps = now;
  return send(now, slot);
}

PacketPtr ServiceClient::send(TimePs now, Slot& slot) {
  service::Header header{.operation = static_cast<uint8_t>(config_.operation),
                         .group_id = config_.group_id,
                         .epoch = config_.epoch,
                         .cell = cell_of(slot.request),
                         .sequence = slot.sequence,
                         .member = config_.member};
  if (config_.operation == ServiceOperation::kFetchAndAdd) header.operand = config_.addend;
  if (config_.operation == ServiceOperation::kCompareAndSwap) {
    header.comparand = slot.comparand;
    header.operand = slot.comparand + config_.addend;
  }
  headers_.bth.psn = slot.sequence & 0xFFFFFF;
  const uint32_t backoff = std::min(slot.timeouts, config_.timeout_backoff_limit);
  slot.deadline_ps = now + (config_.retransmission_timeout_ps << backoff);
  ++counters_.requests_sent;
  const auto payload = service::encoded(header);
  return template_.build(pool_, headers_, payload.data(), payload.size());
}

// The slot whose answer a packet is; null, and counted, if it is not accepted.
ServiceClient::Slot* ServiceClient::slot_answered(const roce::ParsedPacket& packet, uint64_t& value) {
  if (packet.payload == nullptr || packet.payload_bytes != service::kHeaderBytes) {
    ++counters_.foreign_answers;
    return nullptr;
  }
  const service::Header header = service::decoded(packet.payload);
  const bool is_barrier = config_.operation == ServiceOperation::kBarrier;
  if (header.version != service::kVersion || header.kind != service::kAnswer ||
      header.group_id != config_.group_id || header.epoch != config_.epoch ||
      packet.deth.q_key != config_.q_key || header.operation != static_cast<uint8_t>(config_.operation) ||
      (!is_barrier && header.member != config_.member)) {
    ++counters_.foreign_answers;
    return nullptr;
  }
  Slot& slot = slots_[header.sequence % config_.window];
  if (!slot.busy || slot.sequence != header.sequence || header.cell != cell_of(slot.request)) {
    ++counters_.stale_answers;
    return nullptr;
  }
  value = header.operand;
  return &slot;
}

void ServiceClient::on_packet(TimePs now, const roce::ParsedPacket& packet) {
  if (!is_running()) {
    ++counters_.stale_answers;
    return;
  }
  uint64_t value = 0;
  Slot* const slot = slot_answered(packet, value);
  if (slot == nullptr) return;
  ++counters_.answers_accepted;
  const uint32_t request = slot->request;
  const bool found_another =
      config_.operation == ServiceOperation::kCompareAndSwap && value != slot->comparand;
  if (slot->queued) std::erase(resend_, slot);
  *slot = Slot();
  if (config_.operation == ServiceOperation::kCompareAndSwap)
    expected_[cell_of(request)] = found_another ? value : value + config_.addend;
  if (found_another) {
    to_retry_ = request;
    return;
  }
  records_[request].finished_ps = now;
  records_[request].value = value;
  if (++status_.nodes_done == status_.node_count) end(now, RunState::kFinished, "");
}

TimePs ServiceClient::next_deadline() const {
  if (status_.state == RunState::kWaiting) return start_ps_;
  if (!is_running()) return kNever;
  TimePs earliest = kNever;
  for (const Slot& slot : slots_)
    if (slot.busy && !slot.queued) earliest = std::min(earliest, slot.deadline_ps);
  return earliest;
}

void ServiceClient::on_deadline(TimePs now) {
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
                 "request " + std::to_string(slot.request) + " of group " + std::to_string(config_.group_id) +
                     " was not answered (fault: network)");
    slot.queued = true;
    resend_.push_back(&slot);
  }
}

}  // namespace weft
