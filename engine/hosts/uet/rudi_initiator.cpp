#include "hosts/uet/rudi_initiator.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/uet/message_packets.hpp"
#include "hosts/uet/return_status.hpp"

namespace weft::uet {

RudiInitiator::RudiInitiator(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
                             UetCounters& counters, PacketPool& pool, SendGate& gate, PacketIdBlocks& ids,
                             PathChoice* path_choice, CompletionHandler* handler)
    : common_(common),
      config_(config),
      common_counters_(common_counters),
      counters_(counters),
      pool_(pool),
      gate_(gate),
      path_choice_(path_choice),
      headers_(headers_to_peer(common)),
      ids_(ids, common.queue_pair),
      messages_(common.queue_pair, handler),
      sent_(common, gate, path_choice) {
  headers_.ecn = roce::kEct0;
}

void RudiInitiator::post(TimePs now, RcRequest request) {
  refuse_foreign(request.foreign, "RUDI");
  if (request.kind != CompletionKind::kWrite) {
    throw std::invalid_argument(std::string("a queue pair of RUDI carries no ") +
                                completion_kind_name(request.kind) + " (valid: WRITE without immediate)");
  }
  if (request.immediate) {
    throw std::invalid_argument(
        "a WRITE of RUDI may arrive twice, and an immediate must not (valid: WRITE without immediate)");
  }
  if (request.length_bytes > kMaxMessageBytes) {
    throw std::invalid_argument("message of " + std::to_string(request.length_bytes) +
                                " bytes (valid: at most 2147483648)");
  }
  if (request.posted_ps == kNever) request.posted_ps = now;
  const uint64_t packets = packets_of_payload(request.length_bytes, common_.path_mtu_bytes);
  messages_.add(std::move(request), packets);
  if (error_ != CompletionStatus::kSuccess) deliver_completions(now);
}

bool RudiInitiator::may_send_next() const {
  return next_sequence_ != messages_.end_sequence() && next_sequence_ - sent_.accepted() < kMaxOutstanding;
}

bool RudiInitiator::may_have_data() const {
  return error_ == CompletionStatus::kSuccess &&
         (wait_until_ps_ != kNever || sent_.has_lost() || may_send_next());
}

PacketPtr RudiInitiator::build_request(const Message& message, uint64_t sequence, uint64_t offset,
                                       uint64_t payload_bytes) {
  const Rudi pds{.type = kRudiRequest,
                 .next_header = kRequestStandard,
                 .retx = sequence < sent_.highest(),
                 .pkt_id = ids_.id(sequence)};
  return build_message_packet(pool_, headers_, common_, message, kWrite, sequence, offset, payload_bytes,
                              pds);
}

PacketPtr RudiInitiator::pull(TimePs now) {
  wait_until_ps_ = kNever;
  if (error_ != CompletionStatus::kSuccess) return nullptr;
  // What was lost goes first.
  std::optional<uint64_t> sequence = sent_.has_lost() ? sent_.next_lost() : std::nullopt;
  if (!sequence && may_send_next()) sequence = next_sequence_;
  if (!sequence) return nullptr;
  if (now < gate_.next_send_ps()) {
    wait_until_ps_ = gate_.next_send_ps();
    return nullptr;
  }
  Message& message = messages_.at(*sequence, next_sequence_);
  const uint64_t offset = (*sequence - message.first_sequence) * common_.path_mtu_bytes;
  const uint64_t payload_bytes = std::min<uint64_t>(common_.path_mtu_bytes, message.length_bytes - offset);
  const size_t frame_bytes = uet::frame_bytes<Rudi, Standard>(common_.source_ip.is_ipv6, payload_bytes);
  if (!gate_.has_room(frame_bytes)) return nullptr;
  const bool retransmission = *sequence < sent_.highest();
  const uint16_t entropy = (path_choice_ == nullptr ? common_.source_udp_port
                                                    : path_choice_->entropy(now, *sequence, retransmission)) &
                           kEntropyMask;
  set_entropy(headers_, entropy);
  headers_.dscp = retransmission ? config_.retransmission_dscp : config_.data_dscp;
  PacketPtr packet = build_request(message, *sequence, offset, payload_bytes);
  packet->set_traffic_kind(message.traffic_kind);
  common_counters_.data_bytes_sent += payload_bytes;
  ++common_counters_.data_packets_sent;
  if (sent_.highest() == sent_.accepted()) progress_ps_ = now;
  sent_.ask(*sequence);
  if (sent_.record(now, *sequence, static_cast<uint16_t>(frame_bytes), entropy)) {
    ++common_counters_.retransmitted_packets;
    ++message.retransmitted_packets;
  }
  last_pulled_ = {payload_bytes, *sequence == message.first_sequence};
  if (*sequence == next_sequence_) ++next_sequence_;
  return packet;
}

std::optional<uint64_t> RudiInitiator::find(uint32_t packet_id) {
  const std::optional<uint64_t> sequence = ids_.sequence(packet_id);
  if (sequence && *sequence >= sent_.accepted() && *sequence < sent_.highest()) return sequence;
  ++common_counters_.stale_acknowledgements;
  return std::nullopt;
}

void RudiInitiator::on_response(TimePs now, const roce::ParsedPacket& packet) {
  if (error_ != CompletionStatus::kSuccess) return;
  const RudiResponsePacket answer = load_rudi_response(first_header(packet));
  ++common_counters_.acknowledgements_received;
  const std::optional<uint64_t> sequence = find(answer.pds.pkt_id);
  if (!sequence) return;
  if (answer.response.return_code > kReturnOk) {
    ++common_counters_.fatal_naks_received;
    fail(status_of_return_code(answer.response.return_code));
    return deliver_completions(now);
  }
  if (sent_.acknowledge(now, {.end = sent_.accepted(),
                              .answered = sequence,
                              .marked = answer.pds.m,
                              .hop_limit = packet.hop_limit})) {
    retries_ = 0;
    progress_ps_ = now;
  } else {
    ++common_counters_.stale_acknowledgements;
  }
  ids_.release_before(sent_.accepted());
  detect_losses(now);
  if (gate_.follow_rate() && wait_until_ps_ != kNever)
    wait_until_ps_ = gate_.next_send_ps() <= now ? kNever : gate_.next_send_ps();
  deliver_completions(now);
}

void RudiInitiator::on_nack(TimePs now, const roce::ParsedPacket& packet) {
  if (error_ != CompletionStatus::kSuccess) return;
  Nack nack;
  wire::load_header(nack, first_header(packet));
  const std::optional<uint64_t> sequence = find(nack.nack_psn);
  if (!sequence) return;
  const uint16_t entropy = packet.source_udp_port & kEntropyMask;
  switch (nack.nack_code) {
    case kNackTrimmed:
      // At its last hop a packet meets those of other senders, which no other path avoids.
      if (path_choice_ != nullptr) path_choice_->on_delivered(now, entropy, 0, true);
      [[fallthrough]];
    case kNackTrimmedLastHop:
      ++counters_.trim_nacks_received;
      if (!sent_.take_refused_for_lost(*sequence, entropy)) return;
      retries_ = 0;
      progress_ps_ = now;
      return gate_.congestion_control().on_lost_bytes(now, false, sent_.packet(*sequence).frame_bytes);
    default:
      // No target of ours sends it. A timeout comes if it means that the packet is lost.
      ++counters_.other_nacks_received;
  }
}

void RudiInitiator::detect_losses(TimePs now) {
  if (const uint64_t lost_bytes = sent_.detect_losses(now); lost_bytes > 0)
    gate_.congestion_control().on_lost_bytes(now, false, lost_bytes);
}

TimePs RudiInitiator::timeout_ps() const {
  const uint32_t doublings = std::min(retries_, common_.timeout_backoff_limit);
  return std::max(common_.retransmission_timeout_ps, sent_.round_trips().timeout_ps()) << doublings;
}

TimePs RudiInitiator::timeout_deadline() const {
  return sent_.highest() == sent_.accepted() ? kNever : progress_ps_ + timeout_ps();
}

TimePs RudiInitiator::next_deadline() const {
  const TimePs of_congestion_ps = gate_.congestion_control().next_deadline();
  if (error_ != CompletionStatus::kSuccess) return of_congestion_ps;
  return std::min({timeout_deadline(), wait_until_ps_, sent_.loss_deadline_ps(), of_congestion_ps});
}

void RudiInitiator::on_deadline(TimePs now) {
  if (now >= wait_until_ps_) wait_until_ps_ = kNever;  // the NIC pulls next
  CongestionControl& congestion_control = gate_.congestion_control();
  if (now >= congestion_control.next_deadline()) congestion_control.on_deadline(now);
  if (error_ != CompletionStatus::kSuccess) return;
  if (now >= sent_.loss_deadline_ps()) detect_losses(now);
  if (now >= timeout_deadline()) on_timeout(now);
  gate_.follow_rate();
  deliver_completions(now);
}

void RudiInitiator::on_timeout(TimePs now) {
  ++common_counters_.timeouts;
  if (retries_ == common_.retry_limit) return fail(CompletionStatus::kRetryExceeded);
  const TimePs overdue_ps = now - timeout_ps();
  ++retries_;
  progress_ps_ = now;
  if (path_choice_ != nullptr) path_choice_->on_timeout(now);
  const uint64_t lost_bytes = sent_.take_overdue_for_lost(now, sent_.accepted(), sent_.highest(), overdue_ps);
  gate_.congestion_control().on_lost_bytes(now, true, lost_bytes);
}

void RudiInitiator::fail(CompletionStatus status) {
  error_ = status;
  sent_.release();
  wait_until_ps_ = kNever;
}

}  // namespace weft::uet
