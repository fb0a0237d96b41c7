#include "tcp/sender.hpp"

#include <algorithm>
#include <utility>

namespace weft::tcp {

Sender::Sender(const SenderConfig& config, std::unique_ptr<CongestionControl> congestion_control)
    : config_(config), control_(std::move(congestion_control)), timeout_(config.timeout) {}

void Sender::establish(uint32_t segment_bytes, bool sack, bool ecn) {
  established_ = true;
  segment_bytes_ = segment_bytes;
  sack_ = sack;
  ecn_ = ecn;
  scoreboard_.set_segment_bytes(segment_bytes);
  // A lost SYN leaves one segment (RFC 5681, section 3.1).
  control_->start(segment_bytes, syn_lost_ ? 1 : config_.initial_window_segments);
  if (syn_lost_) timeout_.restart_after_lost_syn();
}

std::optional<Transmission> Sender::take(TimePs now) {
  std::optional<Transmission> taken;
  if (!established_) taken = take_syn(now);
  if (!taken && probe_wanted_) taken = take_probe(now);
  // What an acknowledgement has made superfluous meanwhile is not sent.
  if (!taken && tail_probe_wanted_) taken = take_tail_probe(now);
  if (!taken && established_) taken = take_data(now);
  arm(now);
  if (taken && !taken->probe) arm_tail_probe(now);
  return taken;
}

std::optional<Transmission> Sender::take_data(TimePs now) {
  if (SentSegment* lost = lost_segment()) {
    if (!first_wanted_ && !fits(lost->size()) && scoreboard_.pipe() > 0) return std::nullopt;
    first_wanted_ = false;
    return send_again(*lost, now);
  }
  if (auto taken = take_new(now)) return taken;
  SentSegment* late = late_segment();
  if (late == nullptr || !fits(late->size())) return std::nullopt;
  return send_again(*late, now);
}

std::optional<Transmission> Sender::take_syn(TimePs now) {
  if (!syn_wanted_) return std::nullopt;
  syn_wanted_ = false;
  if (SentSegment* syn = scoreboard_.first_segment()) return send_again(*syn, now);
  next_ = kFirstByte;
  scoreboard_.add_sent(0, kFirstByte, now);
  last_sent_ps_ = now;
  return transmission(0, kFirstByte, false);
}

SentSegment* Sender::lost_segment() {
  if (recovery_ == Recovery::kNone) return nullptr;
  if (first_wanted_) return scoreboard_.first_segment();
  return scoreboard_.next_lost();
}

// What NextSeg() offers when nothing is lost and nothing new may be sent (RFC 6675, section 4, rules 3 and
// 4). Where time shows losses, what is not lost yet may be late, and is waited for, as in Linux.
SentSegment* Sender::late_segment() {
  if (recovery_ != Recovery::kFast || !sack_ || uses_rack()) return nullptr;
  if (SentSegment* uncertain = scoreboard_.next_uncertain(sent_again_end_)) return uncertain;
  if (rescued_ && unacknowledged_ <= *rescued_) return nullptr;
  SentSegment* last = scoreboard_.last_missing();
  // One that was sent again already needs no rescue.
  if (last == nullptr || last->sent_again || !fits(last->size())) return nullptr;
  rescued_ = recovery_end_;
  return last;
}

std::optional<Transmission> Sender::take_new(TimePs now) {
  if (next_ >= stream_end()) return std::nullopt;
  restart_if_idle(now);
  const uint64_t room = window_end_ > next_ ? window_end_ - next_ : 0;
  const uint64_t payload = std::min({uint64_t{segment_bytes_}, data_end_ - next_, room});
  const bool fin = finished_ && next_ + payload == data_end_ && payload < room;
  closed_window_ = !fin && (payload == 0 || (payload == room && held_back(payload)));
  if (closed_window_ || (!fin && held_back(payload))) return std::nullopt;
  if (!fits(payload + (fin ? 1 : 0))) {
    window_limited_end_ = next_;
    return std::nullopt;
  }
  return send_new(payload, fin, now);
}

// Nagle's algorithm and the sender's part against silly windows (RFC 9293, sections 3.7.4 and 3.8.6.2.1): a
// segment that is not full waits, unless it is all there is and no other small one is under way, or is half
// of what the receiver ever offered.
bool Sender::held_back(uint64_t payload_bytes) const {
  if (payload_bytes >= segment_bytes_) return false;
  const bool all = next_ + payload_bytes == data_end_;
  if (all && (!config_.nagle || finished_ || small_segment_end_ <= unacknowledged_)) return false;
  return payload_bytes < std::max<uint64_t>(1, largest_window_bytes_ / 2);
}

std::optional<Transmission> Sender::take_probe(TimePs now) {
  probe_wanted_ = false;
  if (next_ >= stream_end() || !scoreboard_.empty()) return std::nullopt;
  ++counters_.window_probes;
  if (window_end_ > next_) {
    return send_new(std::min({uint64_t{segment_bytes_}, data_end_ - next_, window_end_ - next_}), false, now);
  }
  // A byte beyond the window, which is not in flight: whoever has no room for it answers all the same.
  probed_ = true;
  last_sent_ps_ = now;
  Transmission made = transmission(next_, next_ + 1, false);
  made.probe = true;
  return made;
}

Transmission Sender::send_new(uint64_t payload_bytes, bool fin, TimePs now) {
  const Sequence begin = next_;
  next_ += payload_bytes + (fin ? 1 : 0);
  probed_ = false;
  if (payload_bytes < segment_bytes_) small_segment_end_ = next_;
  scoreboard_.add_sent(begin, next_, now);
  rate_reduction_.on_sent(next_ - begin);
  last_sent_ps_ = now;
  Transmission made = transmission(begin, next_, false);
  if (payload_bytes > 0) made.window_reduced = std::exchange(window_reduced_due_, false);
  return made;
}

Transmission Sender::send_again(SentSegment& segment, TimePs now) {
  if (segment.begin == unacknowledged_) retransmission_at_ = kNever;  // armed anew
  sent_again_end_ = std::max(sent_again_end_, segment.end);
  scoreboard_.add_sent_again(segment, now);
  rate_reduction_.on_sent(segment.size());
  last_sent_ps_ = now;
  return transmission(segment.begin, segment.end, true);
}

Transmission Sender::transmission(Sequence begin, Sequence end, bool again) {
  const Transmission made{
      .begin = begin, .end = end, .syn = begin == 0, .fin = finished_ && end > data_end_, .again = again};
  const uint64_t payload_bytes = end - begin - (made.syn ? 1 : 0) - (made.fin ? 1 : 0);
  ++counters_.sent_segments;
  counters_.sent_bytes += payload_bytes;
  if (again) {
    ++counters_.retransmitted_segments;
    counters_.retransmitted_bytes += payload_bytes;
  }
  return made;
}

uint64_t Sender::counted_in_flight() const {
  return recovery_ == Recovery::kFast && !sack_ ? scoreboard_.flight() : scoreboard_.pipe();
}

uint64_t Sender::usable_window_bytes() const {
  int64_t window = static_cast<int64_t>(window_bytes()) + inflation_bytes_;
  // Limited transmit (RFC 3042); with SACK the pipe has made room for it already.
  if (!sack_ && recovery_ == Recovery::kNone) window += int64_t{std::min(duplicates_, 2u)} * segment_bytes_;
  return static_cast<uint64_t>(std::max<int64_t>(window, segment_bytes_));
}

bool Sender::fits(uint64_t bytes) const { return counted_in_flight() + bytes <= usable_window_bytes(); }

void Sender::restart_if_idle(TimePs now) {
  if (!config_.restart_after_idle || !scoreboard_.empty() || now - last_sent_ps_ <= timeout_.timeout_ps())
    return;
  control_->limit_window(uint64_t{config_.initial_window_segments} * segment_bytes_);
}

void Sender::arm(TimePs now) {
  if (!scoreboard_.empty()) {
    if (retransmission_at_ == kNever) retransmission_at_ = now + timeout_.timeout_ps();
    probe_at_ = kNever;
    return;
  }
  retransmission_at_ = kNever;
  const bool waits = established_ && closed_window_ && next_ < stream_end();
  if (!waits) {
    probe_at_ = kNever;
  } else if (probe_at_ == kNever) {
    const TimePs most = config_.timeout.most_ps;
    TimePs interval = timeout_.timeout_ps();
    for (uint32_t each = 0; each < probes_ && interval < most; ++each) interval *= 2;
    probe_at_ = now + std::min(interval, most);
  }
}

TimePs Sender::next_deadline() const {
  return std::min({retransmission_at_, probe_at_, reordering_at_, tail_probe_at_});
}

void Sender::on_timer(TimePs now) {
  if (probe_at_ <= now) {
    probe_at_ = kNever;
    probe_wanted_ = true;
    ++probes_;
    gave_up_ = ++attempts_ > config_.most_retransmissions;
  }
  if (reordering_at_ <= now) {
    find_lost_by_time(now);
    // In recovery its window stays, so that what is found lost makes room to be sent again.
    if (recovery_ == Recovery::kNone && shows_loss()) enter_fast_recovery(now, {});
  }
  if (tail_probe_at_ <= now) {
    tail_probe_at_ = kNever;
    tail_probe_wanted_ = true;
  }
  if (retransmission_at_ <= now) on_retransmission_timeout(now);
}

void Sender::on_retransmission_timeout(TimePs now) {
  retransmission_at_ = reordering_at_ = tail_probe_at_ = kNever;
  tail_probe_wanted_ = false;
  ++counters_.timeouts;
  timeout_.back_off();
  gave_up_ |= ++attempts_ > (established_ ? config_.most_retransmissions : config_.most_syn_retransmissions);
  if (!established_) {
    syn_wanted_ = syn_lost_ = true;
    return;
  }
  control_->on_timeout(now, scoreboard_.flight(), attempts_ > 1);
  scoreboard_.mark_lost_at_timeout(lost_if_sent_before(now));
  recovery_ = Recovery::kTimeout;
  recovery_end_ = reduced_end_ = next_;
  sent_again_end_ = unacknowledged_;
  duplicates_ = 0;
  inflation_bytes_ = 0;
  first_wanted_ = true;
  window_reduced_due_ = ecn_;
}

}  // namespace weft::tcp
