#include "hosts/uet/target.hpp"

#include <algorithm>
#include <utility>

#include "hosts/uet/placing.hpp"

namespace weft::uet {
namespace {

CompletionStatus status_of_refusing(uint8_t return_code) {
  return return_code == kReturnPermissionViolation ? CompletionStatus::kRemoteAccessError
                                                   : CompletionStatus::kRemoteInvalidRequest;
}

}  // namespace

Target::Target(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
               UetCounters& counters, PacketPool& pool, const MemoryRegistry& memory, PdcTable& pdcs,
               CreditPacer* pacer, CreditOwner& owner, CompletionHandler* handler)
    : common_(common),
      config_(config),
      common_counters_(common_counters),
      counters_(counters),
      pool_(pool),
      memory_(memory),
      pdcs_(pdcs),
      pacer_(config.receiver_credits ? pacer : nullptr),
      owner_(owner),
      handler_(handler),
      is_ordered_(config.service == UetService::kRod),
      headers_(headers_to_peer(common)),
      psn_map_(common.remote_initial_psn),
      silence_ps_(target_silence_ps(common, config)),
      largest_frame_bytes_(full_frame_bytes(common, config)),
      sends_(common, handler) {
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
  if (packet.trimmed)
    return nack(packet.dscp == kDscpTrimmedLastHop ? kNackTrimmedLastHop : kNackTrimmed, arrived);
  const WriteHeader& write = request.write;
  const std::optional<uint8_t> code = place(arrived, write);
  if (!code) return nack(kNackNoMessage, arrived);
  if (*code != kReturnOk) return refuse(arrived, *code, write.message_id);
  ++common_counters_.data_packets_received;
  common_counters_.data_bytes_received += packet.payload_bytes;
  received_bytes_ += packet.payload_bytes;
  insert(arrived,
         {.immediate = static_cast<uint32_t>(write.header_data),
          .payload_bytes = static_cast<uint16_t>(packet.payload_bytes),
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
      close_pdc();
      continue;
    }
    finish_in_order(arrived.now, *next);
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
      if (error_ != CompletionStatus::kSuccess || !known) return;
      heard_ps_ = now;
      return answer(Kind::kProbeAck, arrived, 0, control.probe_opaque);
    }
    case kClearCommand:
      error_code_ = 0;
      return;
    case kCloseCommand: {
      // That it was given up before the command came does not matter.
      const bool of_given_up = !is_open_ && error_ == CompletionStatus::kSuccess &&
                               signed_sequence == static_cast<int64_t>(arrivals_.expected()) &&
                               is_of_newest_pdc(control.dpdcid, control.spdcid);
      RequestPacket as_request;
      as_request.pds.dpdcid = control.dpdcid;
      if (!of_given_up && !accept(arrived, signed_sequence, as_request)) return;
      heard_ps_ = now;
      close_sequence_ = arrived.sequence;
      return insert(arrived, Arrival(), true);
    }
    default:
      ++common_counters_.unexpected_opcode;
  }
}

std::optional<uint8_t> Target::place(const Arrived& arrived, const WriteHeader& request) {
  if (request.opcode != kWrite && request.opcode != kSend) return kReturnUnsupportedOperation;
  if (!has_right_size(arrived.packet, request, common_.path_mtu_bytes)) return kReturnUnsupportedSize;
  if (request.opcode == kWrite) [[likely]]
    return place_write(arrived.packet, request, memory_);
  return sends_.place(arrived.packet, request, arrived.sequence, arrivals_);
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

// Late packets of the PDC get a NACK, and its initiator, should it be there, opens another.
void Target::on_deadline(TimePs now) {
  if (now < next_deadline()) return;
  ++counters_.pdcs_given_up;
  close_pdc();
}

void Target::post_receive(TimePs now, PostedReceive receive) {
  sends_.post(std::move(receive));
  flush_receives(now);
}

void Target::flush_receives(TimePs now) {
  if (error_ != CompletionStatus::kSuccess) sends_.flush(now);
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
  close_pdc();
}

void Target::close_pdc() {
  close_sequence_.reset();
  if (!std::exchange(is_open_, false)) return;
  pdcs_.close_and_linger(pdc_);
  credit_due_ = false;
  if (pacer_ != nullptr) pacer_->forget(*this);
}

}  // namespace weft::uet
