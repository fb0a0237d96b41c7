#include "hosts/sent_stream.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace weft {

SentStream::SentStream(const RcConfig& config, SendGate& gate, PathChoice* path_choice)
    : config_(config),
      gate_(gate),
      path_choice_(path_choice),
      selective_repeat_(config.retransmission == Retransmission::kSelectiveRepeat),
      losses_(config.reordering_window_ps) {}

// Without an acknowledgement to come nothing would open a closed window but the timeout; the packet that
// closes it therefore asks for one, unless a packet before it has done so. Half a window without a question
// is too much for a window that may shrink, and so is a long time at a low rate.
bool SentStream::should_ask(uint64_t sequence, uint64_t in_flight_after, uint64_t largest_frame_bytes) const {
  const uint64_t unasked_packets = sequence + 1 - std::max(asked_end_, accepted_);
  if (unasked_packets >= config_.ack_interval_packets) return true;
  if (gate_.gap_ps() * config_.ack_interval_packets > config_.retransmission_timeout_ps / 4) return true;
  const uint64_t window_bytes = gate_.window_bytes();
  if (unasked_packets * largest_frame_bytes >= window_bytes / 2) return true;
  return !is_asked() && in_flight_after + largest_frame_bytes > window_bytes;
}

bool SentStream::record(TimePs now, uint64_t sequence, uint16_t frame_bytes, uint16_t entropy,
                        TimePs later_ps) {
  const bool retransmission = sequence < highest_;
  sent_.make_room(accepted_, sequence);
  sent_[sequence] = {.sent_ps = now + later_ps,
                     .frame_bytes = frame_bytes,
                     .entropy = entropy,
                     .state = SentPacket::State::kInFlight,
                     .retransmitted = retransmission};
  in_flight_bytes_ += frame_bytes;
  if (!retransmission) {
    numbers_.note(sequence, gate_.take_number());
    highest_ = sequence + 1;
  }
  if (selective_repeat_) losses_.on_sent(sequence, now + later_ps);
  gate_.on_sent(now, frame_bytes, retransmission);
  return retransmission;
}

bool SentStream::acknowledge(TimePs now, uint64_t end, std::optional<uint64_t> answered,
                             const roce::ParsedPacket& packet) {
  Settled settled;
  const SentPacket newest = answered ? sent_[*answered] : SentPacket();
  const bool answer_is_new = answered && newest.state != SentPacket::State::kDelivered;
  const bool marked = packet.bth.becn;
  for (uint64_t at = accepted_; at < end; ++at) settle(now, sent_[at], marked, settled);
  if (answered && *answered >= end) settle(now, sent_[*answered], marked, settled);
  accepted_ = end;
  // The response of a READ is the answer to all before it, whatever has arrived behind that.
  while (selective_repeat_ && accepted_ < highest_ && sent_[accepted_].state == SentPacket::State::kDelivered)
    ++accepted_;
  if (settled.packets == 0) return false;
  const TimePs round_trip_ps = answer_is_new && !newest.retransmitted ? now - newest.sent_ps : 0;
  if (round_trip_ps > 0) round_trips_.add(round_trip_ps);
  const bool has_echo = packet.telemetry && packet.telemetry->echo;
  gate_.congestion_control().on_acknowledgement(
      {.now = now,
       .acknowledged_bytes = settled.bytes,
       .acknowledged_packets = settled.packets,
       .in_flight_bytes = gate_.in_flight_bytes(),
       .round_trip_ps = round_trip_ps,
       .sequence = numbers_.number(answered.value_or(end - 1)),
       .next_sequence = gate_.next_number(),
       // The peer starts with our own hop limit.
       .hops = static_cast<uint8_t>(std::max(0, config_.hop_limit - packet.hop_limit)),
       .congestion_experienced = marked,
       .telemetry = has_echo ? &*packet.telemetry : nullptr});
  return true;
}

// A packet has arrived.
void SentStream::settle(TimePs now, SentPacket& packet, bool marked, Settled& settled) {
  if (packet.state == SentPacket::State::kDelivered) return;
  if (packet.state == SentPacket::State::kInFlight) {
    in_flight_bytes_ -= packet.frame_bytes;
    gate_.release(packet.frame_bytes);
  }
  packet.state = SentPacket::State::kDelivered;
  settled.bytes += packet.frame_bytes;
  ++settled.packets;
  if (packet.retransmitted && recovery_times_ != nullptr) recovery_times_->add(now);
  if (selective_repeat_) losses_.on_delivered(now, packet.sent_ps, packet.retransmitted);
  if (path_choice_ != nullptr)
    path_choice_->on_delivered(now, packet.entropy, packet.retransmitted ? 0 : now - packet.sent_ps, marked);
}

bool SentStream::acknowledge(TimePs now, const Arrivals& arrivals) {
  Settled settled;
  const std::optional<uint64_t> answered = arrivals.answered;
  const SentPacket newest = answered ? sent_[*answered] : SentPacket();
  const bool answer_is_new = answered && newest.state != SentPacket::State::kDelivered;
  for (uint64_t at = accepted_; at < arrivals.end; ++at) settle(now, sent_[at], arrivals.marked, settled);
  for (uint64_t bits = arrivals.bitmap; bits != 0; bits &= bits - 1)
    settle(now, sent_[arrivals.first + static_cast<uint64_t>(std::countr_zero(bits))], arrivals.marked,
           settled);
  if (answered && *answered >= arrivals.end) settle(now, sent_[*answered], arrivals.marked, settled);
  accepted_ = arrivals.end;
  while (accepted_ < highest_ && sent_[accepted_].state == SentPacket::State::kDelivered) ++accepted_;
  if (settled.packets == 0) return false;
  const bool is_timed = answer_is_new && !newest.retransmitted;
  const TimePs round_trip_ps = is_timed ? std::max<TimePs>(0, now - newest.sent_ps - arrivals.service_ps) : 0;
  if (round_trip_ps > 0) round_trips_.add(round_trip_ps);
  gate_.congestion_control().on_acknowledgement(
      {.now = now,
       .acknowledged_bytes = settled.bytes,
       .acknowledged_packets = settled.packets,
       .in_flight_bytes = gate_.in_flight_bytes(),
       .round_trip_ps = round_trip_ps,
       .sequence = numbers_.number(answered.value_or(arrivals.end > 0 ? arrivals.end - 1 : 0)),
       .next_sequence = gate_.next_number(),
       .hops = static_cast<uint8_t>(std::max(0, config_.hop_limit - arrivals.hop_limit)),
       .congestion_experienced = arrivals.marked});
  return true;
}

void SentStream::take_from_flight(uint64_t sequence) {
  SentPacket& packet = sent_[sequence];
  packet.state = SentPacket::State::kLost;
  in_flight_bytes_ -= packet.frame_bytes;
  gate_.release(packet.frame_bytes);
  lost_.push(sequence);
}

void SentStream::take_for_lost(TimePs now, uint64_t sequence) {
  take_from_flight(sequence);
  if (path_choice_ != nullptr) path_choice_->on_lost(now, sent_[sequence].entropy);
}

bool SentStream::take_refused_for_lost(uint64_t sequence, std::optional<uint16_t> entropy) {
  const SentPacket& packet = sent_[sequence];
  if (packet.state != SentPacket::State::kInFlight || (entropy && *entropy != packet.entropy)) return false;
  take_from_flight(sequence);
  return true;
}

bool SentStream::detect_losses(TimePs now) {
  const auto is_out = [this](uint64_t sequence, TimePs sent_ps) {
    if (sequence < accepted_) return false;
    const SentPacket& packet = sent_[sequence];
    return packet.state == SentPacket::State::kInFlight && packet.sent_ps == sent_ps;
  };
  bool any = false;
  while (const std::optional<uint64_t> sequence = losses_.next_lost(now, is_out)) {
    take_for_lost(now, *sequence);
    any = true;
  }
  return any;
}

void SentStream::take_overdue_for_lost(TimePs now, uint64_t from, uint64_t end, TimePs overdue_ps) {
  for (uint64_t at = from; at < end; ++at) {
    const SentPacket& packet = sent_[at];
    const bool overdue = at == from || packet.sent_ps <= overdue_ps;
    if (packet.state == SentPacket::State::kInFlight && overdue) take_for_lost(now, at);
  }
}

std::optional<uint64_t> SentStream::next_lost() {
  while (!lost_.empty()) {
    const uint64_t sequence = lost_.front();
    if (sequence >= accepted_ && sent_[sequence].state == SentPacket::State::kLost) return sequence;
    lost_.pop();  // it has arrived after all
  }
  return std::nullopt;
}

void SentStream::go_back(TimePs now, uint64_t from, uint64_t end) {
  for (uint64_t at = from; at < end; ++at) {
    SentPacket& packet = sent_[at];
    if (packet.state == SentPacket::State::kInFlight) {
      in_flight_bytes_ -= packet.frame_bytes;
      gate_.release(packet.frame_bytes);
    }
    packet.state = SentPacket::State::kLost;
  }
  if (path_choice_ != nullptr && end > from) path_choice_->on_lost(now, sent_[from].entropy);
  asked_end_ = from;
}

void SentStream::release_overdue(uint64_t end, TimePs overdue_ps) {
  for (uint64_t at = accepted_; at < end; ++at) {
    SentPacket& packet = sent_[at];
    if (packet.state != SentPacket::State::kInFlight || packet.sent_ps > overdue_ps) continue;
    in_flight_bytes_ -= packet.frame_bytes;
    gate_.release(packet.frame_bytes);
    packet.state = SentPacket::State::kLost;
  }
}

void SentStream::release() { gate_.release(std::exchange(in_flight_bytes_, 0)); }

}  // namespace weft
