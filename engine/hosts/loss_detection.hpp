// Which packets a sender with selective repeat takes for lost: those that a later transmission overtook by
// more than the reordering window. Judging by time of transmission, it sees the loss of a retransmission,
// too. The window widens when a packet that was taken for lost arrives after all. Source: RFC 8985 (RACK),
// section 6.2; with a reordering window of 0 it is IRN's rule (Mittal et al., "Revisiting Network Support for
// RDMA", SIGCOMM 2018, section 3.1).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "memory/ring_buffer.hpp"
#include "time/time.hpp"

namespace weft {

class LossDetector {
 public:
  // The window stays below `limit_ps`, unless it is longer from the start.
  LossDetector(TimePs reordering_window_ps, TimePs limit_ps)
      : least_window_ps_(reordering_window_ps),
        limit_ps_(std::max(limit_ps, reordering_window_ps)),
        reordering_window_ps_(reordering_window_ps) {}

  void on_sent(uint64_t sequence, TimePs sent_ps) { transmissions_.push({sequence, sent_ps}); }

  // The newest transmission of a packet was at sent_ps, and it has arrived. That of a packet sent more than
  // once proves nothing if the answer came sooner than any did before: it was for an earlier one.
  void on_delivered(TimePs now, TimePs sent_ps, bool retransmitted) {
    const TimePs round_trip_ps = now - sent_ps;
    if (retransmitted) {
      if (round_trip_ps < least_round_trip_ps_) return on_found(now);
      on_recovered(now);
    }
    if (!retransmitted) least_round_trip_ps_ = std::min(least_round_trip_ps_, round_trip_ps);
    if (sent_ps < newest_delivered_ps_) return;
    newest_delivered_ps_ = sent_ps;
    round_trip_ps_ = round_trip_ps;
  }

  // A packet that was taken for lost has arrived after all. Once a round trip, because the packets of one
  // round trip were judged by the same window (step 4 of the section).
  void on_found(TimePs now) {
    recoveries_left_ = kRecoveries;
    if (now < widened_ps_ + round_trip_ps_) return;
    widened_ps_ = now;
    reordering_window_ps_ = std::min(reordering_window_ps_ + least_window_ps_, limit_ps_);
  }

  // The next packet to be taken for lost, oldest transmission first. `is_out(sequence, sent_ps)` says
  // whether that transmission is its packet's newest and not answered.
  template <class IsOut>
  std::optional<uint64_t> next_lost(TimePs now, IsOut&& is_out) {
    deadline_ps_ = kNever;
    while (!transmissions_.empty()) {
      const Transmission oldest = transmissions_.front();
      if (!is_out(oldest.sequence, oldest.sent_ps)) {
        transmissions_.pop();
        continue;
      }
      if (oldest.sent_ps >= newest_delivered_ps_) return std::nullopt;
      const TimePs lost_ps = oldest.sent_ps + round_trip_ps_ + reordering_window_ps_;
      if (now < lost_ps) {
        deadline_ps_ = lost_ps;
        return std::nullopt;
      }
      transmissions_.pop();
      return oldest.sequence;
    }
    return std::nullopt;
  }

  // Nothing is sent or asked any more.
  void stop() {
    transmissions_ = {};
    deadline_ps_ = kNever;
  }

  // When next_lost() is to be asked again without any acknowledgement.
  TimePs deadline_ps() const { return deadline_ps_; }

 private:
  struct Transmission {
    uint64_t sequence = 0;
    TimePs sent_ps = 0;
  };

  static constexpr uint32_t kRecoveries = 16;

  // A retransmission has arrived that was needed. After so many round trips of this the paths may have become
  // alike again.
  void on_recovered(TimePs now) {
    if (recoveries_left_ == 0 || now < recovered_ps_ + round_trip_ps_) return;
    recovered_ps_ = now;
    if (--recoveries_left_ == 0) reordering_window_ps_ = least_window_ps_;
  }

  TimePs least_window_ps_;
  TimePs limit_ps_;
  TimePs reordering_window_ps_;
  TimePs widened_ps_ = 0;
  TimePs recovered_ps_ = 0;
  uint32_t recoveries_left_ = 0;
  TimePs newest_delivered_ps_ = -1;  // when the newest transmission that arrived was sent
  TimePs round_trip_ps_ = 0;         // its round trip
  TimePs least_round_trip_ps_ = kNever;
  TimePs deadline_ps_ = kNever;
  RingBuffer<Transmission> transmissions_;  // in order of time
};

}  // namespace weft
