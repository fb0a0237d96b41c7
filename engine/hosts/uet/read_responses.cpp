#include "hosts/uet/read_responses.hpp"

#include <algorithm>
#include <utility>

#include "hosts/uet/message_packets.hpp"
#include "hosts/uet/stream_answers.hpp"

namespace weft::uet {

ReadResponses::ReadResponses(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
                             UetCounters& counters, PacketPool& pool, const MemoryRegistry& memory,
                             SendGate& gate, PathChoice* path_choice)
    : Sender(common, config, common_counters, counters, pool, gate, path_choice),
      memory_(memory),
      psn_map_(common.remote_initial_psn),
      largest_frame_bytes_(
          uet::frame_bytes<Request, ResponseData>(common.source_ip.is_ipv6, common.path_mtu_bytes)) {
  headers_.ecn = roce::kEct0;
}

void ReadResponses::open(uint16_t pdc, uint16_t initiator_pdc) {
  pdc_ = pdc;
  initiator_pdc_ = initiator_pdc;
}

void ReadResponses::close(TimePs now) {
  if (is_waiting()) take_news(now, {.end = sent_.highest(), .first = sent_.highest()});
}

void ReadResponses::stop() {
  is_stopped_ = true;
  parts_.clear();
  Sender::stop();
}

std::optional<uint64_t> ReadResponses::sequence_to_send() {
  if (sent_.has_lost()) {
    if (const std::optional<uint64_t> lost = sent_.next_lost()) return lost;
  }
  const bool may_send = next_sequence_ < end() && next_sequence_ - sent_.accepted() < kMaxOutstanding;
  return may_send ? std::optional(next_sequence_) : std::nullopt;
}

bool ReadResponses::may_have_data() const {
  if (is_stopped_ || refused_message_) return false;
  return silence_.is_wanted() || wait_until_ps_ != kNever || sent_.has_lost() || next_sequence_ < end();
}

PacketPtr ReadResponses::pull(TimePs now) {
  wait_until_ps_ = kNever;
  if (is_stopped_ || refused_message_) return nullptr;
  const bool repeats = silence_.take() && is_waiting();
  const std::optional<uint64_t> sequence = repeats ? repeat_oldest(now) : sequence_to_send();
  if (!sequence || (!repeats && !may_leave(now))) return nullptr;
  const ReadPart& part = parts_[*sequence - first_part_];
  const size_t frame_bytes = uet::frame_bytes<Request, ResponseData>(common_.source_ip.is_ipv6, part.bytes);
  if (!repeats && !gate_.has_room(frame_bytes)) return nullptr;
  const bool retransmission = *sequence < sent_.highest();
  const bool asks = retransmission || *sequence + 1 == end() ||
                    sent_.should_ask(*sequence, gate_.in_flight_bytes() + frame_bytes, largest_frame_bytes_);
  const uint16_t entropy = take_entropy(common_, path_choice_, now, *sequence, retransmission);
  set_entropy(headers_, entropy);
  headers_.dscp = retransmission ? config_.retransmission_dscp : config_.data_dscp;
  PacketPtr packet = build(part, *sequence, retransmission, asks);
  if (packet == nullptr) return nullptr;
  common_counters_.data_bytes_sent += part.bytes;
  ++common_counters_.data_packets_sent;
  last_pulled_ = {part.bytes, part.message_offset == 0};
  if (record(now, *sequence, frame_bytes, entropy, asks)) ++common_counters_.retransmitted_packets;
  return packet;
}

PacketPtr ReadResponses::build(const ReadPart& part, uint64_t sequence, bool retransmission, bool asks) {
  const std::optional<Body> body = body_of(part, memory_);
  if (!body) {
    refused_message_ = part.message_id;
    return nullptr;
  }
  const Request pds{.type = response_type(config_),
                    .next_header = kResponseData,
                    .retx = retransmission,
                    .ackreq = asks,
                    .clear_psn_offset = clear_offset(sent_.accepted(), sequence),
                    .psn = psn_map_.psn(sequence),
                    .spdcid = pdc_,
                    .dpdcid = initiator_pdc_};
  PacketPtr packet = build_frame(pool_, headers_, *body, pds, response_with(part));
  packet->set_traffic_kind(part.traffic_kind);
  return packet;
}

bool ReadResponses::take_news(TimePs now, const SentStream::Arrivals& arrivals) {
  if (!acknowledge(now, arrivals)) return false;
  parts_.erase(parts_.begin(), parts_.begin() + static_cast<ptrdiff_t>(sent_.accepted() - first_part_));
  first_part_ = sent_.accepted();
  return true;
}

void ReadResponses::on_ack(TimePs now, const roce::ParsedPacket& packet) {
  ++common_counters_.acknowledgements_received;
  const AckPacket ack = load_ack(first_header(packet));
  const std::optional<SentStream::Arrivals> arrivals = read_arrivals(ack, psn_map_, sent_, packet.hop_limit);
  if (!arrivals) {
    ++common_counters_.invalid_acknowledgements;
    return;
  }
  if (!take_news(now, *arrivals)) ++common_counters_.stale_acknowledgements;
  detect_losses(now);
  follow_rate(now);
}

void ReadResponses::on_nack(TimePs now, const roce::ParsedPacket& packet) {
  Nack nack;
  wire::load_header(nack, first_header(packet));
  const std::optional<uint64_t> sequence = sequence_out(psn_map_.sequence(nack.nack_psn, sent_.accepted()));
  if (!sequence) return;
  const uint16_t entropy = packet.source_udp_port & kEntropyMask;
  switch (nack.nack_code) {
    case kNackTrimmed:
    case kNackTrimmedLastHop:
      note_trimming(now, nack.nack_code, entropy);
      return lose(now, *sequence, entropy);
    case kNackRodOutOfOrder:
      ++counters_.order_nacks_received;
      if (!is_ordered_) return;
      if (*sequence > sent_.accepted())
        take_news(now, {.end = *sequence, .first = *sequence, .hop_limit = packet.hop_limit});
      return go_back(now);
    default:
      // The timeout sees to it.
      ++counters_.other_nacks_received;
  }
}

TimePs ReadResponses::next_deadline() const {
  if (is_stopped_) return kNever;
  if (is_unanswered_) return sending_deadline();
  return std::min({timeout_deadline(), repetition_deadline(), sending_deadline()});
}

void ReadResponses::on_deadline(TimePs now) {
  if (is_stopped_) return;
  end_wait(now);
  if (now >= sent_.loss_deadline_ps()) detect_losses(now);
  if (is_unanswered_) return;
  if (now >= repetition_deadline()) silence_.ask(now);
  if (now >= timeout_deadline() && !take_timeout(now)) is_unanswered_ = true;
}

}  // namespace weft::uet
