// The receiving half of a connection: what has arrived, what is acknowledged and when. Pure state: time is
// passed in. Sources: RFC 9293, sections 3.8.6 and 3.10.7; RFC 5681, section 4.2; RFC 2018; RFC 3168,
// section 6.1.3; RFC 8257, section 3.2.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "observe/statistics.hpp"
#include "tcp/scoreboard.hpp"
#include "tcp/segment.hpp"
#include "tcp/sequence.hpp"

namespace weft::tcp {

#define WEFT_TCP_RECEIVER_COUNTERS(STATISTIC)                                              \
  STATISTIC(uint64_t, received_segments, "segments with data within the window")           \
  STATISTIC(uint64_t, received_bytes, "bytes of data that were new")                       \
  STATISTIC(uint64_t, duplicate_segments, "segments with data that held nothing new")      \
  STATISTIC(uint64_t, out_of_order_segments, "segments that arrived before others")        \
  STATISTIC(uint64_t, discarded_segments, "those of them not kept: one gap too many")      \
  STATISTIC(uint64_t, marked_segments, "segments with data that a switch had marked (CE)") \
  STATISTIC(uint64_t, marked_bytes, "bytes of data in them")                               \
  STATISTIC(uint64_t, sent_acknowledgements, "segments without data that acknowledged")

struct ReceiverCounters {
  WEFT_STATISTICS(ReceiverCounters, WEFT_TCP_RECEIVER_COUNTERS)
};

enum class EcnEcho { kNone, kPerWindow, kExact };

struct ReceiverConfig {
  uint64_t buffer_bytes = 4u << 20;
  TimePs delayed_acknowledgement_ps =
      40 * kPsPerSecond / 1000;             // as Linux; RFC 5681, section 4.2: below 500 ms
  uint32_t acknowledge_every_segments = 2;  // RFC 5681, section 4.2
};

struct ArrivedData {
  TimePs now = 0;
  Sequence begin = 0;
  Sequence end = 0;  // of the data, without FIN
  bool fin = false;
  bool congestion_experienced = false;
  bool window_reduced = false;  // CWR
};

class Receiver {
 public:
  explicit Receiver(const ReceiverConfig& config) : config_(config) {}

  void establish(uint32_t segment_bytes, uint8_t window_scale, EcnEcho echo);

  // Takes in the data, which overlaps the window. Adds what is new of it to `fresh`, in order.
  void on_data(const ArrivedData& arrived, std::vector<SequenceRange>& fresh);
  // A segment whose data had all arrived before its turn came.
  void note_duplicate(SequenceRange range) {
    ++counters_.duplicate_segments;
    duplicate_ = range;
  }
  // What has arrived twice since the last acknowledgement that had room to say so (RFC 2883, section 4).
  const std::optional<SequenceRange>& duplicate() const { return duplicate_; }
  void duplicate_was_reported() { duplicate_.reset(); }
  // The application has taken so many bytes.
  void consume(uint64_t bytes);

  Sequence next() const { return next_; }  // RCV.NXT
  Sequence window_end() const { return window_end_; }
  bool fin_received() const { return fin_ && next_ == *fin_ + 1; }
  // Bytes in order that the application has not taken.
  uint64_t readable_bytes() const { return data_next() - consumed_; }

  // Whether an acknowledgement is to leave now, without data if there is none.
  bool acknowledgement_due() const { return due_ || earlier_.has_value(); }
  bool acknowledges_earlier() const { return earlier_.has_value(); }
  void acknowledge_now() { due_ = true; }
  TimePs next_deadline() const { return delayed_until_; }
  void on_timer(TimePs now) {
    if (delayed_until_ > now) return;
    delayed_until_ = kNever;  // the acknowledgement may have to wait for room to be sent
    acknowledge_now();
  }
  // An acknowledgement is about to leave: its number. The echo's state before a change of marks goes first
  // (RFC 8257, section 3.2).
  struct Acknowledgement {
    Sequence number = 0;
    bool ecn_echo = false;
  };
  Acknowledgement take_acknowledgement(bool with_data);
  bool has_gaps() const { return !ranges_.empty(); }
  // The field of the header; the window never shrinks (RFC 9293, section 3.8.6).
  uint16_t window_field();
  // The newest first, at most four (RFC 2018, section 4).
  std::span<const SequenceRange> sack_ranges() const;

  const ReceiverCounters& counters() const { return counters_; }

 private:
  Sequence data_next() const { return next_ - (fin_received() ? 1 : 0); }
  bool has_room_for(SequenceRange range) const;
  void add_range(SequenceRange range, std::vector<SequenceRange>& fresh);
  void note_marks(const ArrivedData& arrived);
  void decide_acknowledgement(const ArrivedData& arrived, bool in_order, bool had_gaps);
  uint64_t free_bytes() const;

  ReceiverConfig config_;
  ReceiverCounters counters_;
  Sequence next_ = kFirstByte;
  Sequence consumed_ = kFirstByte;
  Sequence window_end_ = kFirstByte;
  std::optional<Sequence> fin_;        // FIN's number
  std::vector<SequenceRange> ranges_;  // received beyond next_, disjoint, the newest first
  std::vector<SequenceRange> covered_;
  std::optional<SequenceRange> duplicate_;
  uint32_t segment_bytes_ = 1;
  uint8_t window_scale_ = 0;
  EcnEcho echo_ = EcnEcho::kNone;
  bool echoes_ = false;  // ECE is set in what leaves
  bool due_ = false;
  uint64_t unacknowledged_bytes_ = 0;  // received since the last acknowledgement
  TimePs delayed_until_ = kNever;
  std::optional<Acknowledgement> earlier_;
};

}  // namespace weft::tcp
