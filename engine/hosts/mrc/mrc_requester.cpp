#include "hosts/mrc/mrc_requester.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "packets/mrc_codec.hpp"

namespace weft::mrc {
namespace {

uint8_t opcode_of_write(bool first, bool last, bool immediate) {
  if (first && last) return immediate ? kWriteOnlyImmediate : kWriteOnly;
  if (first) return kWriteFirst;
  if (!last) return kWriteMiddle;
  return immediate ? kWriteLastImmediate : kWriteLast;
}

}  // namespace

Requester::Requester(const RcConfig& common, const MrcConfig& config, RcCounters& common_counters,
                     MrcCounters& counters, PacketPool& pool, SendGate& gate, EvTable& evs,
                     CompletionHandler* handler)
    : RepeatingSender(common, common_counters, gate, nullptr, &path_losses_),
      config_(config),
      counters_(counters),
      pool_(pool),
      evs_(evs),
      completions_(common.queue_pair, handler),
      path_losses_(*this),
      headers_(headers_by_plane(common, config)),
      data_ecn_(data_headers(common).ecn),
      psn_map_(common.initial_psn),
      flags_(evs.size()) {
  roce::RoceHeaders headers = headers_.front();
  headers.bth.opcode = kWriteOnlyImmediate;
  Headers mrc;
  mrc.outer_destination = evs.outer_destination(0);
  largest_frame_bytes_ = mrc::frame_bytes(headers, mrc, common.path_mtu_bytes);
}

void Requester::post(TimePs now, RcRequest request) {
  if (request.kind != CompletionKind::kWrite) {
    throw std::invalid_argument(
        std::string("an MRC queue pair carries no ") + completion_kind_name(request.kind) +
        " (valid: WRITE, WRITE with immediate; MRC has neither SENDs nor READs nor atomics)");
  }
  if (request.length_bytes > kMaxMessageBytes) {
    throw std::invalid_argument("message of " + std::to_string(request.length_bytes) +
                                " bytes (valid: at most 2147483648)");
  }
  const uint64_t packets = packets_of_payload(request.length_bytes, common_.path_mtu_bytes);
  if (request.posted_ps == kNever) request.posted_ps = now;
  Outstanding added{std::move(request), end_sequence_, end_sequence_ + packets, posted_messages_++};
  // 0 stands for a WRITE without one.
  if (added.immediate && ++posted_immediates_ == 0) posted_immediates_ = 1;
  if (added.immediate) added.immediate_number = posted_immediates_;
  const bool immediate = added.immediate.has_value();
  requests_.push_back(std::move(added));
  end_sequence_ += packets;
  if (limits_immediates() && error_ == CompletionStatus::kSuccess) {
    held_.push({end_sequence_, immediate});
    allow_requests();
  } else {
    allowed_end_ = end_sequence_;
  }
  if (error_ != CompletionStatus::kSuccess) deliver_completions(now);
}

void Requester::allow_requests() {
  while (!immediates_under_way_.empty() && immediates_under_way_.front() <= sent_.accepted())
    immediates_under_way_.pop();
  while (!held_.empty() && (!held_.front().immediate || immediates_under_way_.size() < config_.max_wimm)) {
    const Held held = held_.pop();
    allowed_end_ = held.end_sequence;
    if (held.immediate) immediates_under_way_.push(held.end_sequence);
  }
}

// What was lost goes first.
std::optional<uint64_t> Requester::sequence_to_send() {
  if (sent_.has_lost()) {
    if (const std::optional<uint64_t> lost = sent_.next_lost()) return lost;
  }
  if (next_sequence_ == allowed_end_) {
    if (held_.empty()) return std::nullopt;
    allow_requests();
    if (next_sequence_ == allowed_end_) return std::nullopt;
  }
  if (next_sequence_ - sent_.accepted() >= config_.mpr * kMprUnitPsns) return std::nullopt;
  return next_sequence_;
}

bool Requester::should_request_sack(const Outstanding& request, uint64_t sequence,
                                    uint64_t frame_bytes) const {
  const bool retransmission = sequence != next_sequence_;
  if (retransmission || sequence + 1 == request.end_sequence) return true;
  return sent_.should_ask(sequence, gate_.in_flight_bytes() + frame_bytes, largest_frame_bytes_);
}

bool Requester::may_have_data() const {
  if (error_ != CompletionStatus::kSuccess) return false;
  return !probes_.empty() || silence_.is_wanted() || wait_until_ps_ != kNever || sent_.has_lost() ||
         next_sequence_ != end_sequence_;
}

void Requester::set_message_headers(roce::RoceHeaders& headers, Headers& mrc, const Outstanding& request,
                                    uint64_t sequence, uint64_t offset) const {
  const bool first = sequence == request.first_sequence;
  const bool last = sequence + 1 == request.end_sequence;
  headers.bth.opcode = opcode_of_write(first, last, request.immediate.has_value());
  headers.bth.psn = psn_map_.psn(sequence);
  headers.immediate = request.immediate.value_or(0);
  headers.reth = {request.remote_address + offset, request.rkey, static_cast<uint32_t>(request.length_bytes)};
  mrc.retransmission = sequence != next_sequence_;
  mrc.meth = {.rqmsn = request.immediate_number, .msn = request.number};
}

std::optional<const uint8_t*> Requester::payload_of(const Outstanding& request, uint64_t offset,
                                                    size_t bytes) {
  if (request.foreign == nullptr || bytes == 0)
    return request.data == nullptr ? nullptr : request.data + offset;
  payload_.resize(bytes);
  if (!request.foreign->read(offset, payload_.data(), bytes)) return std::nullopt;
  return payload_.data();
}

void Requester::on_unreadable(TimePs now, const Outstanding& request) {
  if (std::min(sent_.accepted(), refused_sequence_) < request.first_sequence) return;
  fail(CompletionStatus::kLocalProtectionError);
  wait_until_ps_ = now;  // then it is told
}

PacketPtr Requester::pull(TimePs now, uint32_t plane) {
  wait_until_ps_ = kNever;
  if (error_ != CompletionStatus::kSuccess) return nullptr;
  if (PacketPtr probe = pull_probe(now, plane)) return probe;
  if (!evs_.may_use(plane)) return nullptr;
  const std::optional<uint64_t> sequence = sequence_to_send();
  if (!sequence) return nullptr;
  if (!may_leave(now)) return nullptr;
  Outstanding& request = request_of(*sequence);
  const uint64_t offset = (*sequence - request.first_sequence) * common_.path_mtu_bytes;
  const uint64_t payload_bytes = std::min<uint64_t>(common_.path_mtu_bytes, request.length_bytes - offset);
  roce::RoceHeaders& headers = headers_[plane];
  Headers mrc;
  set_message_headers(headers, mrc, request, *sequence, offset);
  mrc.outer_destination = evs_.outer_destination(0);  // all EVs have one, or none
  const size_t frame_bytes = mrc::frame_bytes(headers, mrc, payload_bytes);
  if (!gate_.has_room(frame_bytes)) return nullptr;
  const std::optional<const uint8_t*> payload = payload_of(request, offset, payload_bytes);
  if (!payload) {
    on_unreadable(now, request);
    return nullptr;
  }
  const std::optional<size_t> ev = evs_.next(plane);
  if (!ev) return nullptr;
  set_entropy(headers, evs_.value(*ev));
  mrc.outer_destination = evs_.outer_destination(*ev);
  headers.ecn = data_ecn_;
  headers.dscp = mrc.retransmission ? config_.retransmission_dscp : config_.data_dscp;
  headers.bth.acknowledge_request = should_request_sack(request, *sequence, frame_bytes);
  PacketPtr packet = request.as_length ? build_as_length(pool_, headers, mrc, payload_bytes)
                                       : build_packet(pool_, headers, mrc, *payload, payload_bytes);
  packet->set_traffic_kind(request.traffic_kind);
  common_counters_.data_bytes_sent += payload_bytes;
  ++common_counters_.data_packets_sent;
  if (sent_.in_flight_bytes() == 0) progress_ps_ = now;
  if (record(now, *sequence, frame_bytes, static_cast<uint16_t>(*ev), headers.bth.acknowledge_request)) {
    ++common_counters_.retransmitted_packets;
    ++request.retransmitted_packets;
  }
  last_pulled_ = {payload_bytes, *sequence == request.first_sequence};
  return packet;
}

// A probe takes no room in the window: its path carries nothing else. One after a silence goes over another
// path than the packet, or probe, before it, and so does its answer.
PacketPtr Requester::pull_probe(TimePs now, uint32_t plane) {
  std::optional<size_t> ev;
  if (silence_.is_wanted() && evs_.may_use(plane) && (ev = evs_.next(plane))) {
    silence_.take();
    silence_probe_ = SentProbe{now, static_cast<uint32_t>(*ev)};
  } else {
    for (size_t left = probes_.size(); left > 0 && !ev; --left) {
      const uint32_t next = probes_.pop();
      if (evs_.plane_of(next) == plane)
        ev = next;
      else
        probes_.push(next);
    }
    if (!ev) return nullptr;
    flags_[*ev].to_be_probed = false;
  }
  roce::RoceHeaders headers = headers_[plane];
  set_entropy(headers, evs_.value(*ev));
  headers.dscp = config_.data_dscp;
  headers.ecn = data_ecn_;
  headers.bth.opcode = kReliabilityProbe;
  headers.bth.acknowledge_request = false;
  headers.bth.psn = 0;
  Headers mrc;
  mrc.outer_destination = evs_.outer_destination(*ev);
  mrc.peth = {.probe_id = static_cast<uint16_t>(*ev),
              .spdcid = static_cast<uint16_t>(common_.queue_pair),
              .dpdcid = static_cast<uint16_t>(common_.remote_queue_pair),
              .ftype = kNoTimestamp};
  ++counters_.probes_sent;
  last_pulled_ = {0, true};
  PacketPtr packet = build_packet(pool_, headers, mrc);
  packet->set_traffic_kind(Packet::kControlTraffic);
  return packet;
}

void Requester::on_sack(TimePs now, const roce::ParsedPacket& packet, const Headers& mrc) {
  if (error_ != CompletionStatus::kSuccess) return;
  const Seth& seth = mrc.seth;
  ++common_counters_.acknowledgements_received;
  const int64_t base = psn_map_.sequence(seth.cack_psn, sent_.accepted());
  std::optional<SentStream::Arrivals> arrivals =
      sent_.arrivals_at(base, seth.sack_offset, seth.sack_bitmap,
                        seth.pr ? std::nullopt : std::optional<int64_t>(seth.ack_psn_offset));
  if (!arrivals) {
    ++common_counters_.invalid_acknowledgements;
    return;
  }
  arrivals->marked = seth.m == kMarkSkipOnce;
  arrivals->hop_limit = packet.hop_limit;

  const std::optional<size_t> ev = evs_.find(seth.entropy);
  take_marks(now, seth, ev, arrivals->answered);
  if (sent_.acknowledge(now, *arrivals)) {
    note_progress(now);
  } else if (!seth.pr) {
    ++common_counters_.stale_acknowledgements;
  }
  if (seth.pr && ev && silence_probe_ && silence_probe_->ev == *ev) {
    sent_.on_probe_answer(now, silence_probe_->sent_ps);
    silence_probe_.reset();
    retries_ = 0;
  }
  detect_losses(now);
  follow_rate(now);
  deliver_completions(now);
}

// What a SACK says of the path of the packet, or probe, that it answers.
void Requester::take_marks(TimePs now, const Seth& seth, std::optional<size_t> ev,
                           std::optional<uint64_t> answered) {
  const bool marked = seth.m == kMarkSkipOnce;
  if (seth.pr) ++counters_.probes_answered;
  if (!ev) return;
  if (seth.m == kMarkAlwaysSkip) return on_path_failure(now, *ev, now);
  if (seth.pr)
    evs_.on_probe_answer(*ev, marked);
  else if (answered)
    note_transmission(now, *answered, *ev);
  if (marked) evs_.on_congestion(*ev);
}

// The packet has arrived over this EV: a path for answers to the peer, too. If it was sent again over another
// since, the SACK is about an earlier transmission, which was taken for lost.
void Requester::note_transmission(TimePs now, uint64_t answered, size_t ev) {
  const SentPacket& newest = sent_.packet(answered);
  if (newest.path() == ev) return evs_.on_proof(ev);
  if (newest.retransmitted) sent_.note_needless_retransmission(now);
  if (evs_.state(ev) == EvState::kAssumedBad) evs_.on_probe_answer(ev, false);
}

void Requester::on_nack(TimePs now, const Headers& mrc) {
  if (error_ != CompletionStatus::kSuccess) return;
  const Neth& neth = mrc.neth;
  const bool trimmed = neth.nack_reason == kNackTrimmed || neth.nack_reason == kNackTrimmedLastHop;
  ++(trimmed ? counters_.trim_nacks_received : counters_.other_nacks_received);
  if (neth.nack_reason == kNackUnexpectedEvent) {
    fail(CompletionStatus::kRemoteOperationError);
    deliver_completions(now);
    return;
  }
  const std::optional<uint64_t> sequence = sequence_out(psn_map_.sequence(neth.nack_psn, sent_.accepted()));
  if (!sequence) return;
  const std::optional<size_t> ev = evs_.find(neth.entropy);
  // At its last hop a packet meets those of other senders, which no other path avoids.
  if (ev && neth.nack_reason == kNackTrimmed) evs_.on_congestion(*ev);
  lose_refused(now, *sequence, ev ? std::optional(static_cast<uint16_t>(*ev)) : std::nullopt);
}

void Requester::on_refusal(TimePs now, const roce::ParsedPacket& packet) {
  if (error_ != CompletionStatus::kSuccess || packet.aeth.syndrome < roce::kSyndromeNakInvalidRequest) return;
  ++common_counters_.fatal_naks_received;
  // All before the packet that it names has arrived, whatever SACKs are lost.
  const int64_t end = psn_map_.sequence(packet.bth.psn, sent_.accepted());
  if (end >= static_cast<int64_t>(sent_.accepted()) && end < static_cast<int64_t>(sent_.highest())) {
    refused_sequence_ = static_cast<uint64_t>(end);
    sent_.acknowledge(now, {.end = refused_sequence_,
                            .first = refused_sequence_,
                            .hop_limit = packet.hop_limit,
                            .misses_end = true});
  }
  const CompletionStatus status = status_of_nak(packet.aeth.syndrome);
  fail(status == CompletionStatus::kSuccess ? CompletionStatus::kRemoteOperationError : status);
  deliver_completions(now);
}

// An answer that is missing fails no EV: SACKs may be lost, too. The peer has said that the packet is
// missing, or says nothing at all.
void Requester::on_lost(TimePs now, const SentPacket& packet) {
  if (silent_ || packet.is_missing()) on_path_failure(now, packet.path(), packet.sent_ps);
}

// Its path works, unless packets that were sent later have been lost there.
void Requester::on_found(const SentPacket& packet) {
  const size_t ev = packet.path();
  if (packet.sent_ps >= flags_[ev].blamed_ps) evs_.on_probe_answer(ev, false);
}

void Requester::on_path_failure(TimePs now, size_t ev, TimePs sent_ps) {
  if (!evs_.on_failure(ev)) return;
  flags_[ev].blamed_ps = sent_ps;
  if (std::exchange(flags_[ev].watched, true)) return;
  watched_.push({now + config_.probe_interval_ps, static_cast<uint32_t>(ev)});
}

void Requester::probe(size_t ev) {
  if (!std::exchange(flags_[ev].to_be_probed, true)) probes_.push(static_cast<uint32_t>(ev));
}

void Requester::make_due_probes(TimePs now) {
  for (size_t left = watched_.size(); left > 0 && watched_.front().due_ps <= now; --left) {
    const DueProbe due = watched_.pop();
    if (evs_.state(due.ev) != EvState::kAssumedBad) {
      flags_[due.ev].watched = false;
      continue;
    }
    if (evs_.is_up(evs_.plane_of(due.ev))) probe(due.ev);
    watched_.push({now + config_.probe_interval_ps, due.ev});
  }
}

void Requester::on_inbound(TimePs now) {
  if (watched_.empty() || is_waiting() || error_ != CompletionStatus::kSuccess) return;
  make_due_probes(now);
}

void Requester::stop_probing() {
  while (!probes_.empty()) flags_[probes_.pop()].to_be_probed = false;
}

TimePs Requester::probe_deadline() const {
  const TimePs patience_ps = silent_round_trips_ps();
  return patience_ps == 0 ? kNever : silence_deadline(patience_ps, doublings());
}

TimePs Requester::next_deadline() const {
  const TimePs of_congestion_ps = gate_.congestion_control().next_deadline();
  if (error_ != CompletionStatus::kSuccess) return std::min(of_congestion_ps, wait_until_ps_);
  const TimePs watched_ps = is_waiting() && !watched_.empty() ? watched_.front().due_ps : kNever;
  return std::min({timeout_deadline(), probe_deadline(), watched_ps, sending_deadline(), of_congestion_ps});
}

void Requester::on_deadline(TimePs now) {
  end_wait(now);
  CongestionControl& congestion_control = gate_.congestion_control();
  if (now >= congestion_control.next_deadline()) congestion_control.on_deadline(now);
  if (error_ != CompletionStatus::kSuccess) return deliver_completions(now);
  if (now >= sent_.loss_deadline_ps()) detect_losses(now);
  if (is_waiting()) make_due_probes(now);
  if (now >= probe_deadline()) silence_.ask(now);
  if (now >= timeout_deadline()) on_timeout(now);
  gate_.follow_rate();
  deliver_completions(now);
}

void Requester::on_timeout(TimePs now) {
  if (!may_retry()) return fail(CompletionStatus::kRetryExceeded);
  silent_ = true;
  retry_overdue(now);
  silent_ = false;
}

void Requester::fail(CompletionStatus status) {
  error_ = status;
  held_ = {};
  immediates_under_way_ = {};
  stop();
  probes_ = {};
  watched_ = {};
  flags_.assign(flags_.size(), EvFlags());
}

void Requester::deliver_completions(TimePs now) {
  requests_.deliver(
      now, [this] { return std::min(sent_.accepted(), refused_sequence_); }, error_, completions_);
}

}  // namespace weft::mrc
