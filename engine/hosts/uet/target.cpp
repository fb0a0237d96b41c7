#include "hosts/uet/target.hpp"

#include <algorithm>
#include <utility>

#include "hosts/rc_request.hpp"
#include "paths/path_choice.hpp"

namespace weft::uet {
namespace {

constexpr uint8_t kAckRequestsClear = 1;  // `req` of an ACK
constexpr uint8_t kDefaultResponse = 0;   // `opcode` of a response
constexpr uint8_t kResponseOpcode = 1;
constexpr int64_t kMostServiceUnits = 0xFFFF;

CompletionStatus status_of_refusing(uint8_t return_code) {
  return return_code == kReturnPermissionViolation ? CompletionStatus::kRemoteAccessError
                                                   : CompletionStatus::kRemoteInvalidRequest;
}

}  // namespace

Target::Target(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
               UetCounters& counters, PacketPool& pool, const MemoryRegistry& memory, PdcTable& pdcs,
               CompletionHandler* handler)
    : common_(common),
      config_(config),
      common_counters_(common_counters),
      counters_(counters),
      pool_(pool),
      memory_(memory),
      pdcs_(pdcs),
      handler_(handler),
      is_ordered_(config.service == UetService::kRod),
      headers_(headers_to_peer(common)),
      psn_map_(common.remote_initial_psn) {
  headers_.dscp = config.control_dscp;
  headers_.ecn = roce::kNotEct;
}

// The oldest go first: what they say later ones say again, or a timeout asks for.
void Target::answer(Kind kind, const Arrived& arrived, uint8_t nack_code, uint16_t opaque) {
  if (answers_.size() >= kMaxOutstanding) answers_.pop();
  answers_.push({.sequence = arrived.sequence,
                 .arrived_ps = arrived.now,
                 .entropy = static_cast<uint16_t>(arrived.packet.source_udp_port & kEntropyMask),
                 .initiator_pdc = arrived.initiator_pdc,
                 .opaque = opaque,
                 .kind = kind,
                 .nack_code = nack_code,
                 .marked = arrived.packet.ecn == roce::kCe});
}

void Target::nack(uint8_t code, const Arrived& arrived) {
  switch (code) {
    case kNackTrimmed:
    case kNackTrimmedLastHop:
      ++counters_.trim_nacks_sent;
      break;
    case kNackNoPdc:
      ++counters_.pdc_nacks_sent;
      break;
    case kNackRodOutOfOrder:
      ++counters_.order_nacks_sent;
      break;
    default:
      // It ends the connection, or says nothing that matters: not on the word of headers that no checksum
      // covers.
      if (arrived.packet.trimmed) {
        ++counters_.late_packets;
        return;
      }
      ++counters_.other_nacks_sent;
  }
  answer(Kind::kNack, arrived, code);
}

bool Target::open_pdc(const Arrived& arrived, uint16_t psn_offset) {
  if (is_open_ && initiator_pdc_ == arrived.initiator_pdc) return true;
  // An initiator opens the next PDC when all of the last one is acknowledged, its closing included.
  if (is_open_ || arrived.sequence - psn_offset != arrivals_.expected()) {
    nack(kNackInvalidSyn, arrived);
    return false;
  }
  const std::optional<uint16_t> id = pdcs_.open(PdcRole::kTarget, common_.queue_pair, config_.max_pdcs);
  if (!id) {
    nack(kNackNoPdc, arrived);
    return false;
  }
  pdc_ = *id;
  initiator_pdc_ = arrived.initiator_pdc;
  is_open_ = true;
  close_sequence_.reset();
  ++counters_.pdcs_accepted;
  return true;
}

bool Target::accept(const Arrived& arrived, int64_t signed_sequence, const RequestPacket& request) {
  if (error_ != CompletionStatus::kSuccess) {
    ++common_counters_.dropped_in_error;
    if (error_code_ != 0 && answers_.empty()) answer(Kind::kRefusal, arrived);
    return false;
  }
  if (signed_sequence < static_cast<int64_t>(arrivals_.expected()) || arrivals_.contains(arrived.sequence)) {
    ++common_counters_.duplicate_packets;
    if (signed_sequence >= 0) answer(Kind::kAck, arrived);
    return false;
  }
  if (request.syn) {
    if (!open_pdc(arrived, request.psn_offset)) return false;
  } else if (!is_open_ || request.pds.dpdcid != pdc_ || arrived.initiator_pdc != initiator_pdc_) {
    nack(kNackInvalidDpdcid, arrived);
    return false;
  }
  if (arrived.sequence - arrivals_.expected() >= kMaxOutstanding) {
    ++common_counters_.out_of_window_packets;
    nack(kNackPsnOutOfWindow, arrived);
    return false;
  }
  return !is_ordered_ || is_in_order(arrived);
}

// ROD: a gap causes one NACK, and another each time that the initiator's packets begin again below the newest
// that was refused, because the one it went back to was lost, too.
bool Target::is_in_order(const Arrived& arrived) {
  if (arrived.sequence == arrivals_.expected()) {
    gap_is_told_ = false;
    return true;
  }
  ++common_counters_.out_of_sequence_packets;
  const bool begins_again = arrived.sequence <= newest_refused_;
  newest_refused_ = arrived.sequence;
  if (gap_is_told_ && !begins_again) return false;
  gap_is_told_ = true;
  Arrived missing = arrived;
  missing.sequence = arrivals_.expected();
  nack(kNackRodOutOfOrder, missing);
  return false;
}

void Target::on_request(TimePs now, const roce::ParsedPacket& packet) {
  const RequestPacket request = load_request(first_header(packet));
  if (packet.ecn == roce::kCe) ++common_counters_.ce_marked_packets;
  const int64_t signed_sequence = psn_map_.sequence(request.pds.psn, arrivals_.expected());
  const Arrived arrived{now, packet, static_cast<uint64_t>(std::max<int64_t>(0, signed_sequence)),
                        request.pds.spdcid};
  if (!accept(arrived, signed_sequence, request)) return;
  if (packet.trimmed)
    return nack(packet.dscp == kDscpTrimmedLastHop ? kNackTrimmedLastHop : kNackTrimmed, arrived);
  const WriteHeader& write = request.write;
  if (const uint8_t code = place(packet, write); code != kReturnOk)
    return refuse(arrived, code, write.message_id);
  ++common_counters_.data_packets_received;
  common_counters_.data_bytes_received += packet.payload_bytes;
  received_bytes_ += packet.payload_bytes;
  insert(arrived,
         {.immediate = static_cast<uint32_t>(write.header_data),
          .payload_bytes = static_cast<uint16_t>(packet.payload_bytes),
          .ends_message = write.ends_message,
          .has_immediate = write.starts_message && write.has_header_data},
         request.pds.ackreq);
}

void Target::insert(const Arrived& arrived, Arrival arrival, bool asked) {
  const bool in_order = arrived.sequence == arrivals_.expected();
  if (!in_order) ++common_counters_.out_of_sequence_packets;
  const bool had_gap = arrivals_.has_gap();
  arrivals_.insert(arrived.sequence, arrival);
  ++waiting_packets_;
  // What comes in order and unmarked, and nobody asks about, the next ACK covers.
  if (!in_order || had_gap || asked || arrived.packet.ecn == roce::kCe) answer(Kind::kAck, arrived);
  while (const std::optional<Arrival> next = arrivals_.pop()) {
    --waiting_packets_;
    if (close_sequence_ && arrivals_.expected() > *close_sequence_) {
      close_sequence_.reset();
      pdcs_.close(pdc_);
      is_open_ = false;
      continue;
    }
    finish_in_order(arrived.now, *next);
    if (error_ != CompletionStatus::kSuccess) return;
  }
}

void Target::on_control(TimePs now, const roce::ParsedPacket& packet) {
  Control control;
  wire::load_header(control, first_header(packet));
  const int64_t signed_sequence = psn_map_.sequence(control.psn, arrivals_.expected());
  const Arrived arrived{now, packet, static_cast<uint64_t>(std::max<int64_t>(0, signed_sequence)),
                        control.spdcid};
  switch (control.ctl_type) {
    case kProbe: {
      ++counters_.probes_received;
      const bool known = is_open_ && control.dpdcid == pdc_ && control.spdcid == initiator_pdc_;
      if (error_ == CompletionStatus::kSuccess && known)
        answer(Kind::kProbeAck, arrived, 0, control.probe_opaque);
      return;
    }
    case kClearCommand:
      error_code_ = 0;
      return;
    case kCloseCommand: {
      RequestPacket as_request;
      as_request.pds.dpdcid = control.dpdcid;
      if (!accept(arrived, signed_sequence, as_request)) return;
      close_sequence_ = arrived.sequence;
      return insert(arrived, Arrival(), true);
    }
    default:
      ++common_counters_.unexpected_opcode;
  }
}

// Each packet says where its payload goes. The region is looked up for each, because it may have been
// deregistered meanwhile.
uint8_t Target::place(const roce::ParsedPacket& packet, const WriteHeader& write) const {
  if (write.opcode != kWrite) return kReturnUnsupportedOperation;
  const size_t bytes = packet.payload_bytes;
  const uint64_t end = uint64_t{write.message_offset} + bytes;
  const bool right_size = write.ends_message ? end == write.request_length && bytes <= common_.path_mtu_bytes
                                             : end < write.request_length && bytes == common_.path_mtu_bytes;
  if (!right_size || write.request_length > kMaxMessageBytes) return kReturnUnsupportedSize;
  if (bytes == 0) return write.starts_message ? kReturnOk : kReturnUnsupportedSize;
  const uint64_t address = write.buffer_offset + write.message_offset;
  const bool is_key = write.memory_key <= 0xFFFFFFFF;
  const MemoryRegion* region =
      is_key ? memory_.find(static_cast<uint32_t>(write.memory_key), address, bytes, kRemoteWrite) : nullptr;
  if (region == nullptr) return kReturnPermissionViolation;
  if (region->data != nullptr && !packet.as_length)
    std::copy_n(packet.payload, bytes, region->data + (address - region->virtual_address));
  return kReturnOk;
}

void Target::finish_in_order(TimePs now, const Arrival& arrival) {
  message_bytes_ += arrival.payload_bytes;
  if (arrival.has_immediate) immediate_ = arrival.immediate;
  if (!arrival.ends_message) return;
  const uint64_t length_bytes = std::exchange(message_bytes_, 0);
  const std::optional<uint32_t> immediate = std::exchange(immediate_, std::nullopt);
  if (!immediate || handler_ == nullptr) return;
  handler_->on_completion({.work_id = 0,
                           .kind = CompletionKind::kWriteImmediate,
                           .status = CompletionStatus::kSuccess,
                           .queue_pair = common_.queue_pair,
                           .length_bytes = length_bytes,
                           .has_immediate = true,
                           .immediate = *immediate,
                           .posted_ps = 0,
                           .completed_ps = now});
}

void Target::refuse(const Arrived& arrived, uint8_t return_code, uint16_t message_id) {
  fail(status_of_refusing(return_code));
  error_code_ = return_code;
  error_message_id_ = message_id;
  ++common_counters_.fatal_naks_sent;
  answer(Kind::kRefusal, arrived);
}

void Target::fail(CompletionStatus status) {
  if (error_ != CompletionStatus::kSuccess) return;
  error_ = status;
  answers_ = {};
  if (is_open_) pdcs_.close(pdc_);
  is_open_ = false;
}

// Of the 64 packets that an ACK of this one tells of, the first, counted from cack_psn.
int64_t Target::sack_offset_of(uint64_t sequence) const {
  if (sequence < arrivals_.expected()) return 1;
  return static_cast<int64_t>((sequence - arrivals_.expected()) / kSackBits * kSackBits) + 1;
}

bool Target::is_covered_by(const Answer& answer, const Answer& next) const {
  const bool plain = answer.kind == Kind::kAck && next.kind == Kind::kAck && !answer.marked && !next.marked;
  return plain && answer.initiator_pdc == next.initiator_pdc &&
         sack_offset_of(answer.sequence) == sack_offset_of(next.sequence);
}

PacketPtr Target::build_ack(TimePs now, const Answer& answer) {
  const uint64_t expected = arrivals_.expected();
  const bool is_probe = answer.kind == Kind::kProbeAck;
  const int64_t offset = sack_offset_of(answer.sequence);
  const auto behind = static_cast<int64_t>(answer.sequence) - (static_cast<int64_t>(expected) - 1);
  // Too old for its field: the newest in order stands for it.
  const int64_t named = behind < -0x8000 ? 0 : behind;
  uint64_t bitmap = 0;
  if (arrivals_.has_gap()) {
    for (uint64_t bit = 0; bit < kSackBits; ++bit)
      bitmap |= uint64_t{arrivals_.contains(expected + static_cast<uint64_t>(offset - 1) + bit)} << bit;
  }
  const bool is_refusal = answer.kind == Kind::kRefusal;
  const Ack ack{.type = kAckCc,
                .next_header = kResponse,
                .m = answer.marked,
                .probe = is_probe,
                .req = is_refusal ? kAckRequestsClear : uint8_t{0},
                .ack_psn_offset = static_cast<int16_t>(is_probe ? answer.opaque : named),
                .cack_psn = psn_map_.psn(expected - 1),
                .spdcid = pdc_,
                .dpdcid = answer.initiator_pdc};
  const AckCc cc{.cc_type = kNscc,
                 .mpr = kMaxOutstanding / kMprUnitPsns,
                 .sack_psn_offset = static_cast<int16_t>(offset),
                 .sack_bitmap = bitmap};
  const NsccState state{.service_time = static_cast<uint16_t>(
                            std::min((now - answer.arrived_ps) / kServiceUnitPs, kMostServiceUnits)),
                        .rcvd_bytes = static_cast<uint32_t>(received_bytes_ / kReceivedUnitBytes) & 0xFFFFFF,
                        .ooo_count = static_cast<uint16_t>(waiting_packets_)};
  const Response response{.opcode = is_refusal ? kResponseOpcode : kDefaultResponse,
                          .return_code = is_refusal ? error_code_ : uint8_t{kReturnOk},
                          .message_id = is_refusal ? error_message_id_ : uint16_t{0}};
  ++common_counters_.acknowledgements_sent;
  return build_frame(pool_, headers_, Body(), ack, cc, state, response);
}

PacketPtr Target::build_nack(const Answer& answer) {
  const Nack nack{.m = answer.marked,
                  .nack_code = answer.nack_code,
                  .nack_psn = psn_map_.psn(answer.sequence),
                  .spdcid = is_open_ ? pdc_ : uint16_t{0},
                  .dpdcid = answer.initiator_pdc};
  return build_frame(pool_, headers_, Body(), nack);
}

// It goes back with the entropy of the packet that it answers, by which the initiator knows which
// transmission is meant.
PacketPtr Target::pull_control(TimePs now) {
  if (answers_.empty()) return nullptr;
  Answer answer = answers_.pop();
  while (!answers_.empty() && is_covered_by(answer, answers_.front())) answer = answers_.pop();
  set_entropy(headers_, answer.entropy);
  PacketPtr packet = answer.kind == Kind::kNack ? build_nack(answer) : build_ack(now, answer);
  packet->set_traffic_kind(weft::Packet::kControlTraffic);
  return packet;
}

}  // namespace weft::uet
