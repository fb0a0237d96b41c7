// The sending half of a connection: what is sent, what is sent again, and when. Pure state: time is passed
// in. Sources: RFC 5681, RFC 6298, RFC 6582 (without SACK), RFC 6675 (with it), RFC 3042, RFC 6928, RFC 3168;
// section 3.8.6 of RFC 9293 for windows of the receiver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "observe/statistics.hpp"
#include "tcp/congestion/congestion_control.hpp"
#include "tcp/proportional_rate_reduction.hpp"
#include "tcp/reordering_window.hpp"
#include "tcp/retransmission_timeout.hpp"
#include "tcp/scoreboard.hpp"
#include "tcp/sequence.hpp"

namespace weft::tcp {

#define WEFT_TCP_SENDER_COUNTERS(STATISTIC)                                                                \
  STATISTIC(uint64_t, sent_segments, "segments with data, SYN or FIN, those sent again included")          \
  STATISTIC(uint64_t, sent_bytes, "bytes of data in them")                                                 \
  STATISTIC(uint64_t, retransmitted_segments, "segments sent again")                                       \
  STATISTIC(uint64_t, retransmitted_bytes, "bytes of data in them")                                        \
  STATISTIC(uint64_t, timeouts, "retransmission timeouts (RFC 6298, section 5)")                           \
  STATISTIC(uint64_t, fast_recoveries, "losses that acknowledgements showed (RFC 6582; RFC 6675)")         \
  STATISTIC(uint64_t, tail_probes, "segments sent because nothing was answered (RFC 8985, section 7)")     \
  STATISTIC(uint64_t, ecn_reductions, "reductions of the window because of ECE (RFC 3168, section 6.1.2)") \
  STATISTIC(uint64_t, received_acknowledgements, "segments that acknowledged, after the handshake")        \
  STATISTIC(uint64_t, received_ecn_echoes, "those of them with ECE")                                       \
  STATISTIC(uint64_t, duplicate_acknowledgements, "those that showed a segment missing")                   \
  STATISTIC(uint64_t, reported_duplicates, "those that said that something had arrived twice (RFC 2883)")  \
  STATISTIC(uint64_t, window_probes, "probes of a closed window (RFC 9293, section 3.8.6.1)")

struct SenderCounters {
  WEFT_STATISTICS(SenderCounters, WEFT_TCP_SENDER_COUNTERS)
};

struct SenderConfig {
  TimeoutLimits timeout;
  uint32_t initial_window_segments = 10;  // RFC 6928
  bool nagle = true;     // RFC 9293, section 3.7.4, as Linux: only behind another small segment
  bool rack_tlp = true;  // RFC 8985, with SACK
  TimePs most_acknowledgement_delay_ps =
      kPsPerSecond / 25;                  // that a probe of the tail waits for a single segment
  bool restart_after_idle = true;         // RFC 5681, section 4.1
  uint32_t most_retransmissions = 15;     // in a row, as Linux's tcp_retries2
  uint32_t most_syn_retransmissions = 6;  // as Linux's tcp_syn_retries
};

// A segment to send: sequence numbers [begin, end), of which the last is FIN's with `fin`, the first SYN's
// with `syn`.
struct Transmission {
  Sequence begin = 0;
  Sequence end = 0;
  bool syn = false;
  bool fin = false;
  bool again = false;
  bool probe = false;           // a byte beyond the receiver's window
  bool window_reduced = false;  // CWR
};

struct ArrivedAcknowledgement {
  TimePs now = 0;
  Sequence acknowledgement = 0;
  std::optional<Sequence> window_end;  // none: older than the one known
  bool with_data = false;              // or SYN or FIN, so that it is no duplicate
  bool ecn_echo = false;
  std::span<const SequenceRange> sack_blocks;
  bool duplicate_reported = false;  // D-SACK (RFC 2883, section 4)
  std::optional<TimePs> timestamp_round_trip_ps;
};

class Sender {
 public:
  Sender(const SenderConfig& config, std::unique_ptr<CongestionControl> congestion_control);

  // What is to be sent. SYN first.
  void open() { syn_wanted_ = true; }
  // The handshake is over; `window_end`: of the receiver.
  void establish(uint32_t segment_bytes, bool sack, bool ecn);
  void add_data(uint64_t bytes) { data_end_ += bytes; }
  void finish() { finished_ = true; }

  std::optional<Transmission> take(TimePs now);
  // Numbers up to which an acknowledgement makes sense (RFC 9293, section 3.10.7.4).
  Sequence most_acknowledged() const { return next_ + (probed_ ? 1 : 0); }
  void on_acknowledgement(const ArrivedAcknowledgement& arrived);
  TimePs next_deadline() const;
  void on_timer(TimePs now);
  // Nothing has answered for too long.
  bool gave_up() const { return gave_up_; }

  Sequence unacknowledged() const { return unacknowledged_; }  // SND.UNA
  Sequence next() const { return next_; }                      // SND.NXT
  Sequence data_end() const { return data_end_; }
  Sequence window_end() const { return window_end_; }
  bool finished() const { return finished_; }
  bool all_acknowledged() const { return unacknowledged_ == stream_end(); }
  uint64_t in_flight_bytes() const { return scoreboard_.flight(); }
  uint64_t pipe_bytes() const { return scoreboard_.pipe(); }
  // The congestion window, in recovery that of its rate reduction.
  uint64_t window_bytes() const { return reduces_rate() ? reduced_window_bytes_ : control_->window_bytes(); }
  bool in_recovery() const { return recovery_ != Recovery::kNone; }
  const CongestionControl& congestion_control() const { return *control_; }
  const RetransmissionTimeout& timeout() const { return timeout_; }
  const SenderCounters& counters() const { return counters_; }

 private:
  enum class Recovery { kNone, kFast, kTimeout };

  Sequence stream_end() const { return data_end_ + (finished_ ? 1 : 0); }

  // Sending (sender.cpp).
  std::optional<Transmission> take_syn(TimePs now);
  std::optional<Transmission> take_data(TimePs now);
  SentSegment* lost_segment();
  SentSegment* late_segment();
  std::optional<Transmission> take_new(TimePs now);
  std::optional<Transmission> take_probe(TimePs now);
  Transmission send_new(uint64_t payload_bytes, bool fin, TimePs now);
  Transmission send_again(SentSegment& segment, TimePs now);
  Transmission transmission(Sequence begin, Sequence end, bool again);
  bool held_back(uint64_t payload_bytes) const;
  bool fits(uint64_t bytes) const;
  uint64_t usable_window_bytes() const;
  uint64_t counted_in_flight() const;
  void restart_if_idle(TimePs now);
  void arm(TimePs now);
  void on_retransmission_timeout(TimePs now);

  // Losses by time (sender_rack.cpp).
  bool uses_rack() const { return sack_ && config_.rack_tlp; }
  bool reduces_rate() const { return recovery_ == Recovery::kFast && sack_; }
  void settle_tail_probe(const ArrivedAcknowledgement& arrived);
  void find_lost_by_time(TimePs now);
  TimePs reordering_time_ps() const;
  TimePs lost_if_sent_before(TimePs now) const;
  void arm_tail_probe(TimePs now);
  std::optional<Transmission> take_tail_probe(TimePs now);

  // Acknowledgements (sender_recovery.cpp).
  void note_round_trip(const ArrivedAcknowledgement& arrived, const Delivered& delivered);
  bool is_duplicate(const ArrivedAcknowledgement& arrived, const Delivered& delivered) const;
  void react(const ArrivedAcknowledgement& arrived, const Delivered& delivered);
  void react_to_marks_or_grow(const ArrivedAcknowledgement& arrived, const Delivered& delivered);
  void continue_fast_recovery(const Delivered& delivered, bool duplicate);
  bool shows_loss();
  void enter_fast_recovery(TimePs now, const Delivered& delivered);
  void leave_recovery();
  void reduce(TimePs now, CongestionSign sign, uint64_t flight_bytes);
  void update_rate_reduction(const Delivered& delivered);

  SenderConfig config_;
  std::unique_ptr<CongestionControl> control_;
  RetransmissionTimeout timeout_;
  Scoreboard scoreboard_;
  ReorderingWindow reordering_window_;
  ProportionalRateReduction rate_reduction_;
  SenderCounters counters_;

  Sequence unacknowledged_ = 0;
  Sequence next_ = 0;
  Sequence data_end_ = kFirstByte;
  Sequence window_end_ = 0;
  uint64_t largest_window_bytes_ = 0;  // that the receiver has offered
  uint32_t segment_bytes_ = 1;
  bool finished_ = false;
  bool established_ = false;
  bool sack_ = false;
  bool ecn_ = false;
  bool syn_wanted_ = false;
  bool syn_lost_ = false;
  bool gave_up_ = false;

  Recovery recovery_ = Recovery::kNone;
  Sequence recovery_end_ = 0;        // RecoveryPoint
  Sequence reduced_end_ = 0;         // no further reduction before all up to it is acknowledged
  Sequence window_limited_end_ = 0;  // the window held the sender back as it had sent so far
  Sequence sent_again_end_ = 0;      // HighRxt
  Sequence small_segment_end_ = 0;
  std::optional<Sequence> rescued_;  // RescueRxt
  uint32_t duplicates_ = 0;
  int64_t inflation_bytes_ = 0;        // of the window in NewReno's recovery (RFC 6582, section 3.2)
  uint64_t reduced_window_bytes_ = 0;  // of rate_reduction_
  uint64_t losses_seen_ = 0;           // of the scoreboard's, by rate_reduction_
  bool first_wanted_ = false;          // to be sent again whatever the window
  bool window_reduced_due_ = false;

  TimePs retransmission_at_ = kNever;
  TimePs reordering_at_ = kNever;  // a segment counts as lost then
  TimePs tail_probe_at_ = kNever;
  bool tail_probe_wanted_ = false;
  Sequence tail_probed_end_ = 0;     // no further probe of the tail before all up to it is acknowledged
  bool tail_probe_repeats_ = false;  // the probe under way was sent again, and may have repaired a loss
  TimePs least_round_trip_ps_ = kNever;
  TimePs newest_round_trip_ps_ = 0;  // RACK.rtt
  TimePs probe_at_ = kNever;
  TimePs last_sent_ps_ = 0;
  uint32_t attempts_ = 0;  // timeouts or probes in a row without an answer
  uint32_t probes_ = 0;    // since the window closed
  bool probe_wanted_ = false;
  bool probed_ = false;
  bool closed_window_ = false;
};

}  // namespace weft::tcp
