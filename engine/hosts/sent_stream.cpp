#include "hosts/sent_stream.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace weft {
namespace {

// What an acknowledgement of RC says besides its packets.
struct AcknowledgedBy {
  static constexpr bool kFinds = false;
  const roce::ParsedPacket& packet;
  bool marked() const { return packet.bth.becn; }
  uint8_t hop_limit() const { return packet.hop_limit; }
  const roce::IntStack* telemetry() const {
    return packet.telemetry && packet.telemetry->echo ? &*packet.telemetry : nullptr;
  }
  TimePs on_the_way_ps(TimePs since_sent_ps) const { return since_sent_ps; }
  uint64_t newest(uint64_t end) const { return end - 1; }  // there is one, or this is no news
  template <class Settle>
  void each_other(Settle&&) const {}
};

// The same of a selective acknowledgement.
struct SelectivelyAcknowledgedBy {
  static constexpr bool kFinds = true;  // tells the observer of what was taken for lost
  const SentStream::Arrivals& arrivals;
  bool marked() const { return arrivals.marked; }
  uint8_t hop_limit() const { return arrivals.hop_limit; }
  const roce::IntStack* telemetry() const { return nullptr; }
  TimePs on_the_way_ps(TimePs since_sent_ps) const {
    return std::max<TimePs>(0, since_sent_ps - arrivals.service_ps);
  }
  uint64_t newest(uint64_t end) const { return end == 0 ? 0 : end - 1; }
  template <class Settle>
  void each_other(Settle&& settle) const {
    for (uint64_t bits = arrivals.bitmap; bits != 0; bits &= bits - 1)
      settle(arrivals.first + static_cast<uint64_t>(std::countr_zero(bits)));
  }
};

}  // namespace

SentStream::SentStream(const RcConfig& config, SendGate& gate, PathChoice* path_choice,
                       LossObserver* observer)
    : config_(config),
      gate_(gate),
      path_choice_(path_choice),
      selective_repeat_(config.retransmission == Retransmission::kSelectiveRepeat),
      losses_(config.reordering_window_ps, config.retransmission_timeout_ps / 4),
      observer_(observer) {}

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

template <class News>
[[gnu::always_inline]] inline bool SentStream::take_arrived(TimePs now, uint64_t end,
                                                            std::optional<uint64_t> answered,
                                                            const News& news) {
  Settled settled;
  const SentPacket newest = answered ? sent_[*answered] : SentPacket();
  const bool answer_is_new = answered && newest.state != SentPacket::State::kDelivered;
  const bool marked = news.marked();
  const auto settle_one = [&](uint64_t sequence) {
    SentPacket& packet = sent_[sequence];
    if constexpr (News::kFinds) {
      if (packet.state == SentPacket::State::kLost) {
        losses_.on_found(now);
        if (observer_ != nullptr) observer_->on_found(now, packet);
      }
    }
    settle(now, packet, marked, settled);
  };
  for (uint64_t at = accepted_; at < end; ++at) settle_one(at);
  news.each_other(settle_one);
  if (answered && *answered >= end) settle_one(*answered);
  accepted_ = end;
  // The response of a READ is the answer to all before it, whatever has arrived behind that.
  while (selective_repeat_ && accepted_ < highest_ && sent_[accepted_].state == SentPacket::State::kDelivered)
    ++accepted_;
  if (settled.packets == 0) return false;
  const bool is_timed = answer_is_new && !newest.retransmitted;
  const TimePs round_trip_ps = is_timed ? news.on_the_way_ps(now - newest.sent_ps) : 0;
  if (round_trip_ps > 0) round_trips_.add(round_trip_ps);
  gate_.congestion_control().on_acknowledgement(
      {.now = now,
       .acknowledged_bytes = settled.bytes,
       .acknowledged_packets = settled.packets,
       .in_flight_bytes = gate_.in_flight_bytes(),
       .round_trip_ps = round_trip_ps,
       .sequence = numbers_.number(answered.value_or(news.newest(end))),
       .next_sequence = gate_.next_number(),
       // The peer starts with our own hop limit.
       .hops = static_cast<uint8_t>(std::max(0, config_.hop_limit - news.hop_limit())),
       .congestion_experienced = marked,
       .telemetry = news.telemetry()});
  return true;
}

bool SentStream::acknowledge(TimePs now, uint64_t end, std::optional<uint64_t> answered,
                             const roce::ParsedPacket& packet) {
  return take_arrived(now, end, answered, AcknowledgedBy{packet});
}

bool SentStream::acknowledge(TimePs now, const Arrivals& arrivals) {
  if (observer_ != nullptr) note_missing(arrivals);
  return take_arrived(now, arrivals.end, arrivals.answered, SelectivelyAcknowledgedBy{arrivals});
}

std::optional<SentStream::Arrivals> SentStream::arrivals_at(int64_t base, int64_t bitmap_offset,
                                                            uint64_t bitmap,
                                                            std::optional<int64_t> answered_offset) const {
  constexpr int64_t kBits = 64;
  const auto accepted = static_cast<int64_t>(accepted_);
  const auto highest = static_cast<int64_t>(highest_);
  if (base >= highest) return std::nullopt;
  const int64_t end = std::max(base + 1, accepted);
  int64_t first = base + bitmap_offset;
  if (first < end) {
    const int64_t known = end - first;
    bitmap = known >= kBits ? 0 : bitmap >> known;
    first = end;
  }
  const int64_t room = std::max<int64_t>(0, highest - first);
  if (room < kBits) bitmap &= (uint64_t{1} << room) - 1;
  // A receiver that takes packets in order has none behind a gap, whatever is said in its name.
  if (!selective_repeat_) {
    bitmap = 0;
    if (answered_offset && base + *answered_offset >= end) answered_offset.reset();
  }
  std::optional<uint64_t> answered;
  if (answered_offset) {
    const int64_t named = base + *answered_offset;
    if (named >= accepted && named < highest) answered = static_cast<uint64_t>(named);
  }
  return Arrivals{.end = static_cast<uint64_t>(end),
                  .first = static_cast<uint64_t>(first),
                  .bitmap = bitmap,
                  .answered = answered,
                  .misses_end = end == base + 1};
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

// Packets that had not arrived when ones sent after them had. About those that the acknowledgement does not
// cover it says nothing.
void SentStream::note_missing(const Arrivals& arrivals) {
  const bool later = arrivals.bitmap != 0 || (arrivals.answered && *arrivals.answered > arrivals.end);
  if (later && arrivals.misses_end && arrivals.end < highest_)
    sent_[arrivals.end].entropy |= SentPacket::kMissing;
  if (arrivals.bitmap == 0) return;
  const auto width = static_cast<unsigned>(std::bit_width(arrivals.bitmap));
  uint64_t holes = ~arrivals.bitmap & ((uint64_t{1} << (width - 1)) - 1);
  for (; holes != 0; holes &= holes - 1)
    sent_[arrivals.first + static_cast<uint64_t>(std::countr_zero(holes))].entropy |= SentPacket::kMissing;
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
  if (observer_ != nullptr) observer_->on_lost(now, sent_[sequence]);
}

bool SentStream::take_refused_for_lost(uint64_t sequence, std::optional<uint16_t> entropy) {
  const SentPacket& packet = sent_[sequence];
  if (packet.state != SentPacket::State::kInFlight || (entropy && *entropy != packet.path())) return false;
  take_from_flight(sequence);
  return true;
}

uint64_t SentStream::detect_losses(TimePs now) {
  const auto is_out = [this](uint64_t sequence, TimePs sent_ps) {
    if (sequence < accepted_) return false;
    const SentPacket& packet = sent_[sequence];
    return packet.state == SentPacket::State::kInFlight && packet.sent_ps == sent_ps;
  };
  uint64_t lost_bytes = 0;
  while (const std::optional<uint64_t> sequence = losses_.next_lost(now, is_out)) {
    take_for_lost(now, *sequence);
    lost_bytes += sent_[*sequence].frame_bytes;
  }
  return lost_bytes;
}

uint64_t SentStream::take_overdue_for_lost(TimePs now, uint64_t from, uint64_t end, TimePs overdue_ps) {
  uint64_t lost_bytes = 0;
  for (uint64_t at = from; at < end; ++at) {
    const SentPacket& packet = sent_[at];
    const bool overdue = at == from || packet.sent_ps <= overdue_ps;
    if (packet.state != SentPacket::State::kInFlight || !overdue) continue;
    lost_bytes += packet.frame_bytes;
    take_for_lost(now, at);
  }
  return lost_bytes;
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

void SentStream::lose_all() {
  while (!lost_.empty()) lost_.pop();
  for (uint64_t at = accepted_; at < highest_; ++at) {
    const SentPacket::State state = sent_[at].state;
    if (state == SentPacket::State::kInFlight) take_from_flight(at);
    if (state == SentPacket::State::kLost) lost_.push(at);
  }
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

void SentStream::release() {
  gate_.release(std::exchange(in_flight_bytes_, 0));
  losses_.stop();
  lost_ = {};
}

}  // namespace weft
