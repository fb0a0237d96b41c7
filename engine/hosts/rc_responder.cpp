#include "hosts/rc_responder.hpp"

#include <algorithm>
#include <utility>

#include "hosts/end_to_end_credits.hpp"
#include "hosts/rc_request.hpp"

namespace weft {
namespace {

CompletionStatus status_of_refusal(uint8_t syndrome) {
  return syndrome == roce::kSyndromeNakRemoteAccess ? CompletionStatus::kRemoteAccessError
                                                    : CompletionStatus::kRemoteInvalidRequest;
}

}  // namespace

RcResponder::RcResponder(const RcConfig& config, RcCounters& counters, PacketPool& pool,
                         const MemoryRegistry& memory, SendGate& gate, PathChoice* path_choice,
                         CompletionHandler* handler)
    : config_(config),
      counters_(counters),
      pool_(pool),
      memory_(memory),
      gate_(gate),
      path_choice_(path_choice),
      handler_(handler),
      headers_(control_headers(config)),
      template_(headers_),
      psn_map_(config.remote_initial_psn) {}

RcResponder::Shape RcResponder::shape_of(uint8_t opcode) {
  using namespace roce;
  switch (opcode) {
    case kRcSendFirst:
      return {Message::kSend, true, false, false};
    case kRcSendMiddle:
      return {Message::kSend, false, false, false};
    case kRcSendLast:
      return {Message::kSend, false, true, false};
    case kRcSendLastImmediate:
      return {Message::kSend, false, true, true};
    case kRcSendOnly:
      return {Message::kSend, true, true, false};
    case kRcSendOnlyImmediate:
      return {Message::kSend, true, true, true};
    case kRcWriteFirst:
      return {Message::kWrite, true, false, false};
    case kRcWriteMiddle:
      return {Message::kWrite, false, false, false};
    case kRcWriteLast:
      return {Message::kWrite, false, true, false};
    case kRcWriteLastImmediate:
      return {Message::kWrite, false, true, true};
    case kRcWriteOnly:
      return {Message::kWrite, true, true, false};
    case kRcWriteOnlyImmediate:
      return {Message::kWrite, true, true, true};
    default:
      return {};  // READs and atomics have no shape, invalidation is not offered
  }
}

bool RcResponder::post_receive(TimePs now, Receive receive) {
  if (error_ != CompletionStatus::kSuccess) {
    complete(now, CompletionKind::kReceive, CompletionStatus::kFlushed, receive.work_id, 0, std::nullopt);
    return false;
  }
  receives_.push_back(std::move(receive));
  // A requester without credits waits for an acknowledgement that nothing else would cause.
  if (!config_.end_to_end_credits || promised_credits_ != 0 || pending_answer_ != Answer::kNone) return false;
  pending_answer_ = Answer::kAck;
  return true;
}

void RcResponder::on_request(TimePs now, const roce::ParsedPacket& packet) {
  const int64_t sequence = psn_map_.sequence(packet.bth.psn, expected_sequence_);
  const auto expected = static_cast<int64_t>(expected_sequence_);
  if (error_ != CompletionStatus::kSuccess) {
    const bool reads = is_read_request(packet.bth.opcode);
    const bool read_failed = reads && reads_ != nullptr && reads_->failed_psn();
    if (error_syndrome_ != 0 && reads && sequence < expected && !read_failed) {
      repeat(now, sequence, packet);  // it was granted before the refusal
    } else if (error_syndrome_ != 0 && (read_failed || sequence >= expected)) {
      pending_answer_ = Answer::kNak;
      pending_syndrome_ = error_syndrome_;
    } else {
      ++counters_.dropped_in_error;
    }
    return;
  }
  as_length_ = packet.as_length;
  note_congestion(now, packet);
  if (packet.telemetry && !packet.telemetry->echo) echo_ = packet.telemetry;
  if (config_.retransmission == Retransmission::kSelectiveRepeat) {
    take_in_any_order(now, packet, sequence);
  } else if (sequence == expected) {
    accept(now, packet);
  } else if (sequence < expected) {
    ++counters_.duplicate_packets;
    if (is_read_request(packet.bth.opcode)) {
      repeat(now, sequence, packet);
    } else if (pending_answer_ == Answer::kNone) {
      pending_answer_ = Answer::kAck;
    }
  } else {
    ++counters_.out_of_sequence_packets;
    note_gap(sequence);
  }
}

// One NAK per gap, as the specification has it, and another each time the sender has gone back and the
// expected packet was lost again: its packets then start over below the newest one seen.
void RcResponder::note_gap(int64_t sequence) {
  const bool started_over = sequence < newest_out_of_sequence_;
  newest_out_of_sequence_ = sequence;
  if (nak_outstanding_ && !started_over) return;
  nak_outstanding_ = true;
  pending_answer_ = Answer::kNak;
  pending_syndrome_ = roce::kSyndromeNakSequence;
}

// The notification point (SIGCOMM 2015, section 3.1): a CNP at once, and one at the end of every interval in
// which something was marked.
void RcResponder::note_congestion(TimePs now, const roce::ParsedPacket& packet) {
  if (packet.ecn != roce::kCe) return;
  ++counters_.ce_marked_packets;
  if (now < next_cnp_ps_) {
    cnp_due_ps_ = next_cnp_ps_;
  } else {
    notify(now);
  }
}

void RcResponder::notify(TimePs now) {
  cnp_pending_ = true;
  cnp_due_ps_ = kNever;
  next_cnp_ps_ = now + config_.cnp_interval_ps;
}

void RcResponder::forget_marks() {
  cnp_pending_ = false;
  cnp_due_ps_ = kNever;
}

void RcResponder::on_deadline(TimePs now) {
  if (now >= cnp_due_ps_) notify(now);
  if (reads_ != nullptr) reads_->on_deadline(now);
}

void RcResponder::accept(TimePs now, const roce::ParsedPacket& packet) {
  if (is_read_request(packet.bth.opcode)) return accept_read(now, packet);
  const Shape shape = shape_of(packet.bth.opcode);
  uint8_t syndrome = check_shape(shape, packet);
  if (syndrome == roce::kSyndromeAck) {
    const bool takes_receive =
        shape.message == Message::kSend ? shape.first : shape.immediate && config_.receive_for_immediate;
    if (takes_receive && receives_.empty()) {
      ask_to_wait();
      return;
    }
    if (shape.first) syndrome = begin_message(shape, packet);
  }
  if (syndrome == roce::kSyndromeAck) syndrome = place_payload(shape, packet);
  if (syndrome != roce::kSyndromeAck) {
    refuse(now, syndrome);
    return;
  }
  note_accepted(packet);
  ++expected_sequence_;
  // A NAK not yet sent was about this very packet.
  if (packet.bth.acknowledge_request || pending_answer_ == Answer::kNak) pending_answer_ = Answer::kAck;
  if (shape.last) finish_message(now, shape, packet);
}

void RcResponder::note_accepted(const roce::ParsedPacket& packet) {
  note_mark(packet.ecn == roce::kCe);
  ++counters_.data_packets_received;
  counters_.data_bytes_received += packet.payload_bytes;
  nak_outstanding_ = false;
  newest_out_of_sequence_ = 0;
}

// Marked packets and others need an acknowledgement each: see selective_answers.hpp.
void RcResponder::note_mark(bool marked) {
  const uint64_t begin = marks_.empty() ? answered_end_ : marks_.back().last + 1;
  if (marked != mark_ && expected_sequence_ > begin) marks_.push({begin, expected_sequence_ - 1, mark_});
  mark_ = marked;
}

// Selective repeat. Whatever arrives is placed and answered; messages complete in order. The answer to a
// packet behind a gap is a NAK for the gap, whose MSN field names the packet (IRN, section 3.1).
void RcResponder::take_in_any_order(TimePs now, const roce::ParsedPacket& packet, int64_t signed_sequence) {
  const auto sequence = static_cast<uint64_t>(signed_sequence);
  const bool reads = is_read_request(packet.bth.opcode);
  if (signed_sequence < static_cast<int64_t>(expected_sequence_) || arrivals_.contains(sequence)) {
    ++counters_.duplicate_packets;
    if (reads && signed_sequence < static_cast<int64_t>(expected_sequence_)) {
      repeat(now, signed_sequence, packet);
      return;
    }
    selective_answers_.answer(sequence, packet.ecn == roce::kCe);
    return;
  }
  if (!arrivals_.has_room(sequence)) {
    ++counters_.out_of_window_packets;
    return;
  }
  const Shape shape = shape_of(packet.bth.opcode);
  if (reads) {
    reads_behind_gap_.insert_or_assign(sequence, packet);  // done when all before it has arrived
  } else if (const uint8_t syndrome = place_alone(shape, packet); syndrome != roce::kSyndromeAck) {
    refuse(now, syndrome);
    return;
  }
  ++counters_.data_packets_received;
  counters_.data_bytes_received += packet.payload_bytes;
  const bool in_order = sequence == expected_sequence_;
  if (!in_order) ++counters_.out_of_sequence_packets;
  const bool marked = packet.ecn == roce::kCe;
  // The response answers a READ in order.
  const bool asked = packet.bth.acknowledge_request && !reads;
  if (!in_order || arrivals_.has_gap() || asked) {
    selective_answers_.answer(sequence, marked);
  } else {
    selective_answers_.leave(sequence, marked);
  }
  arrivals_.insert(sequence, {.immediate = packet.immediate,
                              .payload_bytes = static_cast<uint16_t>(packet.payload_bytes),
                              .ends_message = packet.bth.solicited,
                              .has_immediate = shape.immediate,
                              .is_read = reads});
  while (const std::optional<Arrival> arrival = arrivals_.pop()) {
    finish_in_order(now, *arrival);
    if (error_ != CompletionStatus::kSuccess) return;
    expected_sequence_ = arrivals_.expected();
  }
}

uint8_t RcResponder::place_alone(const Shape& shape, const roce::ParsedPacket& packet) {
  const bool whole_write = shape.message == Message::kWrite && shape.first && shape.last;
  if (!whole_write || packet.payload_bytes > config_.path_mtu_bytes ||
      packet.reth.length_bytes != packet.payload_bytes) {
    return roce::kSyndromeNakInvalidRequest;
  }
  return write_to_memory(packet.reth.rkey, packet.reth.virtual_address, packet);
}

void RcResponder::finish_in_order(TimePs now, const Arrival& arrival) {
  if (arrival.is_read) {
    const auto held = reads_behind_gap_.extract(expected_sequence_);
    const uint8_t syndrome = execute_read(now, held.mapped());
    if (syndrome != roce::kSyndromeAck) return refuse(now, syndrome);
    arrivals_.skip(reads_->packets_of(held.mapped()) - 1);
    return;
  }
  message_bytes_ += arrival.payload_bytes;
  if (!arrival.ends_message) return;
  if (arrival.has_immediate) {
    complete(now, CompletionKind::kWriteImmediate, CompletionStatus::kSuccess, 0, message_bytes_,
             arrival.immediate);
  }
  message_bytes_ = 0;
}

uint8_t RcResponder::check_shape(const Shape& shape, const roce::ParsedPacket& packet) const {
  const bool continues = message_ != Message::kNone;
  if (shape.message == Message::kNone || shape.first == continues) return roce::kSyndromeNakInvalidRequest;
  if (continues && shape.message != message_) return roce::kSyndromeNakInvalidRequest;
  const size_t mtu = config_.path_mtu_bytes;
  const bool right_size = shape.last
                              ? packet.payload_bytes <= mtu && (shape.first || packet.payload_bytes > 0)
                              : packet.payload_bytes == mtu;
  return right_size ? roce::kSyndromeAck : roce::kSyndromeNakInvalidRequest;
}

uint8_t RcResponder::begin_message(const Shape& shape, const roce::ParsedPacket& packet) {
  message_ = shape.message;
  message_bytes_ = 0;
  if (shape.message == Message::kSend) {
    message_limit_bytes_ = receives_.front().length_bytes;
    return roce::kSyndromeAck;
  }
  message_limit_bytes_ = packet.reth.length_bytes;
  write_address_ = packet.reth.virtual_address;
  write_rkey_ = packet.reth.rkey;
  if (message_limit_bytes_ > kMaxMessageBytes) return roce::kSyndromeNakInvalidRequest;
  // A WRITE of no bytes touches no memory, so its rkey is not looked at (section 9.7.4.1.5).
  if (message_limit_bytes_ == 0) return roce::kSyndromeAck;
  return memory_.find(write_rkey_, write_address_, message_limit_bytes_, kRemoteWrite) != nullptr
             ? roce::kSyndromeAck
             : roce::kSyndromeNakRemoteAccess;
}

uint8_t RcResponder::place_payload(const Shape& shape, const roce::ParsedPacket& packet) {
  const uint64_t end_bytes = message_bytes_ + packet.payload_bytes;
  if (end_bytes > message_limit_bytes_) return roce::kSyndromeNakInvalidRequest;
  uint8_t* target = nullptr;
  if (shape.message == Message::kSend) {
    target = receives_.front().data;
    if (target != nullptr) target += message_bytes_;
  } else {
    if (shape.last && end_bytes != message_limit_bytes_) return roce::kSyndromeNakInvalidRequest;
    const uint8_t syndrome = write_to_memory(write_rkey_, write_address_ + message_bytes_, packet);
    if (syndrome != roce::kSyndromeAck) return syndrome;
  }
  if (target != nullptr && !packet.as_length) std::copy_n(packet.payload, packet.payload_bytes, target);
  message_bytes_ = end_bytes;
  return roce::kSyndromeAck;
}

// The region is looked up for each packet, because it may have been deregistered meanwhile.
uint8_t RcResponder::write_to_memory(uint32_t rkey, uint64_t address, const roce::ParsedPacket& packet) {
  if (packet.payload_bytes == 0) return roce::kSyndromeAck;
  const MemoryRegion* region = memory_.find(rkey, address, packet.payload_bytes, kRemoteWrite);
  if (region == nullptr) return roce::kSyndromeNakRemoteAccess;
  if (region->data != nullptr && !packet.as_length) {
    std::copy_n(packet.payload, packet.payload_bytes, region->data + (address - region->virtual_address));
  }
  return roce::kSyndromeAck;
}

void RcResponder::accept_read(TimePs now, const roce::ParsedPacket& packet) {
  uint8_t syndrome = roce::kSyndromeNakInvalidRequest;
  if (message_ == Message::kNone) syndrome = execute_read(now, packet);
  if (syndrome != roce::kSyndromeAck) return refuse(now, syndrome);
  note_accepted(packet);
  expected_sequence_ += reads_->packets_of(packet);
  // The response is the answer; a NAK not yet sent was about this very packet.
  if (pending_answer_ == Answer::kNak) pending_answer_ = Answer::kNone;
}

// Of the READ that is next in order.
uint8_t RcResponder::execute_read(TimePs now, const roce::ParsedPacket& packet) {
  if (reads_ == nullptr) {
    reads_ =
        std::make_unique<ReadResponder>(config_, counters_, pool_, memory_, gate_, path_choice_, psn_map_);
  }
  const uint32_t msn = (msn_ + 1) & kPsnMask;
  const uint8_t syndrome = reads_->accept(now, expected_sequence_, packet, msn);
  if (syndrome == roce::kSyndromeAck) msn_ = msn;
  return syndrome;
}

void RcResponder::repeat(TimePs now, int64_t sequence, const roce::ParsedPacket& packet) {
  if (reads_ != nullptr && sequence >= 0) reads_->repeat(now, static_cast<uint64_t>(sequence), packet);
}

PacketPtr RcResponder::pull_response(TimePs now) {
  PacketPtr packet = reads_->pull(now);
  if (reads_->failed_psn() && error_ == CompletionStatus::kSuccess)
    refuse(now, roce::kSyndromeNakRemoteAccess);
  return packet;
}

void RcResponder::finish_message(TimePs now, const Shape& shape, const roce::ParsedPacket& packet) {
  message_ = Message::kNone;
  msn_ = (msn_ + 1) & kPsnMask;
  const bool is_send = shape.message == Message::kSend;
  if (!is_send && !shape.immediate) return;
  uint64_t work_id = 0;
  if (is_send || config_.receive_for_immediate) {
    work_id = receives_.front().work_id;
    receives_.pop_front();
  }
  complete(now, is_send ? CompletionKind::kReceive : CompletionKind::kWriteImmediate,
           CompletionStatus::kSuccess, work_id, message_bytes_,
           shape.immediate ? std::optional(packet.immediate) : std::nullopt);
}

// Receiver not ready: the peer is to send this packet again after the timer.
void RcResponder::ask_to_wait() {
  nak_outstanding_ = true;
  pending_answer_ = Answer::kNak;
  pending_syndrome_ = roce::kSyndromeRnrNak | config_.rnr_timer_code;
}

void RcResponder::refuse(TimePs now, uint8_t syndrome) {
  error_ = status_of_refusal(syndrome);
  error_syndrome_ = syndrome;
  cnp_due_ps_ = kNever;
  pending_answer_ = Answer::kNak;
  pending_syndrome_ = syndrome;
  // Only a SEND holds a receive while it is in progress, and only its being too long is that receive's error.
  const bool too_long = message_ == Message::kSend && !receives_.empty();
  bool first = true;
  for (const Receive& receive : std::exchange(receives_, {})) {
    const auto status = first && too_long ? CompletionStatus::kLocalLengthError : CompletionStatus::kFlushed;
    complete(now, CompletionKind::kReceive, status, receive.work_id, 0, std::nullopt);
    first = false;
  }
}

void RcResponder::flush(TimePs now) {
  if (error_ != CompletionStatus::kSuccess) return;
  error_ = CompletionStatus::kFlushed;
  pending_answer_ = Answer::kNone;
  forget_marks();
  if (reads_ != nullptr) reads_->stop();
  marks_ = {};
  selective_answers_ = {};
  for (const Receive& receive : std::exchange(receives_, {})) {
    complete(now, CompletionKind::kReceive, CompletionStatus::kFlushed, receive.work_id, 0, std::nullopt);
  }
}

void RcResponder::complete(TimePs now, CompletionKind kind, CompletionStatus status, uint64_t work_id,
                           uint64_t length_bytes, std::optional<uint32_t> immediate) {
  if (handler_ == nullptr) return;
  handler_->on_completion({.work_id = work_id,
                           .kind = kind,
                           .status = status,
                           .queue_pair = config_.queue_pair,
                           .length_bytes = length_bytes,
                           .has_immediate = immediate.has_value(),
                           .immediate = immediate.value_or(0),
                           .posted_ps = 0,
                           .completed_ps = now});
}

PacketPtr RcResponder::pull_control(TimePs /*now*/) {
  if (!marks_.empty()) return build_answer_of_like_marks();
  if (pending_answer_ != Answer::kNone) return build_answer();
  if (!selective_answers_.empty()) return build_selective_answer();
  if (reads_ != nullptr && reads_->has_result()) return build_result();
  if (cnp_pending_) return build_cnp();
  return nullptr;
}

PacketPtr RcResponder::build_answer_of_like_marks() {
  const Marked stretch = marks_.pop();
  answered_end_ = stretch.last + 1;
  headers_.bth.psn = psn_map_.psn(stretch.last);
  headers_.aeth = {ack_syndrome(), msn_};
  ++counters_.acknowledgements_sent;
  return build_acknowledgement(stretch.marked);
}

// The receive of a message in progress counts until the message does.
uint8_t RcResponder::ack_syndrome() {
  if (!config_.end_to_end_credits) return roce::kSyndromeAckNoCredits;
  promised_credits_ = credit_code(receives_.size());
  return promised_credits_;
}

// Acknowledges all that has arrived by now, however many packets asked for it.
PacketPtr RcResponder::build_answer() {
  const bool is_ack = pending_answer_ == Answer::kAck;
  pending_answer_ = Answer::kNone;
  const bool read_failed = !is_ack && reads_ != nullptr && reads_->failed_psn();
  const uint64_t refused = read_failed ? *reads_->failed_psn() : expected_sequence_;
  headers_.bth.psn = psn_map_.psn(is_ack ? expected_sequence_ - 1 : refused);
  headers_.aeth = {is_ack ? ack_syndrome() : pending_syndrome_, msn_};
  if (is_ack) {
    ++counters_.acknowledgements_sent;
  } else if (pending_syndrome_ == roce::kSyndromeNakSequence) {
    ++counters_.sequence_naks_sent;
  } else if (pending_syndrome_ < roce::kSyndromeNakSequence) {
    ++counters_.rnr_naks_sent;
  } else {
    ++counters_.fatal_naks_sent;
  }
  const bool marked = mark_ && expected_sequence_ > answered_end_;
  answered_end_ = expected_sequence_;
  return build_acknowledgement(marked);
}

// One for each packet behind a gap; packets in order are acknowledged all at once, if they are marked alike.
PacketPtr RcResponder::build_selective_answer() {
  const SelectiveAnswers::Answer answer = selective_answers_.take(expected_sequence_);
  const bool gap = arrivals_.has_gap() && answer.end == expected_sequence_;
  headers_.aeth = {static_cast<uint8_t>(gap ? roce::kSyndromeNakSequence : roce::kSyndromeAckNoCredits),
                   psn_map_.psn(answer.answered)};
  headers_.bth.psn = psn_map_.psn(gap ? answer.end : answer.end - 1);
  ++(gap ? counters_.sequence_naks_sent : counters_.acknowledgements_sent);
  return build_acknowledgement(answer.marked);
}

// BECN reports the mark to the sender (InfiniBand specification, annex A10: a CNP, or an ACK).
PacketPtr RcResponder::build_acknowledgement(bool marked) {
  headers_.bth.opcode = roce::kRcAcknowledge;
  headers_.bth.becn = marked;
  headers_.telemetry = std::exchange(echo_, std::nullopt);
  if (headers_.telemetry) headers_.telemetry->echo = true;
  return build_packet();
}

// The result of an atomic, which acknowledges it.
PacketPtr RcResponder::build_result() {
  const ReadResponder::Result result = reads_->next_result();
  headers_.bth.opcode = roce::kRcAtomicAcknowledge;
  headers_.bth.becn = false;
  headers_.bth.psn = psn_map_.psn(result.psn);
  headers_.aeth = {roce::kSyndromeAckNoCredits, result.msn};
  headers_.atomic_ack_original = result.original;
  headers_.telemetry.reset();
  ++counters_.acknowledgements_sent;
  return build_packet();
}

PacketPtr RcResponder::build_cnp() {
  cnp_pending_ = false;
  ++counters_.cnps_sent;
  headers_.bth.opcode = roce::kCnp;
  headers_.bth.becn = true;
  headers_.bth.psn = 0;
  headers_.telemetry.reset();
  return build_packet();
}

PacketPtr RcResponder::build_packet() {
  return as_length_ ? template_.build_as_length(pool_, headers_, 0) : template_.build(pool_, headers_);
}

}  // namespace weft
