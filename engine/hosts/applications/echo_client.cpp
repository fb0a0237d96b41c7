#include "hosts/applications/echo_client.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft {
namespace {

const EchoConfig& checked(const EchoConfig& config) {
  if (config.count == 0 || config.count > 65535)
    throw std::invalid_argument("ping: count " + std::to_string(config.count) + " (valid: 1 to 65535)");
  if (config.interval_ps <= 0 || config.timeout_ps <= 0)
    throw std::invalid_argument("ping: interval_ps and timeout_ps must be above 0");
  return config;
}

}  // namespace

EchoClient::EchoClient(IpStack& stack, ScheduleExecutor& executor, const EchoConfig& config)
    : Application(stack, executor), config_(checked(config)), identifier_(stack.bind_echo(*this)) {
  progress().node_count = config_.count;
}

void EchoClient::begin(TimePs now) { on_timer(now); }

void EchoClient::on_timer(TimePs now) {
  if (records_.size() < config_.count &&
      (records_.empty() || now >= records_.back().sent_ps + config_.interval_ps))
    send_next(now);
  arm_next(now);
}

void EchoClient::send_next(TimePs now) {
  const auto sequence = static_cast<uint16_t>(records_.size());
  records_.emplace_back().sent_ps = now;
  PacketPtr data = stack().allocate(config_.data_bytes);
  std::memset(data->data(), 0, data->size());
  IpHeader header;
  header.destination = config_.destination;
  header.dscp = config_.dscp;
  header.hop_limit = config_.hop_limit;
  if (!stack().send_echo(header, identifier_, sequence, std::move(data)))
    settle(now, sequence, EchoOutcome::kNotSent, 0);
}

void EchoClient::arm_next(TimePs now) {
  if (!is_running()) return;
  if (records_.size() < config_.count) return arm(records_.back().sent_ps + config_.interval_ps);
  const TimePs last_ps = records_.back().sent_ps + config_.timeout_ps;
  if (progress().nodes_done < config_.count && now < last_ps) return arm(last_ps);
  stack().withdraw_echo(identifier_);
  finish();
}

void EchoClient::settle(TimePs now, uint16_t sequence, EchoOutcome outcome, uint8_t hop_limit,
                        const IpAddress& responder) {
  if (sequence >= records_.size()) return;
  EchoRecord& record = records_[sequence];
  if (record.outcome != EchoOutcome::kLost) {
    ++duplicates_;
    return;
  }
  if (!is_running() || now > record.sent_ps + config_.timeout_ps) return;
  record.outcome = outcome;
  record.hop_limit = hop_limit;
  record.responder = responder;
  if (outcome != EchoOutcome::kNotSent) record.round_trip_ps = now - record.sent_ps;
  ++progress().nodes_done;
  if (progress().nodes_done == config_.count) arm_next(now);
}

void EchoClient::on_echo_reply(TimePs now, const IpPacket& packet, uint16_t sequence) {
  settle(now, sequence, EchoOutcome::kAnswered, packet.hop_limit, packet.source);
}

// Of a request that has never left, no matter how long ago it should have.
void EchoClient::on_unsent(uint16_t sequence) {
  if (sequence >= records_.size() || records_[sequence].outcome != EchoOutcome::kLost) return;
  records_[sequence].outcome = EchoOutcome::kNotSent;
  if (is_running()) ++progress().nodes_done;
}

void EchoClient::on_error(TimePs now, const IcmpError& error, uint16_t sequence) {
  if (error.is_unsent) {
    on_unsent(sequence);
    return arm_next(now);
  }
  settle(now, sequence, error.is_time_exceeded ? EchoOutcome::kTimeExceeded : EchoOutcome::kUnreachable, 0,
         error.reporter);
}

}  // namespace weft
