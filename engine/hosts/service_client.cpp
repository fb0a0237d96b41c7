#include "hosts/service_client.hpp"

#include <stdexcept>
#include <string>

#include "hosts/options.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/service_format.hpp"

namespace weft {
namespace {

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
  check(config.requests);
  if (config.cells == 0) refuse_setting("service client: cells", 0, "1 or more");
  if (config.requests.window != 1 && config.operation != ServiceOperation::kFetchAndAdd)
    refuse_setting("service client: window", config.requests.window, "1 unless fetch-and-add");
  if (config.source_ip.is_ipv6 != config.destination_ip.is_ipv6)
    throw std::invalid_argument("service client: source and destination are of different IP versions");
}

ServiceClient::ServiceClient(const ServiceConfig& config, PacketPool& pool, ScheduleExecutor& executor)
    : RequestClient(checked(config).requests, executor),
      config_(config),
      pool_(pool),
      headers_(request_headers(config)),
      template_(headers_),
      expected_(config.cells),
      records_(config.requests.requests) {}

PulledPacket ServiceClient::last_pulled() const {
  return {.payload_bytes = service::kHeaderBytes, .starts_message = true};
}

PacketPtr ServiceClient::compose(uint32_t sequence, uint32_t request) {
  service::Header header{.operation = static_cast<uint8_t>(config_.operation),
                         .group_id = config_.group_id,
                         .epoch = config_.epoch,
                         .cell = cell_of(request),
                         .sequence = sequence,
                         .member = config_.member};
  if (config_.operation == ServiceOperation::kFetchAndAdd) header.operand = config_.addend;
  if (config_.operation == ServiceOperation::kCompareAndSwap) {
    header.comparand = expected_[header.cell];
    header.operand = header.comparand + config_.addend;
  }
  headers_.bth.psn = sequence & 0xFFFFFF;
  ++counters_.requests_sent;
  const auto payload = service::encoded(header);
  return template_.build(pool_, headers_, payload.data(), payload.size());
}

void ServiceClient::on_packet(TimePs now, const roce::ParsedPacket& packet) {
  if (packet.payload == nullptr || packet.payload_bytes != service::kHeaderBytes) {
    ++counters_.foreign_answers;
    return;
  }
  const service::Header header = service::decoded(packet.payload);
  const bool is_barrier = config_.operation == ServiceOperation::kBarrier;
  if (header.version != service::kVersion || header.kind != service::kAnswer ||
      header.group_id != config_.group_id || header.epoch != config_.epoch ||
      packet.deth.q_key != config_.q_key || header.operation != static_cast<uint8_t>(config_.operation) ||
      (!is_barrier && header.member != config_.member)) {
    ++counters_.foreign_answers;
    return;
  }
  const auto request = awaited(header.sequence);
  if (!request || header.cell != cell_of(*request)) {
    ++counters_.stale_answers;
    return;
  }
  ++counters_.answers_accepted;
  ServiceRecord& record = records_[*request];
  ++record.attempts;
  bool found_another = false;
  if (config_.operation == ServiceOperation::kCompareAndSwap) {
    uint64_t& expected = expected_[header.cell];
    found_another = header.operand != expected;
    expected = found_another ? header.operand : expected + config_.addend;
  }
  if (!found_another) {
    record.finished_ps = now;
    record.value = header.operand;
  }
  answered(now, header.sequence, found_another);
}

}  // namespace weft
