#include "links/link_retry.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "links/link.hpp"
#include "links/transmit_port.hpp"

namespace weft {

LinkRetry::LinkRetry(Link& link, TransmitPort& port, const LinkRetryConfig& config)
    : engine_(link.engine()),
      link_(link),
      port_(port),
      config_(config),
      due_(engine_.events(), member_action<&LinkRetry::on_due>(this)),
      full_(engine_.events(), member_action<&LinkRetry::on_full>(this)) {
  const auto refuse = [](const std::string& what) { throw std::invalid_argument("link retry: " + what); };
  if (&port.link() != &link) refuse("the port sends into another link");
  if (port.rate_bps() == 0) refuse("a port without a rate sends again in no time");
  if (config.largest_frame_bytes == 0 || config.buffer_bytes < config.largest_frame_bytes)
    refuse("buffer_bytes is " + std::to_string(config.buffer_bytes) + " (the largest frame, " +
           std::to_string(config.largest_frame_bytes) + ", or more)");
  if (config.attempts < 1) refuse("attempts is 0 (1 or more)");
  if (config.response_ps < 0) refuse("response_ps is " + std::to_string(config.response_ps) + " (0 or more)");
  const TimePs answered_ps = answer_ps(link.delay_ps());
  if (config.timeout_ps <= answered_ps)
    refuse("timeout_ps is " + std::to_string(config.timeout_ps) + " (more than " +
           std::to_string(answered_ps) + ", which an answer takes)");
  engine_.conservation().add_holder(this, &LinkRetry::count_held);
}

// ACK and NACK take the way back, and the time of their own bits: they do not wait for frames.
TimePs LinkRetry::answer_ps(TimePs arrival_ps) const {
  return arrival_ps + config_.response_ps + port_.rate().serialisation_ps(kMessageBytes) + link_.delay_ps();
}

void LinkRetry::send(PacketPtr packet, TimePs sent_ps) {
  const bool arrived = arrives(*packet, sent_ps);
  if (waiting_.empty() && arrived) {
    deliver(std::move(packet), sent_ps);
  } else {
    const bool first = waiting_.empty();
    waiting_now_.add(packet->traffic());
    waiting_bytes_ += packet->wire_bytes();
    waiting_.push(std::move(packet));
    if (first) on_lost(sent_ps);
  }
  hold_if_full(sent_ps);
}

// A frame that is out of order tells of those before it as a corrupted one does of itself.
bool LinkRetry::arrives(const Packet& packet, TimePs sent_ps) {
  const Link::Fate fate = link_.draw_fate(packet);
  if (fate != Link::Fate::kArrives) ++counters_.lost_packets;
  const bool out_of_order = !waiting_.empty() && fate == Link::Fate::kArrives;
  if (fate == Link::Fate::kCorrupted || out_of_order) note_nack(sent_ps + link_.delay_ps());
  return fate == Link::Fate::kArrives;
}

void LinkRetry::deliver(PacketPtr packet, TimePs sent_ps) {
  const TimePs arrival_ps = sent_ps + link_.delay_ps();
  const uint64_t bytes = packet->wire_bytes();
  unacknowledged_.push({answer_ps(arrival_ps), bytes});
  unacknowledged_bytes_ += bytes;
  attempts_ = 0;
  link_.deliver(std::move(packet), arrival_ps);
}

// Its NACK, if there is one, comes before.
void LinkRetry::on_lost(TimePs sent_ps) { due_.arm(std::min(due_.deadline(), sent_ps + config_.timeout_ps)); }

void LinkRetry::note_nack(TimePs arrival_ps) {
  if (nacked_) return;
  nacked_ = true;
  // It says so once: the timer does the rest.
  if (link_.loses_message(kMessageBytes)) {
    ++counters_.lost_messages;
    return;
  }
  nack_due_ps_ = answer_ps(arrival_ps);
  due_.arm(std::min(due_.deadline(), nack_due_ps_));
}

void LinkRetry::on_due() {
  ++(engine_.now() == nack_due_ps_ ? counters_.nacks : counters_.timeouts);
  if (attempts_ == config_.attempts)
    give_up();
  else
    replay();
}

void LinkRetry::replay() {
  ++attempts_;
  ++counters_.replays;
  const TimePs begin_ps = std::max(engine_.now(), port_.busy_until_ps());
  nacked_ = false;
  nack_due_ps_ = kNever;
  RingBuffer<PacketPtr> again;
  std::swap(again, waiting_);
  TimePs sent_ps = begin_ps;
  while (!again.empty() && nack_due_ps_ > sent_ps) {
    PacketPtr packet = again.pop();
    counters_.replayed.add(packet->traffic());
    sent_ps += port_.rate().serialisation_ps(packet->wire_bytes());
    const bool arrived = arrives(*packet, sent_ps);
    if (waiting_.empty() && arrived) {
      waiting_now_.take_away(packet->traffic());
      waiting_bytes_ -= packet->wire_bytes();
      deliver(std::move(packet), sent_ps);
    } else {
      waiting_.push(std::move(packet));
      if (waiting_.size() == 1) on_lost(sent_ps);
    }
  }
  // What it has not come to when the far end's next NACK was here.
  while (!again.empty()) waiting_.push(again.pop());
  counters_.replaying_ps += sent_ps - begin_ps;
  hold_if_full(sent_ps);
  port_.occupy_until(sent_ps);
}

void LinkRetry::give_up() {
  const TrafficCounter lost = waiting_now_;
  for (; !waiting_.empty(); waiting_.pop()) link_.drop_lost(waiting_.front()->traffic());
  counters_.given_up.add(lost);
  rest();
}

void LinkRetry::rest() {
  waiting_bytes_ = 0;
  waiting_now_ = {};
  attempts_ = 0;
  nacked_ = false;
  nack_due_ps_ = kNever;
  due_.cancel();
}

TrafficCounter LinkRetry::take_all() {
  const TrafficCounter held = waiting_now_;
  while (!waiting_.empty()) waiting_.pop();
  while (!unacknowledged_.empty()) unacknowledged_.pop();
  unacknowledged_bytes_ = 0;
  rest();
  full_.cancel();
  return held;
}

// --- a full buffer

void LinkRetry::hold_if_full(TimePs sent_ps) {
  forget_acknowledged(engine_.now());
  counters_.largest_buffer_bytes = std::max(counters_.largest_buffer_bytes, held_bytes());
  // Before the port takes the next frame: the timer goes first, as it is armed before the port's.
  if (held_bytes() + config_.largest_frame_bytes > config_.buffer_bytes) full_.arm(sent_ps);
}

void LinkRetry::forget_acknowledged(TimePs now) {
  while (!unacknowledged_.empty() && unacknowledged_.front().due_ps <= now)
    unacknowledged_bytes_ -= unacknowledged_.pop().bytes;
}

void LinkRetry::on_full() {
  const TimePs now = engine_.now();
  forget_acknowledged(now);
  if (held_bytes() + config_.largest_frame_bytes <= config_.buffer_bytes) return;
  // What was lost makes room once it has been sent again.
  const TimePs until_ps = unacknowledged_.empty() ? due_.deadline() : unacknowledged_.front().due_ps;
  const TimePs from_ps = std::max(now, port_.busy_until_ps());
  if (until_ps > from_ps) counters_.waiting_ps += until_ps - from_ps;
  full_.arm(until_ps);
  port_.occupy_until(until_ps);
}

// --- figures

void LinkRetry::count_held(const void* retry, HeldPackets& held) {
  held.in_flight.add(static_cast<const LinkRetry*>(retry)->waiting_now_);
}

void LinkRetry::reset_counters() { counters_ = LinkRetryCounters(); }

}  // namespace weft
