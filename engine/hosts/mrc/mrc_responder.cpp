#include "hosts/mrc/mrc_responder.hpp"

#include <algorithm>
#include <utility>

#include "hosts/rc_request.hpp"
#include "packets/mrc_codec.hpp"

namespace weft::mrc {
namespace {

constexpr bool ends_write(uint8_t opcode) { return opcode != kWriteFirst && opcode != kWriteMiddle; }
constexpr bool begins_write(uint8_t opcode) {
  return opcode == kWriteFirst || opcode == kWriteOnly || opcode == kWriteOnlyImmediate;
}
constexpr bool has_immediate_data(uint8_t opcode) {
  return opcode == kWriteLastImmediate || opcode == kWriteOnlyImmediate;
}

}  // namespace

Responder::Responder(const RcConfig& common, const MrcConfig& config, RcCounters& common_counters,
                     MrcCounters& counters, PacketPool& pool, const MemoryRegistry& memory, EvTable& evs,
                     CompletionHandler* handler)
    : common_(common),
      config_(config),
      common_counters_(common_counters),
      counters_(counters),
      pool_(pool),
      memory_(memory),
      evs_(evs),
      headers_(headers_by_plane(common, config)),
      psn_map_(common.remote_initial_psn),
      receives_(common.queue_pair, handler),
      answers_(evs.planes()) {
  for (roce::RoceHeaders& headers : headers_) {
    headers.dscp = config.control_dscp;
    headers.ecn = roce::kNotEct;
  }
}

// The oldest go first: what they say later ones say again, or a timeout asks for.
void Responder::answer(Answer answer) {
  RingBuffer<Answer>& answers = answers_[plane_];
  if (answers.size() >= kMaxOutstanding) answers.pop();
  answers.push(answer);
}

RingBuffer<Responder::Answer>* Responder::answers_over(uint32_t plane) {
  if (!evs_.may_use(plane)) return nullptr;
  if (!answers_[plane].empty()) return &answers_[plane];
  for (uint32_t other = 0; other < answers_.size(); ++other) {
    if (!answers_[other].empty() && !evs_.may_use(other)) return &answers_[other];
  }
  return nullptr;
}

bool Responder::has_answer(uint32_t plane) const {
  return const_cast<Responder*>(this)->answers_over(plane) != nullptr;
}

void Responder::answer_packet(Kind kind, uint64_t sequence, const roce::ParsedPacket& packet) {
  const Headers mrc = load_headers(packet);
  answer({.sequence = sequence,
          .entropy = entropy_of(packet),
          .tx_timestamp = mrc.tseth.tx_timestamp,
          .kind = kind,
          .marked = packet.ecn == roce::kCe});
}

void Responder::on_write(TimePs now, uint32_t plane, const roce::ParsedPacket& packet) {
  plane_ = plane;
  if (packet.as_length) as_length_ = true;
  if (packet.ecn == roce::kCe) ++common_counters_.ce_marked_packets;
  if (error_ != CompletionStatus::kSuccess) {
    ++common_counters_.dropped_in_error;
    if (error_syndrome_ != 0 && answers_[plane].empty()) answer({.kind = Kind::kRefusal});
    return;
  }
  const int64_t signed_sequence = psn_map_.sequence(packet.bth.psn, arrivals_.expected());
  const auto sequence = static_cast<uint64_t>(std::max<int64_t>(0, signed_sequence));
  if (signed_sequence < static_cast<int64_t>(arrivals_.expected()) || arrivals_.contains(sequence)) {
    ++common_counters_.duplicate_packets;
    if (signed_sequence >= 0) answer_packet(Kind::kSack, sequence, packet);
    return;
  }
  if (sequence - arrivals_.expected() >= config_.mpr_dest * kMprUnitPsns) {
    ++common_counters_.out_of_window_packets;
    ++counters_.other_nacks_sent;
    answer_packet(Kind::kWindowNack, sequence, packet);
    return;
  }
  if (packet.trimmed) return on_trimmed(packet, sequence);
  if (const uint8_t syndrome = place(packet); syndrome != roce::kSyndromeAck)
    return refuse(now, syndrome, arrivals_.expected());
  ++common_counters_.data_packets_received;
  common_counters_.data_bytes_received += packet.payload_bytes;
  received_bytes_ += packet.payload_bytes;
  const bool in_order = sequence == arrivals_.expected();
  if (!in_order) {
    ++common_counters_.out_of_sequence_packets;
    if (has_too_many_immediates(packet))
      return refuse(now, roce::kSyndromeNakRemoteOperation, arrivals_.expected());
  }
  const bool had_gap = arrivals_.has_gap();
  const uint8_t opcode = packet.bth.opcode;
  arrivals_.insert(sequence, {.immediate = packet.immediate,
                              .payload_bytes = static_cast<uint16_t>(packet.payload_bytes),
                              .ends_message = ends_write(opcode),
                              .has_immediate = has_immediate_data(opcode)});
  ++waiting_packets_;
  // What comes in order and unmarked, and nobody asks about, the next SACK covers.
  if (!in_order || had_gap || packet.bth.acknowledge_request || packet.ecn == roce::kCe)
    answer_packet(Kind::kSack, sequence, packet);
  while (const std::optional<Arrival> arrival = arrivals_.pop()) {
    --waiting_packets_;
    finish_in_order(now, *arrival);
    if (error_ != CompletionStatus::kSuccess) return;
  }
}

void Responder::on_trimmed(const roce::ParsedPacket& packet, uint64_t sequence) {
  ++counters_.trim_nacks_sent;
  answer_packet(packet.dscp == kDscpTrimmedLastHop ? Kind::kLastHopNack : Kind::kTrimNack, sequence, packet);
}

void Responder::on_probe(uint32_t plane, const roce::ParsedPacket& packet, const Headers& mrc) {
  plane_ = plane;
  ++counters_.probes_received;
  if (error_ != CompletionStatus::kSuccess) return;
  answer({.sequence = arrivals_.expected(),
          .entropy = entropy_of(packet),
          .probe_id = mrc.peth.probe_id,
          .tx_timestamp = mrc.peth.tx_timestamp,
          .kind = Kind::kProbeSack,
          .marked = packet.ecn == roce::kCe});
}

// Each packet says where its payload goes. The region is looked up for each, because it may have been
// deregistered meanwhile.
uint8_t Responder::place(const roce::ParsedPacket& packet) const {
  const uint8_t opcode = packet.bth.opcode;
  const size_t bytes = packet.payload_bytes;
  const size_t mtu = common_.path_mtu_bytes;
  const bool last = ends_write(opcode);
  const uint64_t length_bytes = packet.reth.length_bytes;
  const bool right_size = last ? bytes <= mtu && (bytes > 0 || begins_write(opcode)) : bytes == mtu;
  const bool right_length = last && begins_write(opcode) ? length_bytes == bytes : length_bytes > bytes;
  if (!right_size || !right_length || length_bytes > kMaxMessageBytes)
    return roce::kSyndromeNakInvalidRequest;
  if ((common_.remote_access & kRemoteWrite) == 0) return roce::kSyndromeNakInvalidRequest;
  if (bytes == 0) return roce::kSyndromeAck;
  const uint64_t address = packet.reth.virtual_address;
  const MemoryRegion* region = memory_.find(packet.reth.rkey, address, bytes, kRemoteWrite);
  if (region == nullptr) return roce::kSyndromeNakRemoteAccess;
  if (packet.as_length) return roce::kSyndromeAck;
  if (region->data != nullptr)
    std::copy_n(packet.payload, bytes, region->data + (address - region->virtual_address));
  else if (!store(*region, address, packet.payload, bytes))
    return roce::kSyndromeNakRemoteOperation;
  return roce::kSyndromeAck;
}

// They are counted from 1 in 16 bits, without 0. In order there is never more than one.
bool Responder::has_too_many_immediates(const roce::ParsedPacket& packet) const {
  if (config_.max_wimm_dest >= kMaxOutstanding || !has_immediate_data(packet.bth.opcode)) return false;
  constexpr uint32_t kNumbers = 0xFFFF;
  const uint32_t delivered = static_cast<uint32_t>(delivered_immediates_ % kNumbers);
  const uint32_t number = (load_headers(packet).meth.rqmsn + kNumbers - 1u) % kNumbers;  // from 0
  return (number + kNumbers - delivered) % kNumbers >= config_.max_wimm_dest;
}

void Responder::finish_in_order(TimePs now, const Arrival& arrival) {
  message_bytes_ += arrival.payload_bytes;
  if (!arrival.ends_message) return;
  const uint64_t length_bytes = std::exchange(message_bytes_, 0);
  if (!arrival.has_immediate) return;
  ++delivered_immediates_;
  if (common_.receive_for_immediate && receives_.empty())
    return refuse(now, roce::kSyndromeNakRemoteOperation, arrivals_.expected() - 1);
  receives_.finish(now, CompletionKind::kWriteImmediate, common_.receive_for_immediate, length_bytes,
                   arrival.immediate);
}

void Responder::post_receive(TimePs now, PostedReceive receive) {
  if (error_ != CompletionStatus::kSuccess) return receives_.refuse(now, receive);
  receives_.push(std::move(receive));
}

void Responder::refuse(TimePs now, uint8_t syndrome, uint64_t sequence) {
  fail(now, status_of_nak(syndrome));
  error_syndrome_ = syndrome;
  error_sequence_ = sequence;
  ++common_counters_.fatal_naks_sent;
  answer({.kind = Kind::kRefusal});
}

void Responder::fail(TimePs now, CompletionStatus status) {
  if (error_ != CompletionStatus::kSuccess) return;
  error_ = status;
  for (RingBuffer<Answer>& answers : answers_) answers = {};
  receives_.flush(now);
}

// Of the 64 packets that a SACK about this one tells of, the first, counted from cack_psn.
int64_t Responder::sack_offset_of(uint64_t sequence) const {
  if (sequence < arrivals_.expected()) return 1;
  return static_cast<int64_t>((sequence - arrivals_.expected()) / kSackBits * kSackBits) + 1;
}

bool Responder::is_covered_by(const Answer& answer, const Answer& next) const {
  const bool plain = answer.kind == Kind::kSack && next.kind == Kind::kSack && !answer.marked && !next.marked;
  return plain && sack_offset_of(answer.sequence) == sack_offset_of(next.sequence);
}

void Responder::fill_sack(const Answer& answer, Headers& mrc) const {
  const uint64_t expected = arrivals_.expected();
  const bool probe = answer.kind == Kind::kProbeSack;
  const int64_t offset = sack_offset_of(answer.sequence);
  const auto behind = static_cast<int64_t>(answer.sequence) - (static_cast<int64_t>(expected) - 1);
  uint64_t bitmap = 0;
  if (arrivals_.has_gap()) {
    for (uint64_t bit = 0; bit < kSackBits; ++bit) {
      const bool arrived = arrivals_.contains(expected + static_cast<uint64_t>(offset - 1) + bit);
      bitmap |= uint64_t{arrived} << bit;
    }
  }
  // Too old for its field: the newest in order stands for it.
  const int64_t named = behind < -0x8000 ? 0 : behind;
  mrc.seth = {.m = answer.marked ? kMarkSkipOnce : kMarkNone,
              .pr = probe,
              .ack_psn_offset = static_cast<int16_t>(probe ? answer.probe_id : named),
              .entropy = answer.entropy,
              .spdcid = static_cast<uint16_t>(common_.queue_pair),
              .dpdcid = static_cast<uint16_t>(common_.remote_queue_pair),
              .cack_psn = psn_map_.psn(expected - 1),
              .mpr = static_cast<uint8_t>(config_.mpr_dest),
              .sack_offset = static_cast<int16_t>(offset),
              .sack_bitmap = bitmap};
  mrc.cc_state = {.tx_timestamp = answer.tx_timestamp,
                  .ooo_count = static_cast<uint16_t>(waiting_packets_),
                  .rcvd_units = static_cast<uint32_t>(received_bytes_ / kReceivedUnitBytes) & 0xFFFFFF};
}

void Responder::fill_nack(const Answer& answer, Headers& mrc) const {
  uint8_t reason = kNackPsnOutOfWindow;
  if (answer.kind == Kind::kTrimNack) reason = kNackTrimmed;
  if (answer.kind == Kind::kLastHopNack) reason = kNackTrimmedLastHop;
  mrc.neth = {.nack_reason = reason,
              .entropy = answer.entropy,
              .spdcid = static_cast<uint16_t>(common_.queue_pair),
              .dpdcid = static_cast<uint16_t>(common_.remote_queue_pair),
              .nack_psn = psn_map_.psn(answer.sequence),
              .tx_timestamp = answer.tx_timestamp};
}

PacketPtr Responder::pull_control(uint32_t plane) {
  RingBuffer<Answer>* const answers = answers_over(plane);
  if (answers == nullptr) return nullptr;
  const std::optional<size_t> ev = evs_.next_reverse(plane);
  if (!ev) return nullptr;
  Answer answer = answers->pop();
  while (!answers->empty() && is_covered_by(answer, answers->front())) answer = answers->pop();
  roce::RoceHeaders& headers = headers_[plane];
  set_entropy(headers, evs_.value(*ev));
  Headers mrc;
  mrc.outer_destination = evs_.outer_destination(*ev);
  switch (answer.kind) {
    case Kind::kSack:
    case Kind::kProbeSack:
      headers.bth.opcode = kSack;
      fill_sack(answer, mrc);
      headers.bth.psn = mrc.seth.cack_psn;
      ++common_counters_.acknowledgements_sent;
      break;
    case Kind::kRefusal:
      headers.bth.opcode = kAcknowledge;
      headers.bth.psn = psn_map_.psn(error_sequence_);
      headers.aeth = {error_syndrome_, 0};
      break;
    default:
      headers.bth.opcode = kNack;
      fill_nack(answer, mrc);
      headers.bth.psn = mrc.neth.nack_psn;
      break;
  }
  PacketPtr packet = as_length_ ? build_as_length(pool_, headers, mrc, 0) : build_packet(pool_, headers, mrc);
  packet->set_traffic_kind(Packet::kControlTraffic);
  return packet;
}

}  // namespace weft::mrc
