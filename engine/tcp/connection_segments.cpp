// The segments that a connection sends.
#include <algorithm>
#include <utility>

#include "tcp/connection.hpp"
#include "tcp/segment_format.hpp"

namespace weft::tcp {

std::optional<Segment> Connection::take_segment(TimePs now) {
  if (reset_) return std::exchange(reset_, std::nullopt);
  if (state_ == State::kClosed || state_ == State::kListen) return std::nullopt;
  return next_segment(now);
}

// What acknowledges gaps or an earlier state of marks leaves without data, ahead of it.
std::optional<Segment> Connection::next_segment(TimePs now) {
  const bool alone =
      receiver_.has_gaps() || receiver_.acknowledges_earlier() || (sack_ && receiver_.duplicate());
  if (established() && receiver_.acknowledgement_due() && alone) return acknowledgement_segment(now);
  if (const auto transmission = sender_.take(now)) return data_segment(now, *transmission);
  if (state_ != State::kSynSent && receiver_.acknowledgement_due()) return acknowledgement_segment(now);
  return std::nullopt;
}

Segment Connection::segment_with(TimePs now, uint8_t flags) {
  Segment segment{.source_port = config_.source_port,
                  .destination_port = config_.destination_port,
                  .sequence = own_.wire(sender_.next()),
                  .flags = flags};
  if (timestamps_) {
    segment.options.timestamps =
        Timestamps{timestamp_value(now), state_ == State::kSynSent ? 0 : recent_timestamp_};
  }
  return segment;
}

Segment Connection::data_segment(TimePs now, const Transmission& transmission) {
  Segment segment = segment_with(now, 0);
  segment.sequence = own_.wire(transmission.begin);
  segment.payload_bytes = static_cast<uint32_t>(transmission.end - transmission.begin) -
                          (transmission.syn ? 1 : 0) - (transmission.fin ? 1 : 0);
  segment.payload_offset = offset_of(transmission.begin);
  if (transmission.syn) {
    syn_again_ = syn_again_ || (transmission.again && state_ == State::kSynSent);
    segment.flags |= kSyn;
    add_syn_options(segment);
  } else {
    segment.flags |= kAck;
  }
  if (transmission.fin) segment.flags |= kFin;
  if (segment.payload_bytes > 0 && transmission.end >= sender_.data_end()) segment.flags |= kPush;
  // RFC 3168, sections 6.1.5 and 6.1.6: neither what is sent again nor probes of the window may be marked.
  if (ecn_ && segment.payload_bytes > 0 && !transmission.again && !transmission.probe)
    segment.ecn = Ecn::kCapable0;
  if (transmission.window_reduced) segment.flags |= kWindowReduced;
  if (state_ == State::kSynSent) {
    segment.window = receiver_.window_field();
  } else {
    segment.flags |= kAck;
    add_acknowledgement(segment, true);
  }
  return segment;
}

// ECN is asked for by both flags and granted by one (RFC 3168, section 6.1.1). A SYN that was lost may have
// been lost because of them (section 6.1.1.1).
void Connection::add_syn_options(Segment& segment) const {
  segment.options.maximum_segment_bytes = config_.maximum_segment_bytes;
  segment.options.sack_permitted = sack_;
  if (window_scaling_) segment.options.window_scale = own_window_scale_;
  if (!ecn_) return;
  if (state_ != State::kSynSent) {
    segment.flags |= kEcnEcho;
  } else if (!syn_again_) {
    segment.flags |= kEcnEcho | kWindowReduced;
  }
}

Segment Connection::acknowledgement_segment(TimePs now) {
  Segment segment = segment_with(now, kAck);
  add_acknowledgement(segment, false);
  return segment;
}

void Connection::add_acknowledgement(Segment& segment, bool with_data) {
  const Receiver::Acknowledgement acknowledgement = receiver_.take_acknowledgement(with_data);
  segment.window = receiver_.window_field();
  segment.acknowledgement = peer_.wire(acknowledgement.number);
  last_acknowledgement_sent_ = std::max(last_acknowledgement_sent_, acknowledgement.number);
  if (acknowledgement.ecn_echo) segment.flags |= kEcnEcho;
  if (sack_) add_sack_blocks(segment);
}

// What has arrived twice goes first, once (RFC 2883, section 4).
void Connection::add_sack_blocks(Segment& segment) {
  if (receiver_.duplicate() && add_sack_block(segment, *receiver_.duplicate()))
    receiver_.duplicate_was_reported();
  for (const SequenceRange& range : receiver_.sack_ranges())
    if (!add_sack_block(segment, range)) return;
}

// Beside data only as many as the segment has room for.
bool Connection::add_sack_block(Segment& segment, SequenceRange range) const {
  if (segment.options.sack_block_count == kMostSackBlocks) return false;
  Options with_one_more = segment.options;
  with_one_more.sack_blocks[with_one_more.sack_block_count++] = {peer_.wire(range.begin),
                                                                 peer_.wire(range.end)};
  const size_t bytes = options_bytes(with_one_more);
  if (bytes == options_bytes(segment.options)) return false;
  if (segment.payload_bytes > 0 && segment.payload_bytes + bytes > config_.maximum_segment_bytes)
    return false;
  segment.options = with_one_more;
  return true;
}

uint32_t Connection::timestamp_value(TimePs now) const {
  return static_cast<uint32_t>(now / config_.timestamp_tick_ps) + config_.initial_sequence;
}

}  // namespace weft::tcp
