#include "hosts/uet/rudi_initiator.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/uet/message_packets.hpp"
#include "hosts/uet/placing.hpp"
#include "hosts/uet/return_status.hpp"

namespace weft::uet {

RudiInitiator::RudiInitiator(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
                             UetCounters& counters, PacketPool& pool, SendGate& gate, PacketIdBlocks& ids,
                             PathChoice* path_choice, CompletionHandler* handler)
    : Sender(common, config, common_counters, counters, pool, gate, path_choice),
      ids_(ids, common.queue_pair),
      messages_(common.queue_pair, handler) {
  headers_.ecn = roce::kEct0;
}

void RudiInitiator::post(TimePs now, RcRequest request) {
  refuse_foreign(request.foreign, "RUDI");
  if (request.kind != CompletionKind::kWrite && request.kind != CompletionKind::kRead) {
    throw std::invalid_argument(std::string("a queue pair of RUDI carries no ") +
                                completion_kind_name(request.kind) +
                                " (valid: WRITE without immediate, READ)");
  }
  if (request.immediate) {
    throw std::invalid_argument(
        "a WRITE of RUDI may arrive twice, and an immediate must not (valid: WRITE without immediate, READ)");
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
  if (next_sequence_ == messages_.end_sequence() || next_sequence_ - sent_.accepted() >= kMaxOutstanding)
    return false;
  if (read_ends_.size() < common_.max_outstanding_reads) [[likely]]
    return true;
  const Message& message = messages_.at(next_sequence_);
  return message.kind != CompletionKind::kRead || next_sequence_ != message.first_sequence;
}

// What a READ brings fills links, not what it asks by, and its target limits nothing.
size_t RudiInitiator::gated_bytes(const Message& message, uint64_t part_bytes) const {
  const bool is_ipv6 = common_.source_ip.is_ipv6;
  return message.kind == CompletionKind::kRead ? frame_bytes<Rudi, ResponseData>(is_ipv6, part_bytes)
                                               : frame_bytes<Rudi, Standard>(is_ipv6, part_bytes);
}

bool RudiInitiator::may_have_data() const {
  return error_ == CompletionStatus::kSuccess &&
         (silence_.is_wanted() || wait_until_ps_ != kNever || sent_.has_lost() || may_send_next());
}

// What was lost goes first.
std::optional<uint64_t> RudiInitiator::sequence_to_send() {
  if (sent_.has_lost()) {
    if (const std::optional<uint64_t> lost = sent_.next_lost()) return lost;
  }
  return may_send_next() ? std::optional(next_sequence_) : std::nullopt;
}

PacketPtr RudiInitiator::build_request(const Message& message, uint64_t sequence, uint64_t offset,
                                       uint64_t payload_bytes) {
  const Rudi pds{.type = kRudiRequest,
                 .next_header = kRequestStandard,
                 .retx = sequence < sent_.highest(),
                 .pkt_id = ids_.id(sequence)};
  const uint8_t opcode = message.kind == CompletionKind::kRead ? kRead : kWrite;
  return build_message_packet(pool_, headers_, common_, message, opcode, sequence, offset, payload_bytes,
                              pds);
}

PacketPtr RudiInitiator::pull(TimePs now) {
  wait_until_ps_ = kNever;
  if (error_ != CompletionStatus::kSuccess) return nullptr;
  const bool repeats = silence_.take() && is_waiting();
  const std::optional<uint64_t> sequence = repeats ? repeat_oldest(now) : sequence_to_send();
  if (!sequence || (!repeats && !may_leave(now))) return nullptr;
  Message& message = messages_.at(*sequence, next_sequence_);
  const uint64_t offset = (*sequence - message.first_sequence) * common_.path_mtu_bytes;
  const uint64_t part_bytes = std::min<uint64_t>(common_.path_mtu_bytes, message.length_bytes - offset);
  const bool is_read = message.kind == CompletionKind::kRead;
  const uint64_t payload_bytes = is_read ? 0 : part_bytes;
  const size_t frame_bytes = gated_bytes(message, part_bytes);
  if (!repeats && !gate_.has_room(frame_bytes)) return nullptr;
  const bool retransmission = *sequence < sent_.highest();
  const uint16_t entropy = take_entropy(common_, path_choice_, now, *sequence, retransmission);
  set_entropy(headers_, entropy);
  headers_.dscp = retransmission ? config_.retransmission_dscp : config_.data_dscp;
  PacketPtr packet = build_request(message, *sequence, offset, payload_bytes);
  packet->set_traffic_kind(message.traffic_kind);
  common_counters_.data_bytes_sent += payload_bytes;
  ++common_counters_.data_packets_sent;
  if (is_read && *sequence == next_sequence_ && next_sequence_ == message.first_sequence)
    read_ends_.push_back(message.end_sequence);
  if (record(now, *sequence, frame_bytes, entropy, true)) {
    ++common_counters_.retransmitted_packets;
    ++message.retransmitted_packets;
  }
  last_pulled_ = {payload_bytes, *sequence == message.first_sequence};
  return packet;
}

std::optional<uint64_t> RudiInitiator::find(uint32_t packet_id) {
  const std::optional<uint64_t> sequence = ids_.sequence(packet_id);
  return sequence_out(sequence ? static_cast<int64_t>(*sequence) : -1);
}

bool RudiInitiator::place(const roce::ParsedPacket& packet, const RudiResponsePacket& answer,
                          uint64_t sequence) {
  const Message& message = messages_.at(sequence);
  if (message.kind != CompletionKind::kRead) return !answer.data;
  const uint64_t offset = (sequence - message.first_sequence) * common_.path_mtu_bytes;
  if (!answer.data || answer.data->opcode != kResponseWithData || answer.data->message_offset != offset ||
      answer.data->read_request_message_id != message.id)
    return false;
  if (!place_read_data(packet, *answer.data, message.target, message.length_bytes, common_.path_mtu_bytes))
    return false;
  ++common_counters_.data_packets_received;
  common_counters_.data_bytes_received += packet.payload_bytes;
  return true;
}

void RudiInitiator::on_response(TimePs now, const roce::ParsedPacket& packet) {
  if (error_ != CompletionStatus::kSuccess) return;
  const RudiResponsePacket answer = load_rudi_response(first_header(packet));
  if (answer.data && packet.ecn == roce::kCe) ++common_counters_.ce_marked_packets;
  if (!packet.trimmed) ++common_counters_.acknowledgements_received;
  const std::optional<uint64_t> sequence = find(answer.pds.pkt_id);
  if (!sequence) return;
  if (packet.trimmed) {
    ++counters_.responses_trimmed;
    const uint16_t entropy = packet.source_udp_port & kEntropyMask;
    // At its last hop a packet meets those of other senders, which no other path avoids.
    if (packet.dscp != kDscpTrimmedLastHop && path_choice_ != nullptr)
      path_choice_->on_delivered(now, entropy, 0, true);
    return lose(now, *sequence, entropy);
  }
  if (answer.return_code > kReturnOk) {
    ++common_counters_.fatal_naks_received;
    fail(status_of_return_code(answer.return_code));
    return deliver_completions(now);
  }
  if (!place(packet, answer, *sequence)) {
    ++counters_.wrong_responses;
    return;
  }
  // Data may be marked on either way; both are this initiator's doing.
  const bool marked = answer.pds.m || (answer.data && packet.ecn == roce::kCe);
  const SentStream::Arrivals arrivals{
      .end = sent_.accepted(), .answered = sequence, .marked = marked, .hop_limit = packet.hop_limit};
  if (!acknowledge(now, arrivals)) ++common_counters_.stale_acknowledgements;
  ids_.release_before(sent_.accepted());
  while (!read_ends_.empty() && read_ends_.front() <= sent_.accepted()) read_ends_.pop_front();
  detect_losses(now);
  follow_rate(now);
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
    case kNackTrimmedLastHop:
      note_trimming(now, nack.nack_code, entropy);
      return lose(now, *sequence, entropy);
    default:
      // No target of ours sends it. A timeout comes if it means that the packet is lost.
      ++counters_.other_nacks_received;
  }
}

TimePs RudiInitiator::next_deadline() const {
  const TimePs of_congestion_ps = gate_.congestion_control().next_deadline();
  if (error_ != CompletionStatus::kSuccess) return of_congestion_ps;
  return std::min({timeout_deadline(), repetition_deadline(), sending_deadline(), of_congestion_ps});
}

void RudiInitiator::on_deadline(TimePs now) {
  end_wait(now);
  CongestionControl& congestion_control = gate_.congestion_control();
  if (now >= congestion_control.next_deadline()) congestion_control.on_deadline(now);
  if (error_ != CompletionStatus::kSuccess) return;
  if (now >= sent_.loss_deadline_ps()) detect_losses(now);
  if (now >= repetition_deadline()) silence_.ask(now);
  if (now >= timeout_deadline() && !take_timeout(now)) fail(CompletionStatus::kRetryExceeded);
  gate_.follow_rate();
  deliver_completions(now);
}

void RudiInitiator::fail(CompletionStatus status) {
  error_ = status;
  read_ends_.clear();
  stop();
}

}  // namespace weft::uet
