#include "hosts/rc_responder.hpp"

#include <algorithm>
#include <utility>

#include "hosts/rc_request.hpp"

namespace weft {
namespace {

// Of one of a segment's packets, go-back-N, where the segment begins or ends a message as its own opcode
// says.
uint8_t opcode_in_segment(uint8_t whole, bool first, bool last) {
  using namespace roce;
  const uint8_t base = whole >= kRcWriteFirst ? kRcWriteFirst : kRcSendFirst;
  const uint8_t shape = whole - base;
  const bool only = whole == base + kRcSendOnly || whole == base + kRcSendOnlyImmediate;
  const bool begins = first && (only || shape == kRcSendFirst);
  const bool ends = last && (only || shape == kRcSendLast || shape == kRcSendLastImmediate);
  const bool immediate = ends && (shape == kRcSendLastImmediate || shape == kRcSendOnlyImmediate);
  if (begins && ends) return base + (immediate ? kRcSendOnlyImmediate : kRcSendOnly);
  if (ends) return base + (immediate ? kRcSendLastImmediate : kRcSendLast);
  return base + (begins ? kRcSendFirst : kRcSendMiddle);
}

}  // namespace

RcResponder::RcResponder(const RcConfig& config, RcCounters& counters, PacketPool& pool,
                         const MemoryRegistry& memory, SendGate& gate, PathChoice* path_choice,
                         CompletionHandler* handler, std::shared_ptr<SharedReceives> shared_receives)
    : config_(config),
      counters_(counters),
      pool_(pool),
      memory_(memory),
      gate_(gate),
      path_choice_(path_choice),
      headers_(control_headers(config)),
      template_(headers_),
      psn_map_(config.remote_initial_psn),
      receives_(config.queue_pair, handler, std::move(shared_receives)),
      notifier_(config.cnp_interval_ps) {}

bool RcResponder::post_receive(TimePs now, PostedReceive receive) {
  if (error_ != CompletionStatus::kSuccess) {
    receives_.refuse(now, receive);
    return false;
  }
  receives_.push(std::move(receive));
  // A requester without credits waits for an acknowledgement that nothing else would cause.
  if (!config_.end_to_end_credits || promised_credits_ != 0 || pending_answer_ != Answer::kNone) return false;
  pending_answer_ = Answer::kAck;
  return true;
}

void RcResponder::on_request(TimePs now, const roce::ParsedPacket& packet) {
  if (packet.packets == 1 && packet.segment_offset == 0 && packet.ends_segment) [[likely]]
    take(now, packet);
  else
    take_segment(now, packet);
}

// Its packets have all a full payload. They would have asked for acknowledgements, which take their time on
// links too.
void RcResponder::take_segment(TimePs now, const roce::ParsedPacket& segment) {
  roce::ParsedPacket packet = segment;
  packet.packets = 1;
  packet.payload_bytes = config_.path_mtu_bytes;
  const bool is_answer_pending =
      pending_answer_ == Answer::kAck || !marks_.empty() || !selective_answers_.empty();
  for (uint32_t i = 0; i < segment.packets; ++i) {
    const uint32_t place = segment.segment_offset + i;
    const bool last = i + 1 == segment.packets && segment.ends_segment;
    const bool asks = last || config_.ack_interval_packets == 1;
    packet.bth.psn = (segment.bth.psn + place) & kPsnMask;
    if (config_.retransmission == Retransmission::kSelectiveRepeat)
      packet.bth.opcode = last ? segment.bth.opcode : uint8_t{roce::kRcWriteOnly};
    else
      packet.bth.opcode = opcode_in_segment(segment.bth.opcode, place == 0, last);
    packet.bth.solicited = last && segment.bth.solicited;
    packet.bth.acknowledge_request = asks && segment.bth.acknowledge_request;
    packet.reth.virtual_address =
        segment.reth.virtual_address + data_offset(config_.line_format, place * packet.payload_bytes);
    take(now, packet);
  }
  // What is out of sequence has answers of its own, if any.
  const auto expected = static_cast<int64_t>(expected_sequence_);
  if (!packet.bth.acknowledge_request || psn_map_.sequence(packet.bth.psn, expected_sequence_) >= expected)
    return;
  const uint32_t caused = std::max(1u, segment.packets / config_.ack_interval_packets);
  acknowledgements_ = caused + (is_answer_pending ? acknowledgements_ : 0);
}

void RcResponder::take(TimePs now, const roce::ParsedPacket& packet) {
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

void RcResponder::note_congestion(TimePs now, const roce::ParsedPacket& packet) {
  if (packet.ecn != roce::kCe) return;
  ++counters_.ce_marked_packets;
  notifier_.on_mark(now);
}

void RcResponder::on_deadline(TimePs now) {
  notifier_.on_deadline(now);
  if (reads_ != nullptr) reads_->on_deadline(now);
}

void RcResponder::accept(TimePs now, const roce::ParsedPacket& packet) {
  if (is_read_request(packet.bth.opcode)) return accept_read(now, packet);
  const Shape shape = shape_of(packet.bth.opcode);
  uint8_t syndrome = check_shape(shape, packet);
  if (syndrome == roce::kSyndromeAck) {
    const bool takes_receive =
        shape.message == Message::kSend ? shape.first : shape.immediate && config_.receive_for_immediate;
    if (takes_receive && receives_.lacks()) {
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
    receives_.finish(now, CompletionKind::kWriteImmediate, false, message_bytes_, arrival.immediate);
  }
  message_bytes_ = 0;
}

// Receiver not ready: the peer is to send this packet again after the timer.
void RcResponder::ask_to_wait() {
  nak_outstanding_ = true;
  pending_answer_ = Answer::kNak;
  pending_syndrome_ = roce::kSyndromeRnrNak | config_.rnr_timer_code;
}

void RcResponder::refuse(TimePs now, uint8_t syndrome) {
  error_ = status_of_nak(syndrome);
  error_syndrome_ = syndrome;
  notifier_.forget_later();
  pending_answer_ = Answer::kNak;
  pending_syndrome_ = syndrome;
  // Only a SEND holds a receive while it is in progress. That receive's errors are that its memory is not
  // there, and that the SEND is too long.
  CompletionStatus first = CompletionStatus::kFlushed;
  if (message_ == Message::kSend && !receives_.empty())
    first = syndrome == roce::kSyndromeNakRemoteOperation ? CompletionStatus::kLocalProtectionError
                                                          : CompletionStatus::kLocalLengthError;
  if (first == CompletionStatus::kFlushed) receives_.tell_refusal(error_);
  receives_.flush(now, first);
}

void RcResponder::flush(TimePs now) {
  if (error_ != CompletionStatus::kSuccess) return;
  error_ = CompletionStatus::kFlushed;
  pending_answer_ = Answer::kNone;
  forget_marks();
  if (reads_ != nullptr) reads_->stop();
  marks_ = {};
  selective_answers_ = {};
  receives_.flush(now);
}

}  // namespace weft
