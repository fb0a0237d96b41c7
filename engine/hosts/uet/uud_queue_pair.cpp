#include "hosts/uet/uud_queue_pair.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/uet/message_packets.hpp"

namespace weft {
UudQueuePair::UudQueuePair(const RcConfig& common, const UetConfig& config, PacketPool& pool,
                           std::shared_ptr<uet::PdcTable> pdcs,
                           std::shared_ptr<CongestionControl> congestion_control,
                           std::shared_ptr<PathChoice> path_choice, CompletionHandler* handler)
    : ServiceQueuePair(common, config, config.service == UetService::kUud,
                       "service is not uud (valid for a queue pair of UUD: uud)", std::move(pdcs),
                       std::move(congestion_control), std::move(path_choice)),
      pool_(pool),
      headers_(headers_to_peer(config_)),
      messages_(config_.queue_pair, handler),
      receives_(config_.queue_pair, handler) {
  headers_.ecn = roce::kEct0;
  headers_.dscp = uet_config_.data_dscp;
}

void UudQueuePair::post(TimePs now, RcRequest request) {
  refuse_foreign(request.foreign, "UUD");
  if (request.kind != CompletionKind::kSend) {
    throw std::invalid_argument(std::string("a queue pair of UUD carries no ") +
                                completion_kind_name(request.kind) +
                                " (valid: SEND, with or without immediate)");
  }
  if (request.length_bytes > config_.path_mtu_bytes) {
    throw std::invalid_argument("datagram of " + std::to_string(request.length_bytes) +
                                " bytes (valid: at most a packet, " + std::to_string(config_.path_mtu_bytes) +
                                ")");
  }
  if (request.posted_ps == kNever) request.posted_ps = now;
  messages_.add(std::move(request), 1);
  if (error_ != CompletionStatus::kSuccess) deliver_completions(now);
  wake();
}

void UudQueuePair::post_receive(TimePs now, PostedReceive receive) {
  refuse_foreign(receive.foreign, "UUD");
  if (error_ != CompletionStatus::kSuccess) return receives_.refuse(now, receive);
  receives_.push(std::move(receive));
}

PacketPtr UudQueuePair::pull(TimePs now) {
  if (!has_next()) return nullptr;
  const uet::Message& message = messages_.at(next_sequence_, next_sequence_);
  set_entropy(headers_, uet::take_entropy(config_, path_choice_.get(), now, next_sequence_, false));
  PacketPtr packet =
      uet::build_message_packet(pool_, headers_, config_, message, uet::kDatagramSend, next_sequence_, 0,
                                message.length_bytes, uet::Uud{.next_header = uet::kRequestStandard});
  packet->set_traffic_kind(message.traffic_kind);
  counters_.data_bytes_sent += message.length_bytes;
  ++counters_.data_packets_sent;
  last_pulled_ = {message.length_bytes, true};
  ++next_sequence_;
  due_ps_ = now;
  return packet;
}

void UudQueuePair::on_deadline(TimePs now) {
  if (now < due_ps_) return;
  due_ps_ = kNever;
  deliver_completions(now);
}

void UudQueuePair::on_packet(TimePs now, const roce::ParsedPacket& packet) {
  if (!is_from_peer(packet)) return;
  if (uet::type_of(uet::first_header(packet)) != uet::kUudRequest) {
    ++counters_.unexpected_opcode;
    return;
  }
  if (error_ != CompletionStatus::kSuccess) {
    ++counters_.dropped_in_error;
    return;
  }
  on_datagram(now, packet);
}

void UudQueuePair::on_datagram(TimePs now, const roce::ParsedPacket& packet) {
  if (packet.ecn == roce::kCe) ++counters_.ce_marked_packets;
  if (packet.trimmed) {
    ++uet_counters_.datagrams_trimmed;
    return;
  }
  const uet::WriteHeader send = uet::load_datagram(uet::first_header(packet));
  const bool is_whole =
      send.starts_message && send.ends_message && send.request_length == packet.payload_bytes;
  if (send.opcode != uet::kDatagramSend || !is_whole) {
    ++counters_.unexpected_opcode;
    return;
  }
  if (receives_.empty()) {
    ++uet_counters_.datagrams_without_receive;
    return;
  }
  const PostedReceive& receive = receives_.front();
  if (receive.length_bytes < packet.payload_bytes) {
    ++uet_counters_.datagrams_too_long;
    return;
  }
  if (receive.data != nullptr && !packet.as_length)
    std::copy_n(packet.payload, packet.payload_bytes, receive.data);
  ++counters_.data_packets_received;
  counters_.data_bytes_received += packet.payload_bytes;
  receives_.finish(
      now, CompletionKind::kReceive, true, packet.payload_bytes,
      send.has_header_data ? std::optional(static_cast<uint32_t>(send.header_data)) : std::nullopt);
}

void UudQueuePair::fail() {
  error_ = CompletionStatus::kFlushed;
  due_ps_ = kNever;
}

std::vector<RcRequest> UudQueuePair::withdraw(TimePs now) {
  std::vector<RcRequest> left = messages_.withdraw();
  flush(now);
  return left;
}

void UudQueuePair::flush(TimePs now) {
  if (error_ != CompletionStatus::kSuccess) return;
  fail();
  deliver_completions(now);
  receives_.flush(now);
  wake();
}

void UudQueuePair::observe(Probe* probe, ConnectionEnds ends, bool messages, bool /*telemetry*/) {
  ends_ = ends;
  messages_.observe(messages ? probe : nullptr, ends);
}

}  // namespace weft
