#include "hosts/uet/target.hpp"

#include <algorithm>
#include <utility>

#include "hosts/rc_request.hpp"
#include "hosts/uet/placing.hpp"

namespace weft::uet {
namespace {

CompletionStatus status_of_refusing(uint8_t return_code) {
  switch (return_code) {
    case kReturnPermissionViolation:
      return CompletionStatus::kRemoteAccessError;
    case kReturnNoMatch:
      return CompletionStatus::kRemoteOperationError;
    default:
      return CompletionStatus::kRemoteInvalidRequest;
  }
}

}  // namespace

Target::Target(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
               UetCounters& counters, PacketPool& pool, const MemoryRegistry& memory, PdcTable& pdcs,
               CreditPacer* pacer, CreditOwner& owner, SendGate& gate, PathChoice* path_choice,
               CompletionHandler* handler)
    : common_(common),
      config_(config),
      common_counters_(common_counters),
      counters_(counters),
      pool_(pool),
      memory_(memory),
      pdcs_(pdcs),
      pacer_(config.receiver_credits ? pacer : nullptr),
      owner_(owner),
      gate_(gate),
      path_choice_(path_choice),
      is_ordered_(config.service == UetService::kRod),
      headers_(headers_to_peer(common)),
      psn_map_(common.remote_initial_psn),
      receives_(common.queue_pair, handler),
      silence_ps_(target_silence_ps(common, config)),
      largest_frame_bytes_(full_frame_bytes(common, config)),
      sends_(common, receives_) {
  headers_.dscp = config.control_dscp;
  headers_.ecn = roce::kNotEct;
}

Target::~Target() {
  if (pacer_ != nullptr) pacer_->forget(*this);
  pdcs_.forget(common_.queue_pair, pdc_);
}

bool Target::open_pdc(const Arrived& arrived, uint16_t psn_offset) {
  if (is_open_ && initiator_pdc_ == arrived.initiator_pdc) return true;
  // An initiator opens the next PDC when all of the last one is acknowledged, its closing included, or when
  // it has heard that this target has given the last one up. Then it may not have heard of all that arrived.
  // Headers that no checksum covers close none.
  if (arrived.sequence - psn_offset > arrivals_.expected() || (is_open_ && arrived.packet.trimmed)) {
    nack(kNackInvalidSyn, arrived);
    return false;
  }
  // It has one at a time, so it has closed the other.
  close_pdc();
  const std::optional<uint16_t> id = pdcs_.open(PdcRole::kTarget, common_.queue_pair, config_.max_pdcs);
  if (!id) {
    nack(kNackNoPdc, arrived);
    return false;
  }
  pdcs_.release(common_.queue_pair, pdc_);
  pdc_ = *id;
  initiator_pdc_ = arrived.initiator_pdc;
  is_open_ = true;
  if (reads_ != nullptr) reads_->open(pdc_, initiator_pdc_);
  heard_ps_ = arrived.now;
  credit_target_bytes_ = credit_granted_bytes_ = credit_arrived_bytes_ = credit_advance_bytes_ = 0;
  credit_due_ = false;
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

// ROD.
bool Target::is_in_order(const Arrived& arrived) {
  const GapNotices::Fate fate = gaps_.meet(arrived.sequence, arrivals_.expected());
  if (fate == GapNotices::Fate::kTake) return true;
  ++common_counters_.out_of_sequence_packets;
  if (fate == GapNotices::Fate::kDrop) return false;
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
  const bool accepted = accept(arrived, signed_sequence, request);
  if (is_open_ && request.pds.spdcid == initiator_pdc_) heard_ps_ = now;
  if (pacer_ != nullptr) count_for_credit(packet, request);
  if (!accepted) return;
  if (packet.trimmed) {
    gaps_.tell(arrived.sequence);
    return nack(packet.dscp == kDscpTrimmedLastHop ? kNackTrimmedLastHop : kNackTrimmed, arrived);
  }
  const WriteHeader& write = request.write;
  const std::optional<uint8_t> code = place(arrived, write);
  if (!code) {
    gaps_.tell(arrived.sequence);
    return nack(write.opcode == kSend ? kNackNoMessage : kNackNoResource, arrived);
  }
  if (*code != kReturnOk) return refuse(arrived, *code, write.message_id, arrivals_.expected());
  ++common_counters_.data_packets_received;
  common_counters_.data_bytes_received += packet.payload_bytes;
  received_bytes_ += packet.payload_bytes;
  insert(arrived,
         {.immediate = static_cast<uint32_t>(write.header_data),
          .payload_bytes = static_cast<uint16_t>(packet.payload_bytes),
          .message_id = write.message_id,
          .ends_message = write.ends_message,
          .has_immediate = write.opcode == kWrite && write.starts_message && write.has_header_data},
         request.pds.ackreq);
  sends_.finish(now);
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
      if (reads_ != nullptr) reads_->close(arrived.now);
      close_pdc();
      continue;
    }
    finish_in_order(arrived, *next);
    if (error_ != CompletionStatus::kSuccess) return;
  }
}

void Target::on_control(TimePs now, const roce::ParsedPacket& packet, const Control& control) {
  const int64_t signed_sequence = psn_map_.sequence(control.psn, arrivals_.expected());
  const Arrived arrived{now, packet, static_cast<uint64_t>(std::max<int64_t>(0, signed_sequence)),
                        control.spdcid};
  switch (control.ctl_type) {
    case kProbe: {
      ++counters_.probes_received;
      const bool known = is_open_ && is_of_newest_pdc(control.dpdcid, control.spdcid);
      if (error_ == CompletionStatus::kSuccess && known) {
        heard_ps_ = now;
        answer(Kind::kProbeAck, arrived, 0, control.probe_opaque);
      } else if (error_code_ != 0 && answers_.empty()) {  // its data of READs will not come
        answer(Kind::kRefusal, arrived);
      }
      return;
    }
    case kClearCommand:
      if (is_of_newest_pdc(control.dpdcid, control.spdcid)) error_code_ = 0;
      return;
    case kCloseCommand: {
      // That it was given up before the command came does not matter.
      const bool of_given_up = !is_open_ && error_ == CompletionStatus::kSuccess &&
                               signed_sequence == static_cast<int64_t>(arrivals_.expected()) &&
                               is_of_newest_pdc(control.dpdcid, control.spdcid);
      RequestPacket as_request;
      as_request.pds.dpdcid = control.dpdcid;
      if (!of_given_up && !accept(arrived, signed_sequence, as_request)) return;
      // An initiator has all that it has asked for when it closes its PDC.
      if (reads_ != nullptr && !reads_->is_sent()) return nack(kNackNoResource, arrived);
      heard_ps_ = now;
      close_sequence_ = arrived.sequence;
      return insert(arrived, Arrival(), true);
    }
    default:
      ++common_counters_.unexpected_opcode;
  }
}

std::optional<uint8_t> Target::place(const Arrived& arrived, const WriteHeader& request) {
  if (request.opcode == kRead) return read(arrived.packet, request);
  if (request.opcode != kWrite && request.opcode != kSend) return kReturnUnsupportedOperation;
  if (!has_right_size(arrived.packet, request, common_.path_mtu_bytes)) return kReturnUnsupportedSize;
  if (request.opcode == kWrite) [[likely]]
    return place_write(arrived.packet, request, memory_);
  return sends_.place(arrived.packet, request, arrived.sequence, arrivals_);
}

void Target::finish_in_order(const Arrived& newest, const Arrival& arrival) {
  message_bytes_ += arrival.payload_bytes;
  if (arrival.has_immediate) immediate_ = arrival.immediate;
  if (!arrival.ends_message) return;
  const uint64_t length_bytes = std::exchange(message_bytes_, 0);
  const std::optional<uint32_t> immediate = std::exchange(immediate_, std::nullopt);
  if (!immediate) return;
  if (common_.receive_for_immediate && receives_.empty())
    return refuse(newest, kReturnNoMatch, arrival.message_id, arrivals_.expected() - 1);
  receives_.finish(newest.now, CompletionKind::kWriteImmediate, common_.receive_for_immediate, length_bytes,
                   *immediate);
}

std::optional<uint8_t> Target::read(const roce::ParsedPacket& packet, const WriteHeader& request) {
  ReadPart part;
  if (const uint8_t code = grant_read(packet, request, common_.path_mtu_bytes, memory_, part);
      code != kReturnOk)
    return code;
  if (reads_ == nullptr) {
    reads_ = std::make_unique<ReadResponses>(common_, config_, common_counters_, counters_, pool_, memory_,
                                             gate_, path_choice_);
    reads_->open(pdc_, initiator_pdc_);
  }
  if (!reads_->has_room()) return std::nullopt;
  reads_->add(part);
  return kReturnOk;
}

void Target::on_answer(TimePs now, const roce::ParsedPacket& packet) {
  const uint8_t* const at = first_header(packet);
  if (wire::load_field<Ack, "spdcid">(at) != initiator_pdc_) {
    ++counters_.late_packets;
    return;
  }
  heard_ps_ = now;
  if (type_of(at) == kNack)
    reads_->on_nack(now, packet);
  else
    reads_->on_ack(now, packet);
}

PacketPtr Target::pull_data(TimePs now) {
  PacketPtr packet = reads_->pull(now);
  const std::optional<uint16_t> refused = reads_->refused_message();
  if (refused && error_ == CompletionStatus::kSuccess) {
    const uint16_t initiator_pdc = initiator_pdc_;
    set_refusal(now, kReturnPermissionViolation, *refused, arrivals_.expected());
    answers_.push({.sequence = arrivals_.expected(),
                   .arrived_ps = now,
                   .entropy = static_cast<uint16_t>(common_.source_udp_port & kEntropyMask),
                   .initiator_pdc = initiator_pdc,
                   .kind = Kind::kRefusal});
  }
  return packet;
}

TimePs Target::next_deadline() const {
  return reads_ == nullptr ? silence_deadline() : std::min(silence_deadline(), reads_->next_deadline());
}

// Late packets of the PDC get a NACK, and its initiator, should it be there, opens another.
void Target::on_deadline(TimePs now) {
  if (reads_ != nullptr) {
    reads_->on_deadline(now);
    if (reads_->is_unanswered()) return fail(now, CompletionStatus::kRetryExceeded);
  }
  if (now < silence_deadline()) return;
  ++counters_.pdcs_given_up;
  close_pdc();
}

void Target::post_receive(TimePs now, PostedReceive receive) {
  refuse_foreign(receive.foreign, "UET");
  if (error_ != CompletionStatus::kSuccess) return receives_.refuse(now, receive);
  receives_.push(std::move(receive));
}

void Target::set_refusal(TimePs now, uint8_t return_code, uint16_t message_id, uint64_t sequence) {
  fail(now, status_of_refusing(return_code));
  error_code_ = return_code;
  error_message_id_ = message_id;
  error_sequence_ = sequence;
  ++common_counters_.fatal_naks_sent;
}

void Target::refuse(const Arrived& arrived, uint8_t return_code, uint16_t message_id, uint64_t sequence) {
  set_refusal(arrived.now, return_code, message_id, sequence);
  answer(Kind::kRefusal, arrived);
}

void Target::fail(TimePs now, CompletionStatus status) {
  if (error_ != CompletionStatus::kSuccess) return;
  error_ = status;
  answers_ = {};
  if (reads_ != nullptr) reads_->stop();
  close_pdc();
  sends_.flush(now);
}

void Target::close_pdc() {
  close_sequence_.reset();
  if (!std::exchange(is_open_, false)) return;
  pdcs_.close_and_linger(pdc_);
  credit_due_ = false;
  if (pacer_ != nullptr) pacer_->forget(*this);
}

}  // namespace weft::uet
