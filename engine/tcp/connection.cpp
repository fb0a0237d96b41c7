#include "tcp/connection.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "tcp/segment_format.hpp"

namespace weft::tcp {
namespace {

constexpr uint16_t kDefaultSegmentBytes = 536;           // RFC 9293, section 3.7.1
constexpr uint16_t kLeastSegmentBytes = 64;              // of a peer that offers next to nothing
constexpr TimePs kChallengeInterval = kPsPerSecond / 2;  // as Linux's tcp_invalid_ratelimit

uint8_t window_scale_for(uint64_t buffer_bytes) {
  uint8_t scale = 0;
  while (scale < kMostWindowScale && buffer_bytes >> scale > 0xFFFF) ++scale;
  return scale;
}

ConnectionConfig checked(ConnectionConfig config) {
  if (config.maximum_segment_bytes < kLeastSegmentBytes) {
    throw std::invalid_argument("maximum_segment_bytes " + std::to_string(config.maximum_segment_bytes) +
                                " (valid: at least " + std::to_string(kLeastSegmentBytes) + ")");
  }
  if (config.receiver.buffer_bytes == 0)
    throw std::invalid_argument("receive buffer of 0 bytes (valid: at least 1)");
  if (config.timestamp_tick_ps <= 0) throw std::invalid_argument("timestamp_tick_ps must be positive");
  return config;
}

}  // namespace

std::string_view state_name(State state) {
  constexpr std::string_view kNames[] = {"closed",      "listen",     "syn_sent",   "syn_received",
                                         "established", "fin_wait_1", "fin_wait_2", "close_wait",
                                         "closing",     "last_ack",   "time_wait"};
  return kNames[static_cast<size_t>(state)];
}

std::string_view end_name(End end) {
  constexpr std::string_view kNames[] = {"none", "closed", "reset", "refused", "timed_out", "aborted"};
  return kNames[static_cast<size_t>(end)];
}

std::optional<Segment> reset_for(const Segment& segment) {
  if (segment.has(kReset)) return std::nullopt;
  Segment reset{.source_port = segment.destination_port, .destination_port = segment.source_port};
  if (segment.has(kAck)) {
    reset.sequence = segment.acknowledgement;
    reset.flags = kReset;
  } else {
    reset.acknowledgement =
        segment.sequence + segment.payload_bytes + (segment.has(kSyn) ? 1 : 0) + (segment.has(kFin) ? 1 : 0);
    reset.flags = kReset | kAck;
  }
  return reset;
}

Connection::Connection(const ConnectionConfig& config, std::unique_ptr<CongestionControl> congestion_control)
    : config_(checked(config)),
      sender_(config.sender, std::move(congestion_control)),
      receiver_(config.receiver),
      own_(config.initial_sequence),
      exact_echo_(sender_.congestion_control().needs_exact_echo()),
      ecn_(config.ecn || exact_echo_),
      sack_(config.sack),
      timestamps_(config.timestamps),
      window_scaling_(config.window_scaling),
      own_window_scale_(window_scale_for(config.receiver.buffer_bytes)) {}

void Connection::connect() {
  if (state_ != State::kClosed) throw std::logic_error("connect() of a connection that is open");
  state_ = State::kSynSent;
  sender_.open();
}

void Connection::send(uint64_t bytes) {
  if (sender_.finished()) throw std::logic_error("send() after close()");
  sender_.add_data(bytes);
}

// Before the connection is established FIN waits for that, behind the data.
void Connection::close() {
  if (sender_.finished()) return;
  sender_.finish();
  if (state_ == State::kListen) finish(End::kClosed);
  if (state_ == State::kEstablished) state_ = State::kFinWait1;
  if (state_ == State::kCloseWait) state_ = State::kLastAck;
}

void Connection::abort() {
  if (state_ >= State::kSynReceived && state_ != State::kTimeWait) {
    reset_ = Segment{.source_port = config_.source_port,
                     .destination_port = config_.destination_port,
                     .sequence = own_.wire(sender_.next()),
                     .acknowledgement = peer_.wire(receiver_.next()),
                     .flags = kReset | kAck};
  }
  finish(End::kAborted);
}

void Connection::finish(End end) {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  end_ = end;
}

uint64_t Connection::offset_of(Sequence sequence) const {
  return std::clamp(sequence, kFirstByte, sender_.data_end()) - kFirstByte;
}

uint64_t Connection::received_offset() const {
  return receiver_.next() - kFirstByte - (receiver_.fin_received() ? 1 : 0);
}

TimePs Connection::next_deadline() const {
  if (state_ == State::kClosed || state_ == State::kListen) return kNever;
  return std::min({sender_.next_deadline(), receiver_.next_deadline(), time_wait_until_});
}

void Connection::on_timer(TimePs now) {
  if (state_ == State::kClosed) return;
  receiver_.on_timer(now);
  sender_.on_timer(now);
  if (sender_.gave_up()) finish(End::kTimedOut);
  if (time_wait_until_ <= now) finish(End::kClosed);
}

void Connection::on_segment(TimePs now, const Segment& segment, DataSink& sink) {
  if (state_ == State::kClosed) return reset_answering(segment);
  if (state_ == State::kListen) return on_segment_in_listen(segment);
  if (state_ == State::kSynSent) return on_segment_in_syn_sent(now, segment);
  const int64_t sequence = peer_.sequence(segment.sequence, receiver_.next());
  if (is_acceptable(segment, sequence) && !is_old_by_timestamp(segment)) {
    on_acceptable(now, segment, static_cast<Sequence>(sequence), sink);
    return;
  }
  if (segment.has(kReset)) return;
  if (segment.payload_bytes > 0 && sequence > 0 && sequence < static_cast<int64_t>(receiver_.next())) {
    const auto begin = static_cast<Sequence>(sequence);
    receiver_.note_duplicate({begin, std::min(begin + segment.payload_bytes, receiver_.next())});
  }
  challenge(now, segment);
  if (state_ == State::kTimeWait && segment.has(kFin)) enter_time_wait(now);
}

// What makes no sense is acknowledged with what is known here. If that makes no sense to the peer, either,
// the two would answer each other for ever, so what carries no data is answered seldom (RFC 5961, section 7),
// but each SYN that a timeout sends again is.
void Connection::challenge(TimePs now, const Segment& segment) {
  if (segment.payload_bytes == 0 && !segment.has(kFin)) {
    if (now < next_challenge_ps_) return;
    next_challenge_ps_ = now + std::min(kChallengeInterval, config_.sender.timeout.initial_ps / 2);
  }
  receiver_.acknowledge_now();
}

void Connection::reset_answering(const Segment& segment) {
  if (const auto reset = reset_for(segment)) reset_ = *reset;
}

void Connection::on_segment_in_listen(const Segment& segment) {
  if (segment.has(kReset)) return;
  if (segment.has(kAck)) return reset_answering(segment);
  if (!segment.has(kSyn)) return;
  config_.destination_port = segment.source_port;
  adopt_options(segment);
  state_ = State::kSynReceived;
  sender_.open();
}

void Connection::on_segment_in_syn_sent(TimePs now, const Segment& segment) {
  const bool acknowledges_syn = segment.has(kAck) &&
                                own_.sequence(segment.acknowledgement, 0) == int64_t{kFirstByte} &&
                                sender_.next() > 0;
  if (segment.has(kAck) && !acknowledges_syn) return reset_answering(segment);
  if (segment.has(kReset)) {
    if (acknowledges_syn) finish(End::kRefused);
    return;
  }
  if (!segment.has(kSyn)) return;
  adopt_options(segment);
  if (acknowledges_syn) {
    on_acknowledgement(now, segment, 0);
    establish();
    receiver_.acknowledge_now();
  } else {
    state_ = State::kSynReceived;  // both have opened: SYN goes again, with the acknowledgement
    sender_.open();
  }
}

// What is used is what both have offered (RFC 7323, sections 2.2 and 3.2; RFC 2018, section 2; RFC 3168,
// section 6.1.1).
void Connection::adopt_options(const Segment& syn) {
  peer_ = SequenceMap(syn.sequence);
  const uint16_t offered = syn.options.maximum_segment_bytes.value_or(kDefaultSegmentBytes);
  timestamps_ = timestamps_ && syn.options.timestamps;
  sack_ = sack_ && syn.options.sack_permitted;
  window_scaling_ = window_scaling_ && syn.options.window_scale;
  if (window_scaling_) peer_window_scale_ = *syn.options.window_scale;
  const bool offers_ecn = syn.has(kEcnEcho) && syn.has(kWindowReduced) != syn.has(kAck);
  ecn_ = ecn_ && offers_ecn;
  if (timestamps_) recent_timestamp_ = syn.options.timestamps->value;
  segment_bytes_ = std::min(std::max(offered, kLeastSegmentBytes), config_.maximum_segment_bytes) -
                   (timestamps_ ? static_cast<uint32_t>(kTimestampsBytes) : 0);
}

void Connection::establish() {
  state_ = sender_.finished() ? State::kFinWait1 : State::kEstablished;
  sender_.establish(segment_bytes_, sack_, ecn_);
  EcnEcho echo = EcnEcho::kNone;
  if (ecn_) echo = exact_echo_ ? EcnEcho::kExact : EcnEcho::kPerWindow;
  receiver_.establish(segment_bytes_, window_scaling_ ? own_window_scale_ : 0, echo);
}

// RFC 9293, section 3.10.7.4, first check.
bool Connection::is_acceptable(const Segment& segment, int64_t sequence) const {
  const int64_t length =
      int64_t{segment.payload_bytes} + (segment.has(kSyn) ? 1 : 0) + (segment.has(kFin) ? 1 : 0);
  const int64_t next = static_cast<int64_t>(receiver_.next());
  const int64_t window_end = std::max(next, static_cast<int64_t>(receiver_.window_end()));
  if (sequence < 0) return false;
  if (length == 0) return sequence == next || (sequence > next && sequence < window_end);
  return sequence < window_end && sequence + length > next;
}

// PAWS (RFC 7323, section 5.3, R1).
bool Connection::is_old_by_timestamp(const Segment& segment) const {
  if (!timestamps_ || !segment.options.timestamps || segment.has(kReset)) return false;
  return static_cast<int32_t>(segment.options.timestamps->value - recent_timestamp_) < 0;
}

void Connection::on_acceptable(TimePs now, const Segment& segment, Sequence sequence, DataSink& sink) {
  // RFC 5961, sections 3.2 and 4.2: only an exact RST ends the connection; any other, and SYN, is challenged.
  if (segment.has(kReset)) {
    if (sequence == receiver_.next()) {
      finish(state_ == State::kSynReceived ? End::kRefused : End::kReset);
    } else {
      challenge(now, segment);
    }
    return;
  }
  if (segment.has(kSyn)) return challenge(now, segment);
  if (!segment.has(kAck)) return;
  if (timestamps_ && segment.options.timestamps && sequence <= last_acknowledgement_sent_) {
    recent_timestamp_ = segment.options.timestamps->value;
  }
  if (state_ == State::kSynReceived) {
    if (own_.sequence(segment.acknowledgement, 0) != int64_t{kFirstByte}) return reset_answering(segment);
    on_acknowledgement(now, segment, sequence);
    establish();
  } else if (!on_acknowledgement(now, segment, sequence)) {
    return;
  }
  follow_acknowledged_fin(now);
  if (state_ == State::kEstablished || state_ == State::kFinWait1 || state_ == State::kFinWait2) {
    take_data(now, segment, sequence, sink);
    follow_peer_fin(now);
  }
}

// False: it acknowledges what was never sent, so that the rest of the segment does not count (RFC 9293,
// section 3.10.7.4, fifth check).
bool Connection::on_acknowledgement(TimePs now, const Segment& segment, Sequence sequence) {
  const int64_t acknowledgement = own_.sequence(segment.acknowledgement, sender_.unacknowledged());
  if (acknowledgement > static_cast<int64_t>(sender_.most_acknowledged())) {
    challenge(now, segment);
    return false;
  }
  if (acknowledgement < static_cast<int64_t>(sender_.unacknowledged())) return true;
  ArrivedAcknowledgement arrived{
      .now = now,
      .acknowledgement = static_cast<Sequence>(acknowledgement),
      .window_end = std::nullopt,
      .with_data = segment.payload_bytes > 0 || segment.has(kSyn) || segment.has(kFin),
      .ecn_echo = ecn_ && segment.has(kEcnEcho) && !segment.has(kSyn),
      .sack_blocks = {},
      .timestamp_round_trip_ps = std::nullopt};
  // RFC 9293, section 3.10.7.4: SND.WL1 and SND.WL2 keep old segments from setting the window.
  if (sequence > window_update_sequence_ ||
      (sequence == window_update_sequence_ && arrived.acknowledgement >= window_update_acknowledgement_)) {
    const unsigned scale = segment.has(kSyn) ? 0 : peer_window_scale_;
    arrived.window_end = arrived.acknowledgement + (uint64_t{segment.window} << scale);
    window_update_sequence_ = sequence;
    window_update_acknowledgement_ = arrived.acknowledgement;
  }
  std::array<SequenceRange, kMostSackBlocks> ranges;
  size_t count = 0;
  for (uint32_t each = 0; sack_ && each < segment.options.sack_block_count; ++each) {
    const int64_t begin = own_.sequence(segment.options.sack_blocks[each].begin, sender_.unacknowledged());
    const int64_t end = own_.sequence(segment.options.sack_blocks[each].end, sender_.unacknowledged());
    if (begin > acknowledgement && end > begin)
      ranges[count++] = {static_cast<Sequence>(begin), static_cast<Sequence>(end)};
  }
  arrived.sack_blocks = std::span(ranges).first(count);
  arrived.duplicate_reported = sack_ && reports_duplicate(segment, arrived.acknowledgement);
  if (timestamps_ && segment.options.timestamps) {
    const auto ticks = static_cast<int32_t>(timestamp_value(now) - segment.options.timestamps->echo);
    // A peer may echo what was never sent.
    if (ticks >= 0 && ticks <= now / config_.timestamp_tick_ps)
      arrived.timestamp_round_trip_ps = std::max(1, ticks) * config_.timestamp_tick_ps;
  }
  sender_.on_acknowledgement(arrived);
  return true;
}

// RFC 2883, section 4: the first block is below the acknowledgement, or within the second.
bool Connection::reports_duplicate(const Segment& segment, Sequence acknowledgement) const {
  if (segment.options.sack_block_count == 0) return false;
  const auto number = [&](uint32_t wire) { return own_.sequence(wire, acknowledgement); };
  const SackBlock& first = segment.options.sack_blocks[0];
  if (number(first.begin) < 0 || number(first.begin) >= number(first.end)) return false;
  if (number(first.end) <= static_cast<int64_t>(acknowledgement)) return true;
  if (segment.options.sack_block_count < 2) return false;
  const SackBlock& second = segment.options.sack_blocks[1];
  return number(second.begin) <= number(first.begin) && number(first.end) <= number(second.end);
}

void Connection::take_data(TimePs now, const Segment& segment, Sequence sequence, DataSink& sink) {
  const Sequence whole_end = sequence + segment.payload_bytes;
  const Sequence end = std::min(whole_end, std::max(sequence, receiver_.window_end()));
  const bool fin = segment.has(kFin) && end == whole_end;
  if (end == sequence && !fin) return;
  fresh_.clear();
  receiver_.on_data({.now = now,
                     .begin = sequence,
                     .end = end,
                     .fin = fin,
                     .congestion_experienced = segment.ecn == Ecn::kCongestionExperienced,
                     .window_reduced = segment.has(kWindowReduced)},
                    fresh_);
  for (const SequenceRange& range : fresh_) {
    sink.on_bytes(range.begin - kFirstByte, static_cast<uint32_t>(range.begin - sequence),
                  static_cast<uint32_t>(range.end - range.begin));
  }
}

void Connection::follow_acknowledged_fin(TimePs now) {
  if (!sender_.finished() || !sender_.all_acknowledged()) return;
  if (state_ == State::kFinWait1) state_ = State::kFinWait2;
  if (state_ == State::kClosing) enter_time_wait(now);
  if (state_ == State::kLastAck) finish(End::kClosed);
}

void Connection::follow_peer_fin(TimePs now) {
  if (!receiver_.fin_received()) return;
  if (state_ == State::kEstablished) state_ = State::kCloseWait;
  if (state_ == State::kFinWait1) state_ = State::kClosing;
  if (state_ == State::kFinWait2) enter_time_wait(now);
}

void Connection::enter_time_wait(TimePs now) {
  state_ = State::kTimeWait;
  time_wait_until_ = now + config_.time_wait_ps;
}

}  // namespace weft::tcp
