#include "hosts/rc_requester.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft {
namespace {

constexpr uint64_t kMaxMessageBytes = 1ull << 31;
constexpr uint16_t kFirstEntropyPort = 0xC000;

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

roce::RoceHeaders data_headers(const RcConfig& config) {
  roce::RoceHeaders headers = headers_to_peer(config);
  headers.dscp = roce::kDataDscp;
  headers.ecn = roce::kEct0;
  if (config.telemetry) headers.telemetry.emplace();
  return headers;
}

}  // namespace

RcRequester::RcRequester(const RcConfig& config, RcCounters& counters, PacketPool& pool,
                         CongestionControl& congestion_control, PathChoice* path_choice,
                         CompletionHandler* handler)
    : config_(config),
      counters_(counters),
      pool_(pool),
      congestion_control_(congestion_control),
      handler_(handler),
      headers_(data_headers(config)),
      template_(headers_),
      psn_map_(config.initial_psn),
      path_choice_(path_choice),
      selective_repeat_(config.retransmission == Retransmission::kSelectiveRepeat),
      loss_detector_(config.reordering_window_ps) {
  headers_.bth.opcode = roce::kRcWriteOnlyImmediate;
  largest_frame_bytes_ = roce::frame_bytes(headers_, config.path_mtu_bytes);
  headers_.bth.opcode = roce::kRcWriteMiddle;
  smallest_full_frame_bytes_ = roce::frame_bytes(headers_, config.path_mtu_bytes);
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
  if (selective_repeat_ && request.kind != CompletionKind::kWrite) {
    throw std::invalid_argument("a queue pair with selective repeat carries WRITEs only");
  }
  const uint64_t packets =
      std::max<uint64_t>(1, (request.length_bytes + config_.path_mtu_bytes - 1) / config_.path_mtu_bytes);
  if (request.posted_ps == kNever) request.posted_ps = now;
  requests_.push_back(Outstanding{std::move(request), end_sequence_, end_sequence_ + packets});
  end_sequence_ += packets;
  if (error_ != CompletionStatus::kSuccess) deliver_completions(now);
}

size_t RcRequester::packet_payload_bytes(const Outstanding& request, uint64_t sequence) const {
  const uint64_t offset = (sequence - request.first_sequence) * config_.path_mtu_bytes;
  return std::min<uint64_t>(config_.path_mtu_bytes, request.length_bytes - offset);
}

// With selective repeat every packet says where its payload goes, so that it can be placed whenever it
// arrives: a WRITE of its own, the solicited event bit marking the last one of a message.
void RcRequester::set_packet_headers(const Outstanding& request, uint64_t sequence, size_t payload_bytes) {
  const bool first = sequence == request.first_sequence;
  const bool last = sequence + 1 == request.end_sequence;
  const bool immediate = request.immediate.has_value();
  headers_.bth.psn = psn_map_.psn(sequence);
  headers_.immediate = request.immediate.value_or(0);
  if (selective_repeat_) {
    const uint64_t offset = (sequence - request.first_sequence) * config_.path_mtu_bytes;
    headers_.bth.opcode = opcode_of(CompletionKind::kWrite, true, true, last && immediate);
    headers_.bth.solicited = last;
    headers_.reth = {request.remote_address + offset, request.rkey, static_cast<uint32_t>(payload_bytes)};
  } else {
    headers_.bth.opcode = opcode_of(request.kind, first, last, immediate);
    headers_.bth.solicited = last && immediate;
    headers_.reth = {request.remote_address, request.rkey, static_cast<uint32_t>(request.length_bytes)};
  }
}

void RcRequester::set_path(TimePs now, uint64_t sequence) {
  const uint16_t entropy = path_choice_->entropy(now, sequence, sequence < highest_sequence_) & kEntropyMask;
  headers_.source_udp_port = static_cast<uint16_t>(kFirstEntropyPort | entropy);
  if (headers_.source_ip.is_ipv6) headers_.flow_label = entropy_flow_label(headers_.source_udp_port);
}

// Without an acknowledgement to come nothing would open a closed window but the timeout; the packet that
// closes it therefore asks for one, unless a packet before it has done so. Half a window without a question
// is too much for a window that may shrink, and so is a long time at a low rate.
bool RcRequester::should_request_ack(const Outstanding& request, uint64_t sequence,
                                     uint64_t in_flight_after) const {
  const bool selective_retransmission = sequence != next_sequence_;
  if (selective_retransmission || sequence + 1 == request.end_sequence) return true;
  const uint64_t unasked_packets = sequence + 1 - std::max(asked_end_, unacked_sequence_);
  if (unasked_packets >= config_.ack_interval_packets) return true;
  if (pacing_gap_ps() * config_.ack_interval_packets > config_.retransmission_timeout_ps / 4) return true;
  const uint64_t window_bytes = congestion_control_.window_bytes();
  if (unasked_packets * largest_frame_bytes_ >= window_bytes / 2) return true;
  return asked_end_ <= unacked_sequence_ && in_flight_after + largest_frame_bytes_ > window_bytes;
}

// Retransmissions of selective repeat go first; go-back-N's are next_sequence_'s.
std::optional<uint64_t> RcRequester::sequence_to_send() {
  while (!lost_.empty()) {
    const uint64_t sequence = lost_.front();
    if (sequence >= unacked_sequence_ && sent_[sequence].state == SentPacket::State::kLost) return sequence;
    lost_.pop();  // it has arrived after all
  }
  const uint64_t limit = selective_repeat_ ? ArrivalWindow::kMaxPackets : kMaxOutstandingPackets - 1;
  if (next_sequence_ == end_sequence_ || next_sequence_ - unacked_sequence_ >= limit) return std::nullopt;
  return next_sequence_;
}

RcRequester::Outstanding& RcRequester::request_of(uint64_t sequence) {
  if (sequence != next_sequence_) {
    return *std::partition_point(requests_.begin(), requests_.end(), [&](const Outstanding& request) {
      return request.end_sequence <= sequence;
    });
  }
  while (requests_[send_index_].end_sequence <= next_sequence_) ++send_index_;
  return requests_[send_index_];
}

// False if all is sent, or the window has no room for the next packet and that is a full one; other cases are
// pull()'s to find out.
bool RcRequester::may_have_data() const {
  if (error_ != CompletionStatus::kSuccess) return false;
  if (wait_until_ps_ != kNever || !lost_.empty()) return true;
  if (next_sequence_ == end_sequence_) return false;
  const bool ends_message = requests_[send_index_].end_sequence <= next_sequence_ + 1;
  return ends_message || in_flight_bytes_ == 0 ||
         in_flight_bytes_ + smallest_full_frame_bytes_ <= congestion_control_.window_bytes();
}

PacketPtr RcRequester::pull(TimePs now) {
  wait_until_ps_ = kNever;
  if (error_ != CompletionStatus::kSuccess) return nullptr;
  const std::optional<uint64_t> sequence = sequence_to_send();
  if (!sequence) return nullptr;
  const TimePs earliest = std::max(rnr_until_ps_, next_send_ps_);
  if (now < earliest) {
    wait_until_ps_ = earliest;
    return nullptr;
  }
  Outstanding& request = request_of(*sequence);
  const size_t payload_bytes = packet_payload_bytes(request, *sequence);
  set_packet_headers(request, *sequence, payload_bytes);
  const size_t frame_bytes = roce::frame_bytes(headers_, payload_bytes);
  const uint64_t in_flight_after = in_flight_bytes_ + frame_bytes;
  if (in_flight_bytes_ > 0 && in_flight_after > congestion_control_.window_bytes()) return nullptr;

  headers_.bth.acknowledge_request = should_request_ack(request, *sequence, in_flight_after);
  if (headers_.bth.acknowledge_request) {
    if (asked_end_ <= unacked_sequence_) progress_ps_ = now;  // nobody was asked before
    asked_end_ = std::max(asked_end_, *sequence + 1);
  }
  if (path_choice_ != nullptr) set_path(now, *sequence);
  PacketPtr packet = build(request, *sequence, payload_bytes);
  counters_.data_bytes_sent += payload_bytes;
  last_pulled_ = {payload_bytes, *sequence == request.first_sequence};
  record_sent(now, request, *sequence, static_cast<uint16_t>(frame_bytes));
  return packet;
}

PacketPtr RcRequester::build(const Outstanding& request, uint64_t sequence, size_t payload_bytes) {
  if (request.as_length) return template_.build_as_length(pool_, headers_, payload_bytes);
  const uint64_t offset = (sequence - request.first_sequence) * config_.path_mtu_bytes;
  return template_.build(pool_, headers_, request.data == nullptr ? nullptr : request.data + offset,
                         payload_bytes);
}

void RcRequester::record_sent(TimePs now, Outstanding& request, uint64_t sequence, uint16_t frame_bytes) {
  const bool retransmission = sequence < highest_sequence_;
  ++counters_.data_packets_sent;
  if (retransmission) {
    ++counters_.retransmitted_packets;
    ++request.retransmitted_packets;
  }
  if (in_flight_bytes_ == 0) progress_ps_ = now;
  sent_.make_room(unacked_sequence_, sequence);
  sent_[sequence] = {.sent_ps = now,
                     .frame_bytes = frame_bytes,
                     .entropy = static_cast<uint16_t>(headers_.source_udp_port & kEntropyMask),
                     .state = SentPacket::State::kInFlight,
                     .retransmitted = retransmission};
  in_flight_bytes_ += frame_bytes;
  if (sequence == next_sequence_) ++next_sequence_;
  highest_sequence_ = std::max(highest_sequence_, next_sequence_);
  if (selective_repeat_) loss_detector_.on_sent(sequence, now);
  pace_after(now, frame_bytes);
  congestion_control_.on_packet_sent(now, frame_bytes, retransmission);
  follow_rate(now);
}

void RcRequester::pace_after(TimePs now, size_t frame_bytes) {
  paced_from_ps_ = std::max(next_send_ps_, now);
  paced_bytes_ = frame_bytes;
  paced_rate_bps_ = congestion_control_.pacing_rate_bps();
  next_send_ps_ =
      paced_from_ps_ + (paced_rate_bps_ == 0 ? 0 : BitRate::serialisation_ps(frame_bytes, paced_rate_bps_));
}

// A new rate counts from the newest packet on: a gap that was measured at another is made longer or shorter.
void RcRequester::follow_rate(TimePs now) {
  const uint64_t rate_bps = congestion_control_.pacing_rate_bps();
  if (rate_bps == paced_rate_bps_) return;
  paced_rate_bps_ = rate_bps;
  next_send_ps_ = paced_from_ps_ + (rate_bps == 0 ? 0 : BitRate::serialisation_ps(paced_bytes_, rate_bps));
  if (wait_until_ps_ == kNever) return;
  const TimePs earliest = std::max(rnr_until_ps_, next_send_ps_);
  wait_until_ps_ = earliest <= now ? kNever : earliest;  // the NIC pulls next
}

void RcRequester::on_acknowledgement(TimePs now, const roce::ParsedPacket& packet) {
  if (error_ != CompletionStatus::kSuccess) {
    ++counters_.dropped_in_error;
    return;
  }
  const uint8_t kind = packet.aeth.syndrome & kKindMask;
  const bool is_ack = kind == (roce::kSyndromeAck & kKindMask);
  const int64_t sequence = psn_map_.sequence(packet.bth.psn, unacked_sequence_);
  if (sequence >= static_cast<int64_t>(highest_sequence_)) {
    ++counters_.invalid_acknowledgements;
    return;
  }
  // A NAK names the packet it is about, and acknowledges all before.
  const int64_t end = is_ack ? sequence + 1 : sequence;
  const auto unacked = static_cast<int64_t>(unacked_sequence_);
  if (sequence < unacked && !selective_repeat_) {
    ++counters_.stale_acknowledgements;
    return;
  }
  if (packet.telemetry && packet.telemetry->echo) {
    last_telemetry_ = packet.telemetry;
    if (telemetry_probe_ != nullptr) [[unlikely]]
      telemetry_probe_->telemetry_arrived(now, ends_, packet.bth.psn, *packet.telemetry);
  }
  if (is_ack) ++counters_.acknowledgements_received;
  const auto end_sequence = static_cast<uint64_t>(std::max(end, unacked));
  acknowledge(now, end_sequence, answered_sequence(packet, end_sequence), packet);
  if (kind == roce::kSyndromeRnrNak) {
    on_rnr_nak(now, packet.aeth.syndrome & kValueMask);
  } else if (!is_ack) {
    on_nak(now, packet.aeth.syndrome);
  }
  if (selective_repeat_) detect_losses(now);
  follow_rate(now);
  deliver_completions(now);
}

// The packet that the peer answers: with selective repeat the one that the MSN field names, otherwise the
// last one that it acknowledges.
std::optional<uint64_t> RcRequester::answered_sequence(const roce::ParsedPacket& packet,
                                                       uint64_t end_sequence) const {
  if (selective_repeat_) {
    const int64_t answered = psn_map_.sequence(packet.aeth.msn, unacked_sequence_);
    if (answered >= static_cast<int64_t>(unacked_sequence_) &&
        answered < static_cast<int64_t>(highest_sequence_)) {
      return static_cast<uint64_t>(answered);
    }
  }
  if (end_sequence == unacked_sequence_) return std::nullopt;
  return end_sequence - 1;
}

// Everything before `end_sequence` has arrived, and `answered`, which caused this acknowledgement.
void RcRequester::acknowledge(TimePs now, uint64_t end_sequence, std::optional<uint64_t> answered,
                              const roce::ParsedPacket& packet) {
  uint64_t bytes = 0;
  uint64_t packets = 0;
  const SentPacket newest = answered ? sent_[*answered] : SentPacket();
  const bool answer_is_new = answered && newest.state != SentPacket::State::kDelivered;
  const bool marked = packet.bth.becn;
  for (uint64_t at = unacked_sequence_; at < end_sequence; ++at)
    settle(now, sent_[at], marked, bytes, packets);
  if (answered && *answered >= end_sequence) settle(now, sent_[*answered], marked, bytes, packets);
  if (packets == 0) {
    if (end_sequence == unacked_sequence_ && selective_repeat_) ++counters_.stale_acknowledgements;
    unacked_sequence_ = end_sequence;
    return;
  }
  unacked_sequence_ = end_sequence;
  next_sequence_ = std::max(next_sequence_, end_sequence);
  retries_ = 0;
  rnr_retries_ = 0;
  progress_ps_ = now;
  const TimePs round_trip_ps = answer_is_new && !newest.retransmitted ? now - newest.sent_ps : 0;
  if (round_trip_ps > 0) round_trips_.add(round_trip_ps);
  const bool has_echo = packet.telemetry && packet.telemetry->echo;
  congestion_control_.on_acknowledgement(
      {.now = now,
       .acknowledged_bytes = bytes,
       .acknowledged_packets = packets,
       .in_flight_bytes = in_flight_bytes_,
       .round_trip_ps = round_trip_ps,
       .sequence = answered.value_or(end_sequence - 1),
       .next_sequence = highest_sequence_,
       // The peer starts with our own hop limit.
       .hops = static_cast<uint8_t>(std::max(0, config_.hop_limit - packet.hop_limit)),
       .congestion_experienced = marked,
       .telemetry = has_echo ? &*packet.telemetry : nullptr});
}

// A packet has arrived.
void RcRequester::settle(TimePs now, SentPacket& packet, bool marked, uint64_t& bytes, uint64_t& packets) {
  if (packet.state == SentPacket::State::kDelivered) return;
  if (packet.state == SentPacket::State::kInFlight) in_flight_bytes_ -= packet.frame_bytes;
  packet.state = SentPacket::State::kDelivered;
  bytes += packet.frame_bytes;
  ++packets;
  if (packet.retransmitted && recovery_times_ != nullptr) recovery_times_->add(now);
  if (selective_repeat_) loss_detector_.on_delivered(now, packet.sent_ps, packet.retransmitted);
  if (path_choice_ != nullptr)
    path_choice_->on_delivered(now, packet.entropy, packet.retransmitted ? 0 : now - packet.sent_ps, marked);
}

void RcRequester::on_congestion_notification(TimePs now) {
  ++counters_.cnps_received;
  congestion_control_.on_congestion_notification(now);
  follow_rate(now);
  if (path_choice_ != nullptr) path_choice_->on_congestion_notification(now);
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

std::vector<RcRequester::Request> RcRequester::withdraw() {
  std::vector<Request> left(std::make_move_iterator(requests_.begin()),
                            std::make_move_iterator(requests_.end()));
  requests_.clear();
  send_index_ = 0;
  fail(CompletionStatus::kFlushed);
  return left;
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
    if (status == CompletionStatus::kSuccess) ++completed_requests_;
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
                           .completed_ps = now,
                           .retransmitted_packets = request.retransmitted_packets});
}

}  // namespace weft
