// What a sender has sent and not seen acknowledged, and what of it is believed to be received, lost or under
// way. Source: RFC 6675, sections 3 and 4.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "tcp/segment.hpp"
#include "tcp/sequence.hpp"
#include "time/time.hpp"

namespace weft::tcp {

struct SequenceRange {
  Sequence begin = 0;
  Sequence end = 0;
};

struct SentSegment {
  Sequence begin = 0;
  Sequence end = 0;
  TimePs sent_ps = 0;         // when last sent
  uint64_t transmission = 0;  // the number of that transmission, counted over the connection
  bool sent_twice = false;    // so that an answer's round trip is ambiguous (Karn)
  bool sacked = false;
  bool lost = false;
  bool sent_again = false;  // in this recovery

  uint64_t size() const { return end - begin; }
};

// What an acknowledgement has shown to have arrived.
struct Delivered {
  TimePs now = 0;
  TimePs least_round_trip_ps = 0;    // that was ever seen
  uint64_t acknowledged = 0;         // sequence numbers that it newly covers
  uint64_t newly_sacked = 0;         // that its SACK blocks newly cover
  uint64_t newly_delivered = 0;      // that either newly covers
  bool reordered = false;            // a segment has arrived after one that was sent later
  uint64_t newest_transmission = 0;  // of what has arrived, the one sent last (RFC 8985, section 6.2, step 2)
  TimePs newest_transmission_ps = 0;  // when that was
  std::optional<TimePs> newest_sent;  // when the newest segment that was sent once had been sent
  bool sent_twice = false;            // some of it had been sent twice
};

class Scoreboard {
 public:
  static constexpr uint32_t kDuplicateThreshold = 3;  // RFC 6675, section 2: DupThresh

  explicit Scoreboard(uint32_t segment_bytes = 1) : segment_bytes_(segment_bytes) {}
  void set_segment_bytes(uint32_t bytes) { segment_bytes_ = bytes; }

  bool empty() const { return segments_.empty(); }
  // Sequence numbers from the first that is not acknowledged to the last sent.
  uint64_t flight() const { return segments_.empty() ? 0 : segments_.back().end - segments_.front().begin; }
  // RFC 6675, section 4, SetPipe(): what is believed to be under way.
  uint64_t pipe() const { return pipe_; }
  const SentSegment& first() const { return segments_.front(); }

  void add_sent(Sequence begin, Sequence end, TimePs now);
  void add_sent_again(SentSegment& segment, TimePs now);

  void acknowledge(Sequence up_to, Delivered& delivered);
  void sack(std::span<const SequenceRange> blocks, Delivered& delivered);
  // IsLost() of all segments.
  void find_lost();
  // Bytes that SACK blocks cover, and how many segments.
  uint64_t sacked_bytes() const { return sacked_bytes_; }
  uint32_t sacked_segments() const { return sacked_segments_; }
  // How many segments have been found lost so far.
  uint64_t losses_found() const { return losses_found_; }
  bool first_is_lost() const { return !segments_.empty() && segments_.front().lost; }
  void mark_first_lost();
  // After a timeout all that was sent before `sent_before_ps` and is not known to have arrived counts as
  // lost, and the first segment whenever it was sent (RFC 8985, section 6.3; kNever: RFC 6675, section 5.1).
  // That the first segment has arrived shows that the receiver has taken back what its SACK blocks said (RFC
  // 2018, section 8).
  void mark_lost_at_timeout(TimePs sent_before_ps);

  // Segments sent before one that has arrived, by more than the reordering time, are lost, those that were
  // sent again included (RFC 8985, section 6.2, step 5). Result: when the next one will be, kNever if none.
  TimePs find_lost_by_time(TimePs now, TimePs round_trip_ps, TimePs reordering_ps);

  // NextSeg(), rule 1: the first lost segment that was not sent again since.
  SentSegment* next_lost();
  // Rule 3: the first segment that is neither received nor lost, with received ones after it, sent again
  // once.
  SentSegment* next_uncertain(Sequence sent_again_below);
  // Rule 4: the last segment that is not received.
  SentSegment* last_missing();
  SentSegment* first_segment() { return segments_.empty() ? nullptr : &segments_.front(); }

 private:
  size_t index_of(Sequence sequence) const;  // of the first segment that begins there or behind
  void set_lost(SentSegment& segment);
  uint64_t in_pipe(const SentSegment& segment) const;
  void note_delivered(const SentSegment& segment, Delivered& delivered);
  void sack_block(SequenceRange block, Delivered& delivered);
  Sequence lost_below() const;

  uint32_t segment_bytes_;
  std::deque<SentSegment> segments_;
  uint64_t pipe_ = 0;
  uint64_t sacked_bytes_ = 0;
  uint32_t sacked_segments_ = 0;
  uint64_t losses_found_ = 0;
  Sequence delivered_end_ = 0;  // RACK.fack: no segment beyond it has arrived
  Sequence sacked_end_ = 0;     // no SACK block has reached further
  uint64_t transmissions_ = 0;
  uint64_t newest_delivered_ = 0;  // transmission of the newest segment that has arrived (RACK.xmit_ts)
  Sequence lost_below_ = 0;        // find_lost() has looked at segments before it
  Sequence no_lost_before_ = 0;    // no segment before it is lost and waiting
  std::array<SequenceRange, kMostSackBlocks> last_blocks_{};  // so that blocks that grow are not read again
};

}  // namespace weft::tcp
