#include "rc_requester.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft {
namespace {

constexpr uint64_t kMaxMessageBytes = 1ull << 31;
constexpr size_t kInitialRing = 64;

// AETH syndrome: what kind of answer it is, and its value.
constexpr uint8_t kKindMask = 0x60;
constexpr uint8_t kValueMask = 0x1F;

uint8_t opcode_of(CompletionKind kind, bool first, bool last, bool immediate) {
  using namespace roce;
  const bool write = kind == CompletionKind::kWrite;
  if (first && last) {
    if (immediate) return write ? kRcWriteOnlyImmediate : kRcSendOnlyImmediate;
    return write ? kRcWriteOnly : kRcSendOnly;
  }
  if (first) return write ? kRcWriteFirst : kRcSendFirst;
  if (!last) return write ? kRcWriteMiddle : kRcSendMiddle;
  if (immediate) return write ? kRcWriteLastImmediate : kRcSendLastImmediate;
  return write ? kRcWriteLast : kRcSendLast;
}

CompletionStatus status_of_nak(uint8_t syndrome) {
  switch (syndrome) {
    case roce::kSyndromeNakInvalidRequest:
      return CompletionStatus::kRemoteInvalidRequest;
    case roce::kSyndromeNakRemoteAccess:
      return CompletionStatus::kRemoteAccessError;
    case roce::kSyndromeNakRemoteOperation:
      return CompletionStatus::kRemoteOperationError;
    default:
      return CompletionStatus::kSuccess;
  }
}

}  // namespace

RcRequester::RcRequester(const RcConfig& config, RcCounters& counters, PacketPool& pool,
                         CongestionControl& congestion_control, CompletionHandler* handler)
    : config_(config),
      counters_(counters),
      pool_(pool),
      congestion_control_(congestion_control),
      handler_(handler),
      headers_(headers_to_peer(config)),
      psn_map_(config.initial_psn),
      sent_(kInitialRing) {
  headers_.dscp = roce::kDataDscp;
  headers_.ecn = roce::kEct0;
  if (config.telemetry) headers_.telemetry.emplace();
  headers_.bth.opcode = roce::kRcWriteOnlyImmediate;
  largest_frame_bytes_ = roce::frame_bytes(headers_, config.path_mtu_bytes);
}

void RcRequester::observe(Probe* probe, ConnectionEnds ends, bool messages, bool telemetry) {
  message_probe_ = messages ? probe : nullptr;
  telemetry_probe_ = telemetry ? probe : nullptr;
  ends_ = ends;
}

void RcRequester::post(TimePs now, Request request) {
  if (request.length_bytes > kMaxMessageBytes) {
    throw std::invalid_argument("message of " + std::to_string(request.length_bytes) +
                                " bytes (valid: at most 2147483648)");
  }
  const uint64_t packets =
      std::max<uint64_t>(1, (request.length_bytes + config_.path_mtu_bytes - 1) / config_.path_mtu_bytes);
  requests_.push_back(Outstanding{std::move(request), end_sequence_, end_sequence_ + packets, now});
  end_sequence_ += packets;
  if (error_ != CompletionStatus::kSuccess) deliver_completions(now);
}

RcRequester::Outstanding& RcRequester::request_to_send() {
  while (requests_[send_index_].end_sequence <= next_sequence_) ++send_index_;
  return requests_[send_index_];
}

size_t RcRequester::packet_payload_bytes(const Outstanding& request, uint64_t sequence) const {
  const uint64_t offset = (sequence - request.first_sequence) * config_.path_mtu_bytes;
  return std::min<uint64_t>(config_.path_mtu_bytes, request.length_bytes - offset);
}

void RcRequester::set_packet_headers(const Outstanding& request, uint64_t sequence) {
  const bool first = sequence == request.first_sequence;
  const bool last = sequence + 1 == request.end_sequence;
  headers_.bth.opcode = opcode_of(request.kind, first, last, request.immediate.has_value());
  headers_.bth.psn = psn_map_.psn(sequence);
  headers_.bth.solicited = last && request.immediate.has_value();
  headers_.reth = {request.remote_address, request.rkey, static_cast<uint32_t>(request.length_bytes)};
  headers_.immediate = request.immediate.value_or(0);
}

// Without an acknowledgement of the packet that closes the window, nothing would open it but the timeout.
bool RcRequester::should_request_ack(const Outstanding& request, uint64_t sequence,
                                     uint64_t in_flight_after) const {
  return sequence + 1 == request.end_sequence || (sequence + 1) % config_.ack_interval_packets == 0 ||
         in_flight_after + largest_frame_bytes_ > congestion_control_.window_bytes();
}

PacketPtr RcRequester::pull(TimePs now) {
  wait_until_ps_ = kNever;
  if (error_ != CompletionStatus::kSuccess || next_sequence_ == end_sequence_) return nullptr;
  const TimePs earliest = std::max(rnr_until_ps_, next_send_ps_);
  if (now < earliest) {
    wait_until_ps_ = earliest;
    return nullptr;
  }
  if (next_sequence_ - unacked_sequence_ >= kMaxOutstandingPackets - 1) return nullptr;
  Outstanding& request = request_to_send();
  const size_t payload_bytes = packet_payload_bytes(request, next_sequence_);
  set_packet_headers(request, next_sequence_);
  const size_t frame_bytes = roce::frame_bytes(headers_, payload_bytes);
  const uint64_t in_flight_after = in_flight_bytes_ + frame_bytes;
  if (in_flight_bytes_ > 0 && in_flight_after > congestion_control_.window_bytes()) return nullptr;

  headers_.bth.acknowledge_request = should_request_ack(request, next_sequence_, in_flight_after);
  const uint64_t offset = (next_sequence_ - request.first_sequence) * config_.path_mtu_bytes;
  PacketPtr packet = roce::build_packet(
      pool_, headers_, request.data == nullptr ? nullptr : request.data + offset, payload_bytes);
  counters_.data_bytes_sent += payload_bytes;
  record_sent(now, request, static_cast<uint32_t>(frame_bytes));
  return packet;
}

void RcRequester::record_sent(TimePs now, Outstanding& request, uint32_t frame_bytes) {
  const bool retransmission = next_sequence_ < highest_sequence_;
  ++counters_.data_packets_sent;
  if (retransmission) {
    ++counters_.retransmitted_packets;
    ++request.retransmitted_packets;
  }
  if (in_flight_bytes_ == 0) progress_ps_ = now;
  if (next_sequence_ - unacked_sequence_ >= sent_.size()) grow_sent();
  sent(next_sequence_) = SentPacket{frame_bytes, retransmission, now};
  in_flight_bytes_ += frame_bytes;
  ++next_sequence_;
  highest_sequence_ = std::max(highest_sequence_, next_sequence_);
  if (congestion_control_.pacing_rate_bps() != 0) {
    const BitRate pace(congestion_control_.pacing_rate_bps());
    next_send_ps_ = std::max(next_send_ps_, now) + pace.serialisation_ps(frame_bytes);
  }
  congestion_control_.on_packet_sent(now, frame_bytes, retransmission);
}

void RcRequester::grow_sent() {
  std::vector<SentPacket> larger(2 * sent_.size());
  for (uint64_t sequence = unacked_sequence_; sequence < unacked_sequence_ + sent_.size(); ++sequence) {
    larger[sequence & (larger.size() - 1)] = sent(sequence);
  }
  sent_ = std::move(larger);
}

void RcRequester::on_acknowledgement(TimePs now, const roce::ParsedPacket& packet) {
  if (error_ != CompletionStatus::kSuccess) {
    ++counters_.dropped_in_error;
    return;
  }
  const int64_t sequence = psn_map_.sequence(packet.bth.psn, unacked_sequence_);
  if (sequence < static_cast<int64_t>(unacked_sequence_)) {
    ++counters_.stale_acknowledgements;
    return;
  }
  if (sequence >= static_cast<int64_t>(highest_sequence_)) {
    ++counters_.invalid_acknowledgements;
    return;
  }
  if (packet.telemetry && packet.telemetry->echo) {
    last_telemetry_ = packet.telemetry;
    if (telemetry_probe_ != nullptr) [[unlikely]]
      telemetry_probe_->telemetry_arrived(now, ends_, packet.bth.psn, *packet.telemetry);
  }
  const uint8_t kind = packet.aeth.syndrome & kKindMask;
  if (kind == (roce::kSyndromeAck & kKindMask)) {
    ++counters_.acknowledgements_received;
    acknowledge_up_to(now, static_cast<uint64_t>(sequence) + 1, packet);
  } else {
    // A NAK names the packet it is about, and acknowledges all before.
    acknowledge_up_to(now, static_cast<uint64_t>(sequence), packet);
    if (kind == roce::kSyndromeRnrNak) {
      on_rnr_nak(now, packet.aeth.syndrome & kValueMask);
    } else {
      on_nak(now, packet.aeth.syndrome);
    }
  }
  deliver_completions(now);
}

// Everything before `sequence` has arrived.
void RcRequester::acknowledge_up_to(TimePs now, uint64_t sequence, const roce::ParsedPacket& packet) {
  if (sequence == unacked_sequence_) return;
  const bool has_echo = packet.telemetry && packet.telemetry->echo;
  // The peer starts with our own hop limit.
  const auto hops = static_cast<uint8_t>(std::max(0, config_.hop_limit - packet.hop_limit));
  const uint64_t acknowledged_packets = sequence - unacked_sequence_;
  uint64_t acknowledged_bytes = 0;
  for (uint64_t at = unacked_sequence_; at < std::min(sequence, next_sequence_); ++at) {
    acknowledged_bytes += sent(at).frame_bytes;
  }
  in_flight_bytes_ -= acknowledged_bytes;
  const bool sent_since_going_back = sequence <= next_sequence_;
  const SentPacket newest = sent_since_going_back ? sent(sequence - 1) : SentPacket{0, true, 0};
  unacked_sequence_ = sequence;
  next_sequence_ = std::max(next_sequence_, sequence);
  retries_ = 0;
  rnr_retries_ = 0;
  progress_ps_ = now;
  congestion_control_.on_acknowledgement({.now = now,
                                          .acknowledged_bytes = acknowledged_bytes,
                                          .acknowledged_packets = acknowledged_packets,
                                          .in_flight_bytes = in_flight_bytes_,
                                          .round_trip_ps = newest.retransmitted ? 0 : now - newest.sent_ps,
                                          .sequence = sequence - 1,
                                          .next_sequence = highest_sequence_,
                                          .hops = hops,
                                          .telemetry = has_echo ? &*packet.telemetry : nullptr});
}

void RcRequester::go_back(TimePs now) {
  next_sequence_ = unacked_sequence_;
  in_flight_bytes_ = 0;
  send_index_ = 0;
  progress_ps_ = now;
}

void RcRequester::on_nak(TimePs now, uint8_t syndrome) {
  if (syndrome == roce::kSyndromeNakSequence) {
    ++counters_.sequence_naks_received;
    congestion_control_.on_loss(now, false);
    go_back(now);
    return;
  }
  const CompletionStatus status = status_of_nak(syndrome);
  if (status == CompletionStatus::kSuccess) {
    ++counters_.invalid_acknowledgements;
    return;
  }
  ++counters_.fatal_naks_received;
  fail(status);
}

void RcRequester::on_rnr_nak(TimePs now, uint8_t timer_code) {
  ++counters_.rnr_naks_received;
  ++rnr_retries_;
  constexpr uint32_t kForEver = 7;
  if (config_.rnr_retry_limit != kForEver && rnr_retries_ > config_.rnr_retry_limit) {
    fail(CompletionStatus::kRnrRetryExceeded);
    return;
  }
  go_back(now);
  rnr_until_ps_ = now + rnr_timer_ps(timer_code);
}

void RcRequester::on_congestion_notification(TimePs now) {
  ++counters_.cnps_received;
  congestion_control_.on_congestion_notification(now);
}

TimePs RcRequester::timeout_deadline() const {
  if (next_sequence_ == unacked_sequence_ || error_ != CompletionStatus::kSuccess) return kNever;
  const uint32_t doublings = std::min(retries_, config_.timeout_backoff_limit);
  return progress_ps_ + (config_.retransmission_timeout_ps << doublings);
}

TimePs RcRequester::next_deadline() const {
  return std::min({timeout_deadline(), wait_until_ps_, congestion_control_.next_deadline()});
}

void RcRequester::on_deadline(TimePs now) {
  if (now >= wait_until_ps_) wait_until_ps_ = kNever;  // the NIC pulls next
  if (now >= congestion_control_.next_deadline()) congestion_control_.on_deadline(now);
  if (now >= timeout_deadline()) on_timeout(now);
  deliver_completions(now);
}

void RcRequester::on_timeout(TimePs now) {
  ++counters_.timeouts;
  if (retries_ == config_.retry_limit) {
    fail(CompletionStatus::kRetryExceeded);
    return;
  }
  ++retries_;
  congestion_control_.on_loss(now, true);
  go_back(now);
}

void RcRequester::fail(CompletionStatus status) {
  error_ = status;
  next_sequence_ = unacked_sequence_;
  in_flight_bytes_ = 0;
  wait_until_ps_ = kNever;
}

void RcRequester::flush(TimePs now) {
  if (error_ != CompletionStatus::kSuccess) return;
  fail(CompletionStatus::kFlushed);
  deliver_completions(now);
}

// Handlers may post from within; such requests are delivered by the outer call.
void RcRequester::deliver_completions(TimePs now) {
  if (delivering_) return;
  delivering_ = true;
  while (!requests_.empty()) {
    CompletionStatus status = CompletionStatus::kSuccess;
    if (requests_.front().end_sequence > unacked_sequence_) {
      if (error_ == CompletionStatus::kSuccess) break;
      status = error_reported_ ? CompletionStatus::kFlushed : error_;
      error_reported_ = true;
    }
    const Outstanding request = std::move(requests_.front());
    requests_.pop_front();
    if (send_index_ > 0) --send_index_;
    complete(now, request, status);
  }
  delivering_ = false;
}

void RcRequester::complete(TimePs now, const Outstanding& request, CompletionStatus status) {
  if (message_probe_ != nullptr) [[unlikely]]
    message_probe_->message_completed({.ends = ends_,
                                       .work_id = request.work_id,
                                       .length_bytes = request.length_bytes,
                                       .posted_ps = request.posted_ps,
                                       .completed_ps = now,
                                       .retransmitted_packets = request.retransmitted_packets,
                                       .status = static_cast<int64_t>(status)});
  if (handler_ == nullptr) return;
  handler_->on_completion({.work_id = request.work_id,
                           .kind = request.kind,
                           .status = status,
                           .queue_pair = config_.queue_pair,
                           .length_bytes = request.length_bytes,
                           .has_immediate = request.immediate.has_value(),
                           .immediate = request.immediate.value_or(0),
                           .posted_ps = request.posted_ps,
                           .completed_ps = now});
}

}  // namespace weft
