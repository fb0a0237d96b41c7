#include "hosts/uet/read_responses.hpp"

#include <algorithm>
#include <utility>

#include "hosts/uet/stream_answers.hpp"

namespace weft::uet {

ReadResponses::ReadResponses(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
                             UetCounters& counters, PacketPool& pool, const MemoryRegistry& memory,
                             SendGate& gate, PathChoice* path_choice)
    : common_(common),
      config_(config),
      common_counters_(common_counters),
      counters_(counters),
      pool_(pool),
      memory_(memory),
      gate_(gate),
      path_choice_(path_choice),
      is_ordered_(config.service == UetService::kRod),
      headers_(headers_to_peer(common)),
      psn_map_(common.remote_initial_psn),
      sent_(common, gate, path_choice),
      largest_frame_bytes_(
          uet::frame_bytes<Request, ResponseData>(common.source_ip.is_ipv6, common.path_mtu_bytes)) {
  headers_.ecn = roce::kEct0;
}

void ReadResponses::open(uint16_t pdc, uint16_t initiator_pdc) {
  pdc_ = pdc;
  initiator_pdc_ = initiator_pdc;
}

void ReadResponses::close(TimePs now) {
  if (!is_waiting()) return;
  sent_.acknowledge(now, {.end = sent_.highest(), .first = sent_.highest()});
  note_progress(now);
}

void ReadResponses::stop() {
  is_stopped_ = true;
  parts_.clear();
  sent_.release();
}

std::optional<uint64_t> ReadResponses::sequence_to_send() {
  if (sent_.has_lost()) {
    if (const std::optional<uint64_t> lost = sent_.next_lost()) return lost;
  }
  const bool may_send = next_ < end() && next_ - sent_.accepted() < kMaxOutstanding;
  return may_send ? std::optional(next_) : std::nullopt;
}

bool ReadResponses::may_have_data() const {
  return !is_stopped_ && !refused_message_ && (wait_until_ps_ != kNever || sent_.has_lost() || next_ < end());
}

PacketPtr ReadResponses::pull(TimePs now) {
  wait_until_ps_ = kNever;
  if (is_stopped_ || refused_message_) return nullptr;
  const std::optional<uint64_t> sequence = sequence_to_send();
  if (!sequence) return nullptr;
  if (now < gate_.next_send_ps()) {
    wait_until_ps_ = gate_.next_send_ps();
    return nullptr;
  }
  const Part& part = parts_[*sequence - first_part_];
  const size_t frame_bytes = uet::frame_bytes<Request, ResponseData>(common_.source_ip.is_ipv6, part.bytes);
  if (!gate_.has_room(frame_bytes)) return nullptr;
  const bool retransmission = *sequence < sent_.highest();
  const bool asks = retransmission || *sequence + 1 == end() ||
                    sent_.should_ask(*sequence, gate_.in_flight_bytes() + frame_bytes, largest_frame_bytes_);
  const uint16_t entropy = (path_choice_ == nullptr ? common_.source_udp_port
                                                    : path_choice_->entropy(now, *sequence, retransmission)) &
                           kEntropyMask;
  set_entropy(headers_, entropy);
  headers_.dscp = retransmission ? config_.retransmission_dscp : config_.data_dscp;
  PacketPtr packet = build(part, *sequence, retransmission, asks);
  if (packet == nullptr) return nullptr;
  if (asks) sent_.ask(*sequence);
  if (!is_waiting()) progress_ps_ = now;
  common_counters_.data_bytes_sent += part.bytes;
  ++common_counters_.data_packets_sent;
  last_pulled_ = {part.bytes, part.message_offset == 0};
  if (sent_.record(now, *sequence, static_cast<uint16_t>(frame_bytes), entropy))
    ++common_counters_.retransmitted_packets;
  if (*sequence == next_) ++next_;
  return packet;
}

// The region is looked up for each packet, because it may have been deregistered meanwhile.
PacketPtr ReadResponses::build(const Part& part, uint64_t sequence, bool retransmission, bool asks) {
  const uint8_t* data = nullptr;
  if (part.bytes > 0) {
    const MemoryRegion* region = memory_.find(part.rkey, part.address, part.bytes, kRemoteRead);
    if (region == nullptr) {
      refused_message_ = part.message_id;
      return nullptr;
    }
    if (region->data != nullptr) {
      data = region->data + (part.address - region->virtual_address);
    } else if (region->foreign != nullptr) {
      refused_message_ = part.message_id;  // UET's READs reach no foreign memory
      return nullptr;
    }
  }
  const Request pds{.type = response_type(config_),
                    .next_header = kResponseData,
                    .retx = retransmission,
                    .ackreq = asks,
                    .clear_psn_offset = clear_offset(sent_.accepted(), sequence),
                    .psn = psn_map_.psn(sequence),
                    .spdcid = pdc_,
                    .dpdcid = initiator_pdc_};
  const ResponseData response{.opcode = kResponseWithData,
                              .return_code = kReturnOk,
                              .read_request_message_id = part.message_id,
                              .payload_length = part.bytes,
                              .message_offset = part.message_offset};
  const Body body{part.as_length ? nullptr : data, part.bytes, part.as_length};
  PacketPtr packet = build_frame(pool_, headers_, body, pds, response);
  packet->set_traffic_kind(part.traffic_kind);
  return packet;
}

void ReadResponses::forget_arrived() {
  parts_.erase(parts_.begin(), parts_.begin() + static_cast<ptrdiff_t>(sent_.accepted() - first_part_));
  first_part_ = sent_.accepted();
  next_ = std::max(next_, first_part_);
}

void ReadResponses::note_progress(TimePs now) {
  forget_arrived();
  retries_ = 0;
  progress_ps_ = now;
}

void ReadResponses::on_ack(TimePs now, const roce::ParsedPacket& packet) {
  ++common_counters_.acknowledgements_received;
  const AckPacket ack = load_ack(first_header(packet));
  const std::optional<SentStream::Arrivals> arrivals = read_arrivals(ack, psn_map_, sent_, packet.hop_limit);
  if (!arrivals) {
    ++common_counters_.invalid_acknowledgements;
    return;
  }
  if (sent_.acknowledge(now, *arrivals))
    note_progress(now);
  else
    ++common_counters_.stale_acknowledgements;
  detect_losses(now);
  if (gate_.follow_rate() && wait_until_ps_ != kNever)
    wait_until_ps_ = gate_.next_send_ps() <= now ? kNever : gate_.next_send_ps();
}

void ReadResponses::on_nack(TimePs now, const roce::ParsedPacket& packet) {
  Nack nack;
  wire::load_header(nack, first_header(packet));
  const int64_t signed_sequence = psn_map_.sequence(nack.nack_psn, sent_.accepted());
  if (signed_sequence < static_cast<int64_t>(sent_.accepted()) ||
      signed_sequence >= static_cast<int64_t>(sent_.highest())) {
    ++common_counters_.stale_acknowledgements;
    return;
  }
  const auto sequence = static_cast<uint64_t>(signed_sequence);
  const uint16_t entropy = packet.source_udp_port & kEntropyMask;
  switch (nack.nack_code) {
    case kNackTrimmed:
      if (path_choice_ != nullptr) path_choice_->on_delivered(now, entropy, 0, true);
      [[fallthrough]];
    case kNackTrimmedLastHop:
      ++counters_.trim_nacks_received;
      return lose(now, sequence, entropy);
    case kNackRodOutOfOrder:
      ++counters_.order_nacks_received;
      if (!is_ordered_) return;
      if (sequence > sent_.accepted() &&
          sent_.acknowledge(now, {.end = sequence, .first = sequence, .hop_limit = packet.hop_limit}))
        note_progress(now);
      return restart(now);
    default:
      // The timeout sees to it.
      ++counters_.other_nacks_received;
  }
}

// The packet was lost, but its path works.
void ReadResponses::lose(TimePs now, uint64_t sequence, uint16_t entropy) {
  if (is_ordered_) return restart(now);
  if (!sent_.take_refused_for_lost(sequence, entropy)) return;
  retries_ = 0;
  progress_ps_ = now;
  gate_.congestion_control().on_lost_bytes(now, false, sent_.packet(sequence).frame_bytes);
}

uint64_t ReadResponses::oldest_frame_bytes() {
  return is_waiting() ? sent_.packet(sent_.accepted()).frame_bytes : 0;
}

// Service rod: what follows a gap is not accepted, so all of it is sent again.
void ReadResponses::restart(TimePs now) {
  retries_ = 0;
  progress_ps_ = now;
  const uint64_t lost_bytes = oldest_frame_bytes();
  sent_.go_back(now, sent_.accepted(), next_);
  next_ = sent_.accepted();
  gate_.congestion_control().on_lost_bytes(now, false, lost_bytes);
}

void ReadResponses::detect_losses(TimePs now) {
  if (const uint64_t lost_bytes = sent_.detect_losses(now); lost_bytes > 0)
    gate_.congestion_control().on_lost_bytes(now, false, lost_bytes);
}

TimePs ReadResponses::retransmission_timeout_ps() const {
  const uint32_t doublings = std::min(retries_, common_.timeout_backoff_limit);
  return std::max(common_.retransmission_timeout_ps, sent_.round_trips().timeout_ps()) << doublings;
}

TimePs ReadResponses::timeout_deadline() const {
  if (!is_waiting() || is_stopped_ || is_unanswered_) return kNever;
  const TimePs from_ps = sent_.is_asked() ? progress_ps_ : std::max(progress_ps_, gate_.next_send_ps());
  return from_ps + retransmission_timeout_ps();
}

TimePs ReadResponses::next_deadline() const {
  if (is_stopped_) return kNever;
  return std::min({timeout_deadline(), wait_until_ps_, sent_.loss_deadline_ps()});
}

void ReadResponses::on_deadline(TimePs now) {
  if (is_stopped_) return;
  if (now >= wait_until_ps_) wait_until_ps_ = kNever;  // the NIC pulls next
  if (now >= sent_.loss_deadline_ps()) detect_losses(now);
  if (now >= timeout_deadline()) on_timeout(now);
}

void ReadResponses::on_timeout(TimePs now) {
  ++common_counters_.timeouts;
  if (retries_ == common_.retry_limit) {
    is_unanswered_ = true;
    return;
  }
  const TimePs overdue_ps = now - retransmission_timeout_ps();
  ++retries_;
  progress_ps_ = now;
  if (path_choice_ != nullptr) path_choice_->on_timeout(now);
  uint64_t lost_bytes = oldest_frame_bytes();
  if (is_ordered_) {
    sent_.go_back(now, sent_.accepted(), next_);
    next_ = sent_.accepted();
  } else {
    lost_bytes = sent_.take_overdue_for_lost(now, sent_.accepted(), sent_.highest(), overdue_ps);
  }
  gate_.congestion_control().on_lost_bytes(now, true, lost_bytes);
}

}  // namespace weft::uet
