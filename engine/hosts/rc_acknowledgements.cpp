// What a requester does when it hears from its peer: acknowledgements, responses to READs, congestion
// notifications.
#include <algorithm>

#include "hosts/end_to_end_credits.hpp"
#include "hosts/rc_requester.hpp"

namespace weft {
namespace {

// AETH syndrome: what kind of answer it is, and its value.
constexpr uint8_t kKindMask = 0x60;
constexpr uint8_t kValueMask = 0x1F;

}  // namespace

// The peer has done so many messages (MSN) and has receives for so many more.
void RcRequester::note_credits(const roce::Aeth& aeth) {
  const uint8_t code = aeth.syndrome & kValueMask;
  if (code == roce::kSyndromeAckNoCredits) {
    credit_limit_ = posted_messages_ + kMaxOutstandingPackets;
    return;
  }
  const uint64_t done = posted_messages_ - outstanding_requests();
  const int64_t msn =
      static_cast<int64_t>(done) + psn_difference(aeth.msn, static_cast<uint32_t>(done) & kPsnMask);
  const int64_t limit = msn + static_cast<int64_t>(kCreditsOfCode[code]);
  credit_limit_ = std::max(credit_limit_, static_cast<uint64_t>(std::max<int64_t>(limit, 0)));
}

void RcRequester::on_acknowledgement(TimePs now, const roce::ParsedPacket& packet) {
  if (error_ != CompletionStatus::kSuccess) {
    ++counters_.dropped_in_error;
    return;
  }
  const uint8_t kind = packet.aeth.syndrome & kKindMask;
  const bool is_ack = kind == (roce::kSyndromeAck & kKindMask);
  const int64_t sequence = sequence_of(packet.bth.psn);
  if (sequence >= static_cast<int64_t>(sent_.highest())) {
    ++counters_.invalid_acknowledgements;
    return;
  }
  // A NAK names the packet it is about, and acknowledges all before.
  const int64_t end = is_ack ? sequence + 1 : sequence;
  const auto unacked = static_cast<int64_t>(sent_.accepted());
  if (is_ack && config_.end_to_end_credits) note_credits(packet.aeth);
  // A READ that was granted may still fail.
  const bool refuses_read =
      packet.aeth.syndrome > roce::kSyndromeNakSequence && sequence >= static_cast<int64_t>(done_end());
  if (sequence < unacked && !selective_repeat_ && !refuses_read) {
    ++counters_.stale_acknowledgements;
    return;
  }
  note_telemetry(now, packet);
  if (is_ack) counters_.acknowledgements_received += packet.packets;
  const auto end_sequence = static_cast<uint64_t>(std::max(end, unacked));
  acknowledge(now, end_sequence, answered_sequence(packet, end_sequence), packet);
  if (kind == roce::kSyndromeRnrNak) {
    on_rnr_nak(now, packet.aeth.syndrome & kValueMask);
  } else if (!is_ack) {
    on_nak(now, static_cast<uint64_t>(std::max<int64_t>(sequence, 0)), packet.aeth.syndrome);
  }
  if (selective_repeat_) detect_losses(now);
  follow_rate(now);
  deliver_completions(now);
}

void RcRequester::note_telemetry(TimePs now, const roce::ParsedPacket& packet) {
  if (!packet.telemetry || !packet.telemetry->echo) return;
  last_telemetry_ = packet.telemetry;
  if (telemetry_probe_ != nullptr) [[unlikely]]
    telemetry_probe_->telemetry_arrived(now, ends_, packet.bth.psn, *packet.telemetry);
  if (hop_latencies_ != nullptr) [[unlikely]]
    hop_latencies_->record(hops_peer_, hops_plane_, *packet.telemetry);
}

int64_t RcRequester::sequence_of(uint32_t psn) const {
  return reads_ == nullptr ? psn_map_.sequence(psn, sent_.accepted())
                           : reads_->packet_of(psn, sent_.accepted());
}

// A response tells that its request has arrived, and all before it have.
void RcRequester::on_read_response(TimePs now, const roce::ParsedPacket& packet) {
  if (error_ != CompletionStatus::kSuccess) {
    ++counters_.dropped_in_error;
    return;
  }
  if (reads_ == nullptr) {
    ++counters_.unexpected_opcode;
    return;
  }
  const OutstandingReads::Taken taken = reads_->take(packet);
  switch (taken.arrival) {
    case OutstandingReads::Arrival::kInvalid:
      ++counters_.invalid_acknowledgements;
      return;
    case OutstandingReads::Arrival::kDuplicate:
      ++counters_.duplicate_packets;
      return;
    case OutstandingReads::Arrival::kBehindGap:
      ++counters_.out_of_sequence_packets;
      return;
    case OutstandingReads::Arrival::kUnplaced:
      refusal_ = CompletionStatus::kLocalProtectionError;
      unplaced_ = std::min(unplaced_, taken.sequence);
      if (done_end() >= unplaced_) fail(refusal_);  // otherwise READs before it are still on their way
      deliver_completions(now);
      return;
    case OutstandingReads::Arrival::kNew:
      break;
  }
  ++counters_.data_packets_received;
  counters_.data_bytes_received += packet.payload_bytes;
  progress_ps_ = now;
  retries_ = 0;
  if (taken.sequence >= sent_.accepted()) acknowledge(now, taken.sequence + 1, std::nullopt, packet);
  if (refusal_ != CompletionStatus::kSuccess && (!reads_->is_waiting() || done_end() >= unplaced_))
    fail(refusal_);
  follow_rate(now);
  deliver_completions(now);
}

void RcRequester::on_switch_notification(TimePs now, const switch_notification::Header& header) {
  const int64_t sequence = sequence_of(header.psn);
  // Of a packet that has been answered meanwhile, nobody knows any more when it was sent.
  if (error_ != CompletionStatus::kSuccess || sequence < static_cast<int64_t>(sent_.accepted()) ||
      sequence >= static_cast<int64_t>(sent_.highest())) {
    ++counters_.stale_switch_notifications;
    return;
  }
  ++counters_.switch_notifications_received;
  gate_.congestion_control().on_switch_notification(
      {.now = now,
       .sent_ps = sent_.packet(static_cast<uint64_t>(sequence)).sent_ps,
       .queue_bytes = header.queue_bytes,
       .link_rate_bps = switch_notification::rate_bps(header)});
  follow_rate(now);
}

void RcRequester::on_congestion_notification(TimePs now) {
  ++counters_.cnps_received;
  gate_.congestion_control().on_congestion_notification(now);
  follow_rate(now);
  if (path_choice_ != nullptr) path_choice_->on_congestion_notification(now);
}

}  // namespace weft
