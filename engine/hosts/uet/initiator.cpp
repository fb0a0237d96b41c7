#include "hosts/uet/initiator.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/uet/message_packets.hpp"

namespace weft::uet {

namespace {

uint8_t opcode_of(CompletionKind kind) {
  switch (kind) {
    case CompletionKind::kSend:
      return kSend;
    case CompletionKind::kRead:
      return kRead;
    default:
      return kWrite;
  }
}

}  // namespace

const char* pdc_state_name(PdcState state) {
  switch (state) {
    case PdcState::kClosed:
      return "closed";
    case PdcState::kSyn:
      return "syn";
    case PdcState::kEstablished:
      return "established";
    case PdcState::kClosing:
      return "closing";
  }
  return "unknown";
}

Initiator::Initiator(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
                     UetCounters& counters, PacketPool& pool, SendGate& gate, PdcTable& pdcs,
                     PathChoice* path_choice, CompletionHandler* handler)
    : Sender(common, config, common_counters, counters, pool, gate, path_choice),
      pdcs_(pdcs),
      largest_frame_bytes_(uet::full_frame_bytes(common, config)),
      data_ecn_(data_headers(common).ecn),
      psn_map_(common.initial_psn),
      messages_(common.queue_pair, handler),
      // With less than a frame nothing could ask for credit.
      ledger_(std::max<uint64_t>(config.advance_bytes, largest_frame_bytes_)) {
  probes_sent_ps_.fill(kNever);
}

void Initiator::post(TimePs now, RcRequest request) {
  refuse_foreign(request.foreign, "UET");
  if (is_atomic(request.kind)) {
    throw std::invalid_argument(std::string("a queue pair of UET carries no ") +
                                completion_kind_name(request.kind) +
                                " (valid: WRITE and SEND, each with or without immediate, READ)");
  }
  if (request.length_bytes > kMaxMessageBytes) {
    throw std::invalid_argument("message of " + std::to_string(request.length_bytes) +
                                " bytes (valid: at most 2147483648)");
  }
  if (request.posted_ps == kNever) request.posted_ps = now;
  if (request.kind == CompletionKind::kRead && reads_ == nullptr)
    reads_ = std::make_unique<ReadArrivals>(common_, config_, common_counters_, counters_, pool_);
  const uint64_t packets = packets_of_payload(request.length_bytes, common_.path_mtu_bytes);
  messages_.add(std::move(request), packets);
  if (error_ != CompletionStatus::kSuccess) deliver_completions(now);
}

// A closing PDC ends with the command that closes it: what follows goes over the next one.
bool Initiator::may_send_next() const {
  if (next_sequence_ == messages_.end_sequence()) return false;
  if (next_sequence_ - sent_.accepted() >= kMaxOutstanding) return false;
  if (!reaches(next_sequence_)) return false;
  if (state_ == PdcState::kClosing && next_sequence_ > pdc_close_) return false;
  return reads_ == nullptr || may_read_next();
}

// A READ, unless the next packet is none or has been sent before.
bool Initiator::may_read_next() const {
  if (next_sequence_ < sent_.highest()) return true;
  const Message& message = messages_.at(next_sequence_);
  return message.kind != CompletionKind::kRead || message.is_command ||
         reads_->may_ask(message, next_sequence_ == message.first_sequence);
}

// What was lost goes first.
std::optional<uint64_t> Initiator::sequence_to_send() {
  if (sent_.has_lost()) {
    if (const std::optional<uint64_t> lost = sent_.next_lost()) {
      if (reaches(*lost)) return lost;
      // One that has been lost again stands behind it.
      const uint64_t oldest = sent_.accepted();
      return sent_.packet(oldest).state == SentPacket::State::kLost ? std::optional(oldest) : std::nullopt;
    }
  }
  return may_send_next() ? std::optional(next_sequence_) : std::nullopt;
}

bool Initiator::may_have_data() const {
  if (clear_wanted_) return true;
  if (error_ != CompletionStatus::kSuccess) return false;
  return silence_.is_wanted() || wait_until_ps_ != kNever || sent_.has_lost() || may_send_next();
}

bool Initiator::should_ask(const Message& message, uint64_t sequence, uint64_t frame_bytes) const {
  // Only an answer establishes the PDC.
  const bool first = state_ == PdcState::kSyn && sequence == pdc_start_;
  if (first || sequence < sent_.highest() || sequence + 1 == message.end_sequence) return true;
  return sent_.should_ask(sequence, gate_.in_flight_bytes() + frame_bytes, largest_frame_bytes_);
}

bool Initiator::open_pdc(TimePs now, uint64_t first_sequence) {
  const std::optional<uint16_t> id = pdcs_.open(PdcRole::kInitiator, common_.queue_pair, config_.max_pdcs);
  if (!id) {
    ++counters_.pdc_waits;
    wait_until_ps_ = now + common_.retransmission_timeout_ps;
    return false;
  }
  pdc_ = *id;
  pdc_start_ = first_sequence;
  state_ = PdcState::kSyn;
  ledger_.start();
  ++counters_.pdcs_opened;
  return true;
}

void Initiator::close_pdc() {
  if (state_ == PdcState::kClosed) return;
  pdcs_.close(pdc_);
  state_ = PdcState::kClosed;
}

template <class... Pds>
PacketPtr Initiator::build_message(const Message& message, uint64_t sequence, uint64_t offset,
                                   uint64_t payload_bytes, const Pds&... pds) {
  return build_message_packet(pool_, headers_, common_, message, opcode_of(message.kind), sequence, offset,
                              payload_bytes, pds...);
}

template <class Pds>
PacketPtr Initiator::build_with_credit(const Message& message, uint64_t sequence, uint64_t offset,
                                       uint64_t payload_bytes, const Pds& pds) {
  if (!config_.receiver_credits) return build_message(message, sequence, offset, payload_bytes, pds);
  // As if every packet were full.
  const uint64_t packets = messages_.end_sequence() - next_sequence_ + sent_.lost_packets();
  const RequestCcState cc{.credit_target =
                              credit_units(ledger_.wanted_bytes(packets * largest_frame_bytes_))};
  return build_message(message, sequence, offset, payload_bytes, pds, cc);
}

PacketPtr Initiator::build_request(const Message& message, uint64_t sequence, uint64_t offset,
                                   uint64_t payload_bytes, bool asks) {
  const auto request = [&]<class Pds>(Pds pds) {
    pds.type = request_type(config_);
    pds.next_header = kRequestStandard;
    pds.retx = sequence < sent_.highest();
    pds.ackreq = asks;
    // All before this one is acknowledged, so no response to it is needed any more.
    pds.clear_psn_offset = clear_offset(sent_.accepted(), sequence);
    pds.psn = psn_map_.psn(sequence);
    pds.spdcid = pdc_;
    return pds;
  };
  if (state_ == PdcState::kSyn) {
    SynRequest pds = request(SynRequest());
    pds.psn_offset = static_cast<uint16_t>(sequence - pdc_start_);
    return build_with_credit(message, sequence, offset, payload_bytes, pds);
  }
  Request pds = request(Request());
  pds.dpdcid = target_pdc_;
  return build_with_credit(message, sequence, offset, payload_bytes, pds);
}

PacketPtr Initiator::build_control(uint8_t type, uint64_t sequence, uint16_t opaque, bool retransmission,
                                   bool asks) {
  const Control control{.ctl_type = type,
                        .isrod = is_ordered_,
                        .retx = retransmission,
                        .ackreq = asks,
                        .probe_opaque = opaque,
                        .psn = psn_map_.psn(sequence),
                        .spdcid = pdc_,
                        .dpdcid = target_pdc_};
  PacketPtr packet = build_frame(pool_, headers_, Body(), control);
  packet->set_traffic_kind(weft::Packet::kControlTraffic);
  return packet;
}

bool Initiator::has_credit(TimePs now, uint64_t frame_bytes) {
  if (ledger_.covers(frame_bytes)) {
    starved_ps_ = kNever;
    return true;
  }
  if (starved_ps_ == kNever) {
    starved_ps_ = now;
    ++counters_.credit_waits;
  }
  return false;
}

PacketPtr Initiator::pull(TimePs now) {
  wait_until_ps_ = kNever;
  headers_.ecn = data_ecn_;
  headers_.dscp = config_.data_dscp;
  if (std::exchange(clear_wanted_, false)) {
    last_pulled_ = {0, true};
    return build_control(kClearCommand, sent_.accepted(), 0, false, false);
  }
  if (error_ != CompletionStatus::kSuccess) return nullptr;
  bool repeats = silence_.take();
  if (repeats && may_probe()) return pull_probe(now);
  repeats = repeats && is_waiting() && state_ != PdcState::kClosed && now >= blocked_until_ps_;
  const std::optional<uint64_t> sequence = repeats ? repeat_oldest(now) : sequence_to_send();
  if (!sequence || (!repeats && !may_leave(now, blocked_until_ps_))) return nullptr;
  Message& message = messages_.at(*sequence, next_sequence_);
  const uint64_t offset = (*sequence - message.first_sequence) * common_.path_mtu_bytes;
  // A READ's packets each ask for the data that one packet holds.
  const bool is_read = message.kind == CompletionKind::kRead;
  const uint64_t payload_bytes =
      message.is_command || is_read
          ? 0
          : std::min<uint64_t>(common_.path_mtu_bytes, message.length_bytes - offset);
  const size_t frame_bytes = message.is_command ? uet::frame_bytes<Control>(common_.source_ip.is_ipv6, 0)
                                                : data_frame_bytes(common_, config_, payload_bytes);
  if (!repeats && !gate_.has_room(frame_bytes)) return nullptr;
  if (repeats) ledger_.forgive(largest_frame_bytes_);
  if (state_ == PdcState::kClosed && !open_pdc(now, *sequence)) return nullptr;
  if (config_.receiver_credits && !message.is_command && !has_credit(now, frame_bytes)) return nullptr;
  const bool retransmission = *sequence < sent_.highest();
  const bool asks = should_ask(message, *sequence, frame_bytes);
  const uint16_t entropy = take_entropy(common_, path_choice_, now, *sequence, retransmission);
  set_entropy(headers_, entropy);
  if (retransmission) headers_.dscp = config_.retransmission_dscp;
  PacketPtr packet;
  if (message.is_command) {
    packet = build_control(kCloseCommand, *sequence, 0, retransmission, true);
  } else {
    packet = build_request(message, *sequence, offset, payload_bytes, asks);
    packet->set_traffic_kind(message.traffic_kind);
    ledger_.spend(frame_bytes);
    common_counters_.data_bytes_sent += payload_bytes;
    ++common_counters_.data_packets_sent;
  }
  if (record(now, *sequence, frame_bytes, entropy, asks) && !message.is_command) {
    ++common_counters_.retransmitted_packets;
    ++message.retransmitted_packets;
  }
  if (is_read && !retransmission) reads_->note_asked(message, *sequence == message.first_sequence);
  last_pulled_ = {payload_bytes, *sequence == message.first_sequence};
  return packet;
}

// A probe takes no room in the window: nothing is heard of what does.
PacketPtr Initiator::pull_probe(TimePs now) {
  set_entropy(headers_, take_entropy(common_, path_choice_, now, sent_.accepted(), false));
  probes_sent_ps_[++probe_opaque_ % kProbes] = now;
  ++counters_.probes_sent;
  last_pulled_ = {0, true};
  return build_control(kProbe, sent_.accepted(), probe_opaque_, false, true);
}

}  // namespace weft::uet
