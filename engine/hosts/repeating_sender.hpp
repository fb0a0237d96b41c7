// What senders have alike whose receivers acknowledge single packets: requests of MRC and of UET, and data of
// UET's READs. They repeat what is lost, refused, or not answered in time, and ask when they hear nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/recovery_times.hpp"
#include "hosts/send_gate.hpp"
#include "hosts/sent_stream.hpp"
#include "hosts/silence.hpp"
#include "paths/path_choice.hpp"
#include "time/time.hpp"

namespace weft {

class RepeatingSender {
 public:
  RepeatingSender(const RepeatingSender&) = delete;
  RepeatingSender& operator=(const RepeatingSender&) = delete;

  PulledPacket last_pulled() const { return last_pulled_; }
  void set_recovery_times(RecoveryTimes* times) { sent_.set_recovery_times(times); }
  void fetch() const { sent_.fetch(next_sequence_); }

 protected:
  // As SentStream's.
  RepeatingSender(const RcConfig& common, RcCounters& common_counters, SendGate& gate,
                  PathChoice* path_choice, LossObserver* observer = nullptr)
      : common_(common),
        common_counters_(common_counters),
        gate_(gate),
        sent_(common, gate, path_choice, observer) {}
  ~RepeatingSender() = default;

  // For an answer.
  bool is_waiting() const { return sent_.highest() != sent_.accepted(); }
  // Of a packet that an answer names, if it is out. Answers to others are counted.
  std::optional<uint64_t> sequence_out(int64_t sequence) {
    if (sequence >= static_cast<int64_t>(sent_.accepted()) &&
        sequence < static_cast<int64_t>(sent_.highest()))
      return static_cast<uint64_t>(sequence);
    ++common_counters_.stale_acknowledgements;
    return std::nullopt;
  }

  // Whether a packet may leave by the rate, and by `earliest_ps`; if not, pull() is to be called then.
  bool may_leave(TimePs now, TimePs earliest_ps = 0) {
    earliest_ps = std::max(earliest_ps, gate_.next_send_ps());
    if (now >= earliest_ps) return true;
    wait_until_ps_ = earliest_ps;
    return false;
  }
  // The packet leaves. Returns whether it had been sent before.
  bool record(TimePs now, uint64_t sequence, size_t frame_bytes, uint16_t entropy, bool asks) {
    if (asks) {
      if (!sent_.is_asked()) progress_ps_ = now;  // nobody was asked before
      sent_.ask(sequence);
    }
    if (!is_waiting()) progress_ps_ = now;
    newest_sent_ps_ = now;
    const bool retransmission = sent_.record(now, sequence, static_cast<uint16_t>(frame_bytes), entropy);
    if (sequence == next_sequence_) ++next_sequence_;
    return retransmission;
  }

  // Something new has been acknowledged.
  void note_progress(TimePs now) {
    next_sequence_ = std::max(next_sequence_, sent_.accepted());
    note_news(now);
    silence_.end();
  }
  // The peer is there.
  void note_news(TimePs now) {
    retries_ = 0;
    progress_ps_ = now;
  }
  // After an acknowledgement, which may have changed the rate.
  void follow_rate(TimePs now) {
    if (gate_.follow_rate() && wait_until_ps_ != kNever)
      wait_until_ps_ = gate_.next_send_ps() <= now ? kNever : gate_.next_send_ps();
  }
  void detect_losses(TimePs now) {
    if (const uint64_t lost_bytes = sent_.detect_losses(now); lost_bytes > 0) report_loss(now, lost_bytes);
  }
  // A packet was lost, but its path works: see SentStream::take_refused_for_lost(). Returns whether that is
  // news.
  bool lose_refused(TimePs now, uint64_t sequence, std::optional<uint16_t> entropy);

  uint32_t doublings() const {
    const uint32_t doubled = retries_ > common_.even_retries ? retries_ - common_.even_retries : 0;
    return std::min(doubled, common_.timeout_backoff_limit);
  }
  TimePs retransmission_timeout_ps() const {
    return std::max(common_.retransmission_timeout_ps, sent_.round_trips().timeout_ps()) << doublings();
  }
  TimePs timeout_deadline() const {
    if (!is_waiting()) return kNever;
    return (sent_.is_asked() ? progress_ps_ : std::max(progress_ps_, gate_.next_send_ps())) +
           retransmission_timeout_ps();
  }
  // A timeout. Returns whether to try again: the peer may have answered since the first of retry_limit
  // timeouts.
  bool may_retry() {
    ++common_counters_.timeouts;
    return retries_ != common_.retry_limit;
  }
  void note_retry(TimePs now) {
    ++retries_;
    progress_ps_ = now;
  }
  // The same; all that was sent before the timeout began is lost.
  void retry_overdue(TimePs now);

  // When a question is due, having heard nothing for so long, and not since `since_ps`; kNever while nothing
  // is out.
  TimePs silence_deadline(TimePs patience_ps, uint32_t doublings, TimePs since_ps = 0) const {
    if (!is_waiting()) return kNever;
    return silence_.deadline_ps(std::max({progress_ps_, newest_sent_ps_, since_ps}), patience_ps, doublings);
  }
  // 0 before the first round trip.
  TimePs silent_round_trips_ps() const { return Silence::kRoundTrips * sent_.round_trips().smoothed_ps(); }

  // Those of the rate and of the order of packets; and what happens then.
  TimePs sending_deadline() const { return std::min(wait_until_ps_, sent_.loss_deadline_ps()); }
  void end_wait(TimePs now) {
    if (now >= wait_until_ps_) wait_until_ps_ = kNever;  // the NIC pulls next
  }
  void report_loss(TimePs now, uint64_t lost_bytes) {
    gate_.congestion_control().on_lost_bytes(now, false, lost_bytes);
  }
  // Nothing is sent any more.
  void stop() {
    sent_.release();
    wait_until_ps_ = kNever;
    silence_.end();
  }

  const RcConfig& common_;
  RcCounters& common_counters_;
  SendGate& gate_;
  SentStream sent_;
  uint64_t next_sequence_ = 0;  // next packet to send for the first time, or again after going back
  TimePs progress_ps_ = 0;      // when the timeout started to count
  TimePs newest_sent_ps_ = 0;
  uint32_t retries_ = 0;  // timeouts since the peer answered last
  Silence silence_;
  TimePs wait_until_ps_ = kNever;  // what the last pull() was refused for, if for time alone
  PulledPacket last_pulled_;
};

}  // namespace weft
