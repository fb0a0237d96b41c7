#include "tcp/scoreboard.hpp"

#include <algorithm>

namespace weft::tcp {

uint64_t Scoreboard::in_pipe(const SentSegment& segment) const {
  if (segment.sacked) return 0;
  return (segment.lost ? 0 : segment.size()) + (segment.sent_again ? segment.size() : 0);
}

size_t Scoreboard::index_of(Sequence sequence) const {
  const auto found = std::ranges::lower_bound(segments_, sequence, {}, &SentSegment::begin);
  return static_cast<size_t>(found - segments_.begin());
}

void Scoreboard::add_sent(Sequence begin, Sequence end, TimePs now) {
  segments_.push_back({.begin = begin, .end = end, .sent_ps = now, .transmission = ++transmissions_});
  pipe_ += end - begin;
}

void Scoreboard::add_sent_again(SentSegment& segment, TimePs now) {
  pipe_ -= in_pipe(segment);
  segment.sent_ps = now;
  segment.transmission = ++transmissions_;
  segment.sent_twice = true;
  segment.sent_again = true;
  pipe_ += in_pipe(segment);
}

void Scoreboard::note_delivered(const SentSegment& segment, Delivered& delivered) {
  if (segment.sacked) return;
  delivered.newly_delivered += segment.size();
  // RFC 8985, section 6.2, step 3.
  if (!segment.sent_twice && segment.end < delivered_end_) delivered.reordered = true;
  // An answer may be to the first of two transmissions: one that comes too soon says nothing of the second
  // (RFC 8985, section 6.2, step 2).
  const bool counts = !segment.sent_twice || delivered.now - segment.sent_ps >= delivered.least_round_trip_ps;
  if (counts && segment.transmission > delivered.newest_transmission) {
    delivered.newest_transmission = segment.transmission;
    delivered.newest_transmission_ps = segment.sent_ps;
    newest_delivered_ = std::max(newest_delivered_, segment.transmission);
  }
  if (segment.sent_twice) {
    delivered.sent_twice = true;
  } else {
    delivered.newest_sent = std::max(delivered.newest_sent.value_or(segment.sent_ps), segment.sent_ps);
  }
}

void Scoreboard::acknowledge(Sequence up_to, Delivered& delivered) {
  while (!segments_.empty() && segments_.front().begin < up_to) {
    SentSegment& first = segments_.front();
    const Sequence covered_end = std::min(first.end, up_to);
    delivered.acknowledged += covered_end - first.begin;
    pipe_ -= in_pipe(first);
    if (first.sacked) sacked_bytes_ -= covered_end - first.begin;
    if (covered_end < first.end) {
      if (!first.sacked) delivered.newly_delivered += covered_end - first.begin;
      first.begin = covered_end;
      pipe_ += in_pipe(first);
      return;
    }
    note_delivered(first, delivered);
    if (first.sacked) --sacked_segments_;
    segments_.pop_front();
  }
  delivered_end_ = std::max(delivered_end_, up_to);
}

void Scoreboard::sack(std::span<const SequenceRange> blocks, Delivered& delivered) {
  for (const SequenceRange& block : blocks) sack_block(block, delivered);
  delivered_end_ = std::max(delivered_end_, sacked_end_);
  last_blocks_.fill({});
  std::ranges::copy(blocks.first(std::min<size_t>(blocks.size(), kMostSackBlocks)), last_blocks_.begin());
}

void Scoreboard::sack_block(SequenceRange block, Delivered& delivered) {
  if (segments_.empty() || block.end > segments_.back().end || block.begin >= block.end) return;
  Sequence from = block.begin;
  for (const SequenceRange& last : last_blocks_) {
    if (last.begin == block.begin && last.end <= block.end) from = std::max(from, last.end);
  }
  size_t first = index_of(from);
  while (first > 0 && segments_[first - 1].begin >= block.begin && !segments_[first - 1].sacked) --first;
  for (size_t each = first; each < segments_.size() && segments_[each].end <= block.end; ++each) {
    SentSegment& segment = segments_[each];
    if (segment.sacked) continue;
    pipe_ -= in_pipe(segment);
    note_delivered(segment, delivered);
    segment.sacked = true;
    delivered.newly_sacked += segment.size();
    sacked_bytes_ += segment.size();
    ++sacked_segments_;
    sacked_end_ = std::max(sacked_end_, segment.end);
  }
}

// The sequence number below which a segment that was not received is lost: kDuplicateThreshold runs of
// received segments, or more bytes than kDuplicateThreshold - 1 segments have, are above it.
Sequence Scoreboard::lost_below() const {
  uint64_t bytes = 0;
  uint32_t runs = 0;
  bool in_run = false;
  for (size_t each = index_of(sacked_end_); each-- > 0;) {
    const SentSegment& segment = segments_[each];
    if (!segment.sacked) {
      in_run = false;
      if (segment.begin < lost_below_) return lost_below_;
      continue;
    }
    bytes += segment.size();
    if (!in_run) ++runs;
    in_run = true;
    if (bytes > uint64_t{kDuplicateThreshold - 1} * segment_bytes_ || runs >= kDuplicateThreshold)
      return std::max(segment.begin, lost_below_);
  }
  return lost_below_;
}

void Scoreboard::find_lost() {
  const Sequence below = lost_below();
  for (size_t each = index_of(lost_below_); each < segments_.size() && segments_[each].begin < below;
       ++each) {
    if (!segments_[each].sacked) set_lost(segments_[each]);
  }
  lost_below_ = below;
}

void Scoreboard::set_lost(SentSegment& segment) {
  if (segment.lost) return;
  ++losses_found_;
  pipe_ -= in_pipe(segment);
  segment.lost = true;
  pipe_ += in_pipe(segment);
  no_lost_before_ = std::min(no_lost_before_, segment.begin);
}

void Scoreboard::mark_first_lost() {
  if (!segments_.empty() && !segments_.front().sacked) set_lost(segments_.front());
}

void Scoreboard::mark_lost_at_timeout(TimePs sent_before_ps) {
  const bool taken_back = !segments_.empty() && segments_.front().sacked;
  pipe_ = 0;
  for (SentSegment& segment : segments_) {
    if (taken_back) segment.sacked = false;
    if (segment.sacked) continue;
    if (&segment == &segments_.front() || segment.sent_ps < sent_before_ps) {
      segment.lost = true;
      segment.sent_again = false;
    }
    pipe_ += in_pipe(segment);
  }
  no_lost_before_ = 0;
  if (!taken_back) return;
  sacked_end_ = lost_below_ = 0;
  sacked_bytes_ = sacked_segments_ = 0;
  last_blocks_.fill({});
}

TimePs Scoreboard::find_lost_by_time(TimePs now, TimePs round_trip_ps, TimePs reordering_ps) {
  TimePs next = kNever;
  for (SentSegment& segment : segments_) {
    // Those never sent again follow each other in time.
    // RACK_sent_after() (section 6.2, step 2): within a burst that left at one moment, too, it is known which
    // transmission was the later one.
    const bool earlier = segment.transmission < newest_delivered_;
    if (!earlier && !segment.sent_twice) break;
    const bool under_way = !segment.sacked && (!segment.lost || segment.sent_again);
    if (!under_way || !earlier) continue;
    const TimePs due = segment.sent_ps + round_trip_ps + reordering_ps;
    if (due > now) {
      next = std::min(next, due);
      continue;
    }
    ++losses_found_;
    pipe_ -= in_pipe(segment);
    segment.lost = true;
    segment.sent_again = false;
    no_lost_before_ = std::min(no_lost_before_, segment.begin);
  }
  return next;
}

SentSegment* Scoreboard::next_lost() {
  for (size_t each = index_of(no_lost_before_); each < segments_.size(); ++each) {
    SentSegment& segment = segments_[each];
    if (segment.lost && !segment.sent_again && !segment.sacked) {
      no_lost_before_ = segment.begin;
      return &segment;
    }
  }
  no_lost_before_ = segments_.empty() ? 0 : segments_.back().end;
  return nullptr;
}

SentSegment* Scoreboard::next_uncertain(Sequence sent_again_below) {
  for (size_t each = index_of(sent_again_below); each < segments_.size(); ++each) {
    SentSegment& segment = segments_[each];
    if (segment.begin >= sacked_end_) return nullptr;
    if (!segment.sacked && !segment.lost) return &segment;
  }
  return nullptr;
}

SentSegment* Scoreboard::last_missing() {
  for (size_t each = segments_.size(); each-- > 0;) {
    if (!segments_[each].sacked) return &segments_[each];
  }
  return nullptr;
}

}  // namespace weft::tcp
