// What senders of UET have alike whose packets are answered: requests over PDCs, requests of RUDI, data of
// READs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "hosts/repeating_sender.hpp"
#include "hosts/uet/uet_config.hpp"
#include "hosts/uet/uet_counters.hpp"
#include "packets/packet.hpp"
#include "packets/uet_frame.hpp"
#include "paths/path_choice.hpp"

namespace weft::uet {

class Sender : public RepeatingSender {
 protected:
  // `path_choice` may be null: one path.
  Sender(const RcConfig& common, const UetConfig& config, RcCounters& common_counters, UetCounters& counters,
         PacketPool& pool, SendGate& gate, PathChoice* path_choice);
  ~Sender() = default;

  // What else goes back with next_sequence_.
  virtual void on_restart() {}

  // Whether anything of that is new.
  bool acknowledge(TimePs now, const SentStream::Arrivals& arrivals) {
    const bool is_timed = arrivals.answered && !sent_.packet(*arrivals.answered).retransmitted;
    if (!sent_.acknowledge(now, arrivals)) return false;
    if (is_timed) repetitions_ = 0;
    note_progress(now);
    return true;
  }
  // A switch has cut off the packet's payload.
  void note_trimming(TimePs now, uint8_t nack_code, uint16_t entropy);
  // The receiver does not have the packet, for no fault of its path.
  void lose(TimePs now, uint64_t sequence, uint16_t entropy) {
    if (is_ordered_)
      go_back(now);
    else
      lose_refused(now, sequence, entropy);
  }
  // Service rod: what follows a gap is not accepted, so all of it is sent again.
  void go_back(TimePs now);
  void restart(TimePs now);
  // Returns whether to try again; see may_retry().
  bool take_timeout(TimePs now);

  // Where no probe can be sent, the oldest packet is sent again in its place: it is answered, too. Its answer
  // does not tell the round trip, so until another one does, each repetition waits twice as long as the one
  // before: a round trip that has grown would otherwise never be seen.
  TimePs repetition_deadline(TimePs since_ps = 0) const {
    const uint32_t doublings = std::min(retries_ + repetitions_, common_.timeout_backoff_limit);
    return silence_deadline(patience_ps(), doublings, since_ps);
  }
  // Returns the packet, which takes no room in the window: nothing is heard of what does. It does not reset
  // the timeout.
  uint64_t repeat_oldest(TimePs now);
  // Before the first round trip it may last a quarter of the timeout. Assumed: docs/uet.md.
  TimePs patience_ps() const {
    const TimePs known_ps = silent_round_trips_ps();
    return known_ps > 0 ? known_ps : common_.retransmission_timeout_ps / 4;
  }

  const UetConfig& config_;
  UetCounters& counters_;
  PacketPool& pool_;
  PathChoice* path_choice_;
  const bool is_ordered_;
  roce::RoceHeaders headers_;

 private:
  // What going back takes off a window: the other packets may have arrived.
  uint64_t oldest_frame_bytes() { return is_waiting() ? sent_.packet(sent_.accepted()).frame_bytes : 0; }

  uint32_t repetitions_ = 0;  // in place of probes, since a round trip was measured
};

}  // namespace weft::uet
