#include "hosts/rc_requester.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft {

RcRequester::RcRequester(const RcConfig& config, RcCounters& counters, PacketPool& pool, SendGate& gate,
                         PathChoice* path_choice, CompletionHandler* handler)
    : config_(config),
      counters_(counters),
      pool_(pool),
      gate_(gate),
      completions_(config.queue_pair, handler),
      headers_(data_headers(config)),
      template_(headers_),
      psn_map_(config.initial_psn),
      sent_(config, gate, path_choice),
      path_choice_(path_choice),
      selective_repeat_(config.retransmission == Retransmission::kSelectiveRepeat),
      marks_ends_of_flows_(gate.congestion_control().marks_ends_of_flows()) {
  headers_.bth.opcode = roce::kRcWriteOnlyImmediate;
  largest_frame_bytes_ = roce::frame_bytes(headers_, config.path_mtu_bytes);
  headers_.bth.opcode = roce::kRcWriteMiddle;
  smallest_full_frame_bytes_ = roce::frame_bytes(headers_, config.path_mtu_bytes);
}

void RcRequester::observe(Probe* probe, ConnectionEnds ends, bool messages, bool telemetry) {
  completions_.observe(messages ? probe : nullptr, ends);
  telemetry_probe_ = telemetry ? probe : nullptr;
  ends_ = ends;
}

void RcRequester::count_hops(std::shared_ptr<HopLatencies> latencies, int32_t peer, int32_t plane) {
  hop_latencies_ = std::move(latencies);
  hops_peer_ = peer;
  hops_plane_ = plane;
}

void RcRequester::post(TimePs now, Request request) {
  if (request.length_bytes > kMaxMessageBytes) {
    throw std::invalid_argument("message of " + std::to_string(request.length_bytes) +
                                " bytes (valid: at most 2147483648)");
  }
  if (selective_repeat_ && request.kind == CompletionKind::kSend) {
    throw std::invalid_argument("a queue pair with selective repeat carries no SENDs");
  }
  const bool has_lines = config_.line_format != LineFormat::kNone;
  if (has_lines && request.kind != CompletionKind::kWrite) {
    throw std::invalid_argument("a queue pair with a line format carries nothing but WRITEs");
  }
  if (has_lines && request.foreign != nullptr)
    throw std::invalid_argument("a queue pair with a line format sends from no foreign memory");
  const uint64_t wire = wire_bytes(config_.line_format, request.length_bytes);
  if (wire > kMaxMessageBytes) {
    throw std::invalid_argument("message of " + std::to_string(request.length_bytes) + " bytes takes " +
                                std::to_string(wire) + " as lines (valid: at most 2147483648)");
  }
  const uint64_t psns = packets_of_payload(wire, config_.path_mtu_bytes);
  const bool reads = is_read(request.kind);
  if (reads && psns > kMaxReadPackets) {
    throw std::invalid_argument(
        "READ of " + std::to_string(request.length_bytes) + " bytes (valid: at most " +
        std::to_string(kMaxReadPackets * config_.path_mtu_bytes) + " with this path MTU)");
  }
  const uint64_t packets = reads ? 1 : psns;
  if (request.posted_ps == kNever) request.posted_ps = now;
  if (sent_.accepted() == end_sequence_) flow_first_sequence_ = end_sequence_;
  requests_.push_back(Outstanding{std::move(request), end_sequence_, end_sequence_ + packets, end_psn_,
                                  ++posted_messages_, wire});
  end_sequence_ += packets;
  end_psn_ += psns;
  if (error_ != CompletionStatus::kSuccess) deliver_completions(now);
}

bool RcRequester::should_request_ack(const Outstanding& request, uint64_t sequence, uint32_t packets,
                                     uint64_t frame_bytes) const {
  const bool selective_retransmission = sequence != next_sequence_;
  if (selective_retransmission || sequence + packets == request.end_sequence) return true;
  const bool lacks_credit =
      config_.end_to_end_credits && needs_credit(request) && request.number > credit_limit_;
  if (lacks_credit) return true;
  const uint64_t in_flight_after = gate_.in_flight_bytes() + packets * frame_bytes;
  return sent_.should_ask(sequence + packets - 1, in_flight_after, largest_frame_bytes_);
}

// Retransmissions of selective repeat go first; go-back-N's are next_sequence_'s.
std::optional<uint64_t> RcRequester::sequence_to_send() {
  if (sent_.has_lost()) {
    if (const std::optional<uint64_t> lost = sent_.next_lost()) return lost;
  }
  if (next_sequence_ == end_sequence_ || !may_send_next()) return std::nullopt;
  return next_sequence_;
}

// PSNs in use must leave their order known, and a READ needs one of the peer's resources.
bool RcRequester::may_send_next() {
  const uint64_t limit = selective_repeat_ ? ArrivalWindow::kMaxPackets : kMaxOutstandingPackets - 1;
  if (next_sequence_ - sent_.accepted() >= limit) return false;
  const Outstanding& request = request_of(next_sequence_);
  if (config_.end_to_end_credits && !has_credit(request)) return false;
  const bool reads = is_read(request.kind);
  if (reads_ == nullptr) {
    if (reads) reads_ = std::make_unique<OutstandingReads>(config_, counters_, pool_, psn_map_);
    return true;
  }
  const uint64_t psn = request.psn_of(next_sequence_);
  if (psn - reads_->psn_of(sent_.accepted()) >= limit) return false;
  const uint64_t last_psn =
      reads ? psn + packets_of_payload(request.length_bytes, config_.path_mtu_bytes) - 1 : psn;
  if (last_psn - reads_->oldest_psn(sent_.accepted()) >= kMaxOutstandingPackets - 1) return false;
  return !reads || next_sequence_ < sent_.highest() || reads_->has_room();
}

// Whether the peer needs a receive for it.
bool RcRequester::needs_credit(const Outstanding& request) const {
  return request.kind == CompletionKind::kSend ||
         (config_.receive_for_immediate && request.immediate.has_value());
}

// One packet may go beyond the limit, so that its acknowledgement brings a new one.
bool RcRequester::has_credit(const Outstanding& request) const {
  if (!needs_credit(request) || request.number <= credit_limit_) return true;
  return request.number == credit_limit_ + 1 && next_sequence_ == request.first_sequence;
}

// False if all is sent, or the window has no room for the next packet and that is a full one; other cases are
// pull()'s to find out.
bool RcRequester::may_have_data() const {
  if (error_ != CompletionStatus::kSuccess || refusal_ != CompletionStatus::kSuccess) return false;
  if (reads_ != nullptr && reads_->has_repeat()) return true;
  if (wait_until_ps_ != kNever || sent_.has_lost()) return true;
  if (next_sequence_ == end_sequence_) return false;
  const Outstanding& request = requests_.sending();
  const bool ends_message = request.end_sequence <= next_sequence_ + 1;
  return ends_message || gate_.has_room(smallest_full_frame_bytes_, more_window_bytes(request));
}

PacketPtr RcRequester::pull(TimePs now) {
  wait_until_ps_ = kNever;
  if (error_ != CompletionStatus::kSuccess || refusal_ != CompletionStatus::kSuccess) return nullptr;
  if (reads_ != nullptr && reads_->has_repeat()) {
    if (PacketPtr packet = pull_repeat(now)) return packet;
  }
  const std::optional<uint64_t> sequence = sequence_to_send();
  if (!sequence) return nullptr;
  const TimePs earliest = std::max(rnr_until_ps_, gate_.next_send_ps());
  if (now < earliest) {
    wait_until_ps_ = earliest;
    return nullptr;
  }
  Outstanding& request = request_of(*sequence);
  const uint32_t packets = packets_to_send(request, *sequence);
  const size_t payload_bytes = packet_payload_bytes(request, *sequence);
  set_packet_headers(request, *sequence, packets, payload_bytes);
  const size_t frame_bytes = roce::frame_bytes(headers_, payload_bytes);
  if (!gate_.has_room(frame_bytes, more_window_bytes(request))) return nullptr;

  headers_.bth.acknowledge_request = should_request_ack(request, *sequence, packets, frame_bytes);
  if (headers_.bth.acknowledge_request) {
    if (!sent_.is_asked()) progress_ps_ = now;  // nobody was asked before
    sent_.ask(*sequence + packets - 1);
  }
  if (is_read(request.kind)) reads_->add(request, *sequence, request.first_psn);
  if (path_choice_ != nullptr) set_path(now, *sequence, *sequence < sent_.highest());
  PacketPtr packet = build(request, *sequence, payload_bytes);
  if (marks_ends_of_flows_ && !is_read(request.kind)) [[unlikely]]
    mark_end_of_flow(*packet, *sequence);
  packet->set_traffic_kind(request.traffic_kind);
  counters_.data_bytes_sent += packets * payload_bytes;
  last_pulled_ = {packets * payload_bytes, *sequence == request.first_sequence};
  if (packets == 1) [[likely]] {
    record_sent(now, request, *sequence, static_cast<uint16_t>(frame_bytes), 0);
  } else {
    packet->set_packets(packets, once_bytes());
    record_segment(now, request, *sequence, packets, static_cast<uint16_t>(frame_bytes), once_bytes());
  }
  return packet;
}

// The memory of the next packet to be sent is not there, and its request fails when those before it are done:
// each answer has the NIC pull again. The NIC's timer, due at once, completes what is posted and fails the
// queue pair's other half, because handlers of completions may do more than a pull() allows.
void RcRequester::on_unreadable(TimePs now) {
  const std::optional<uint64_t> sequence = sequence_to_send();
  if (!sequence || done_end() < request_of(*sequence).first_sequence) return;
  fail(CompletionStatus::kLocalProtectionError);
  wait_until_ps_ = now;
}

// Asks again for what is missing of a READ: a small packet, on which neither window nor rate is spent.
PacketPtr RcRequester::pull_repeat(TimePs now) {
  const std::optional<OutstandingReads::Repeat> repeat = reads_->next_repeat();
  if (!repeat) return nullptr;
  set_read_headers(*repeat->request, repeat->psn, repeat->offset_bytes);
  headers_.bth.acknowledge_request = true;
  if (path_choice_ != nullptr) set_path(now, repeat->sequence, true);
  ++counters_.data_packets_sent;
  ++counters_.retransmitted_packets;
  ++requests_.sent_request_of(repeat->sequence).retransmitted_packets;
  last_pulled_ = {0, true};
  PacketPtr packet = repeat->request->as_length ? template_.build_as_length(pool_, headers_, 0)
                                                : template_.build(pool_, headers_);
  packet->set_traffic_kind(repeat->request->traffic_kind);
  return packet;
}

void RcRequester::record_sent(TimePs now, Outstanding& request, uint64_t sequence, uint16_t frame_bytes,
                              TimePs later_ps) {
  ++counters_.data_packets_sent;
  if (sent_.in_flight_bytes() == 0) progress_ps_ = now;
  const auto entropy = static_cast<uint16_t>(headers_.source_udp_port & kEntropyMask);
  if (sent_.record(now, sequence, frame_bytes, entropy, later_ps)) {
    ++counters_.retransmitted_packets;
    ++request.retransmitted_packets;
  }
  if (sequence == next_sequence_) ++next_sequence_;
}

void RcRequester::follow_rate(TimePs now) {
  if (gate_.follow_rate()) renew_wait(now);
}

void RcRequester::renew_wait(TimePs now) {
  if (wait_until_ps_ == kNever) return;
  const TimePs earliest = std::max(rnr_until_ps_, gate_.next_send_ps());
  wait_until_ps_ = earliest <= now ? kNever : earliest;  // the NIC pulls next
}

// The packet that the peer answers: with selective repeat the one that the MSN field names, otherwise the
// last one that it acknowledges.
std::optional<uint64_t> RcRequester::answered_sequence(const roce::ParsedPacket& packet,
                                                       uint64_t end_sequence) const {
  if (selective_repeat_) {
    const int64_t answered = sequence_of(packet.aeth.msn);
    if (answered >= static_cast<int64_t>(sent_.accepted()) &&
        answered < static_cast<int64_t>(sent_.highest())) {
      return static_cast<uint64_t>(answered);
    }
  }
  if (end_sequence == sent_.accepted()) return std::nullopt;
  return end_sequence - 1;
}

// Everything before `end_sequence` has arrived, and `answered`, which caused this acknowledgement.
void RcRequester::acknowledge(TimePs now, uint64_t end_sequence, std::optional<uint64_t> answered,
                              const roce::ParsedPacket& packet) {
  const bool covers_more = end_sequence > sent_.accepted();
  if (!sent_.acknowledge(now, end_sequence, answered, packet)) {
    if (!covers_more && selective_repeat_) ++counters_.stale_acknowledgements;
    return;
  }
  next_sequence_ = std::max(next_sequence_, sent_.accepted());
  retries_ = 0;
  rnr_retries_ = 0;
  progress_ps_ = now;
}

void RcRequester::fail(CompletionStatus status) {
  error_ = status;
  next_sequence_ = sent_.accepted();
  sent_.release();
  wait_until_ps_ = kNever;
}

std::vector<RcRequester::Request> RcRequester::take_back() {
  std::vector<Request> left = requests_.withdraw();
  reads_.reset();
  return left;
}

void RcRequester::deliver_completions(TimePs now) {
  if (reads_ != nullptr && !requests_.is_delivering()) reads_->forget_done(sent_.accepted());
  requests_.deliver(now, [this] { return done_end(); }, error_, completions_);
}

}  // namespace weft
