// Packets that a queue pair sends in one sequence, its requests or its READ responses: which are out, which
// have arrived, and what congestion control and path choice learn of that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "hosts/loss_detection.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/recovery_times.hpp"
#include "hosts/round_trip_estimator.hpp"
#include "hosts/send_gate.hpp"
#include "hosts/sent_packets.hpp"
#include "memory/ring_buffer.hpp"
#include "packets/roce_codec.hpp"
#include "paths/path_choice.hpp"

namespace weft {

// Congestion control counts all packets of a queue pair in one sequence, in the order in which they are sent
// first. While a queue pair has one stream, the two sequences are the same.
class PacketNumbers {
 public:
  void note(uint64_t sequence, uint64_t number) {
    const uint64_t shift = number - sequence;
    if (shift != newest_shift_) {
      shifts_.push({sequence, shift});
      newest_shift_ = shift;
    }
  }
  // Of a packet that is not older than one asked for before.
  uint64_t number(uint64_t sequence) {
    while (!shifts_.empty() && shifts_.front().from <= sequence) shift_ = shifts_.pop().shift;
    return sequence + shift_;
  }

 private:
  struct Shift {
    uint64_t from = 0;
    uint64_t shift = 0;
  };
  uint64_t shift_ = 0;
  uint64_t newest_shift_ = 0;
  RingBuffer<Shift> shifts_;
};

// What a transport learns of single packets that has paths of its own.
struct LossObserver {
  virtual ~LossObserver() = default;
  // It is taken for lost.
  virtual void on_lost(TimePs now, const SentPacket& packet) = 0;
  // It was taken for lost, has not been sent again, and has arrived after all.
  virtual void on_found(TimePs now, const SentPacket& packet) = 0;
};

class SentStream {
 public:
  // `path_choice` may be null: one path. So may `observer`; it learns of what selective acknowledgements say.
  SentStream(const RcConfig& config, SendGate& gate, PathChoice* path_choice,
             LossObserver* observer = nullptr);

  uint64_t accepted() const { return accepted_; }
  uint64_t highest() const { return highest_; }
  uint64_t asked_end() const { return asked_end_; }
  bool is_asked() const { return asked_end_ > accepted_; }
  uint64_t in_flight_bytes() const { return in_flight_bytes_; }
  // Of a packet of [accepted, highest).
  const SentPacket& packet(uint64_t sequence) { return sent_[sequence]; }
  const RoundTripEstimator& round_trips() const { return round_trips_; }

  // Whether the next packet should ask for an acknowledgement; `frame_bytes` with it are then in flight.
  bool should_ask(uint64_t sequence, uint64_t in_flight_after, uint64_t largest_frame_bytes) const;
  void ask(uint64_t sequence) { asked_end_ = std::max(asked_end_, sequence + 1); }
  // The packet is on its way, or will be so much later, behind others of its segment. Returns whether it had
  // been sent before.
  bool record(TimePs now, uint64_t sequence, uint16_t frame_bytes, uint16_t entropy, TimePs later_ps = 0);
  // Everything before `end` has arrived, and `answered`, which caused this acknowledgement. Returns whether
  // anything of that is new.
  bool acknowledge(TimePs now, uint64_t end, std::optional<uint64_t> answered,
                   const roce::ParsedPacket& packet);
  // What a selective acknowledgement says: everything before `end` has arrived, bit i of the bitmap says so
  // of the packet `first` + i, and `answered` caused it, which was marked or not.
  struct Arrivals {
    uint64_t end = 0;
    uint64_t first = 0;
    uint64_t bitmap = 0;
    std::optional<uint64_t> answered{};
    bool marked = false;
    uint8_t hop_limit = 0;
    bool misses_end = false;  // `end` itself has not
    TimePs service_ps = 0;    // from the arrival of `answered` to its answer, at the peer
  };
  bool acknowledge(TimePs now, const Arrivals& arrivals);
  // The same from the fields of a packet: everything up to `base` has arrived, the bitmap begins
  // `bitmap_offset` after it, and so far after it is the packet that is answered. Without what is known
  // before, or has not been sent; nothing if `base` has not.
  std::optional<Arrivals> arrivals_at(int64_t base, int64_t bitmap_offset, uint64_t bitmap,
                                      std::optional<int64_t> answered_offset) const;
  // What was sent then has arrived, though it was none of these packets.
  void on_probe_answer(TimePs now, TimePs sent_ps) { losses_.on_delivered(now, sent_ps, false); }
  // The peer has got the packet without its payload, or had no room for it: it is lost, by no fault of its
  // path. `entropy` is that of the transmission that the peer means, if it is known. Returns whether that
  // was the newest one and is news.
  bool take_refused_for_lost(uint64_t sequence, std::optional<uint16_t> entropy);
  // Selective repeat: takes for lost what packets sent later have overtaken. Returns its frame bytes.
  uint64_t detect_losses(TimePs now);
  // When detect_losses() is to be called again without any acknowledgement; kNever: not at all.
  TimePs loss_deadline_ps() const { return selective_repeat_ ? losses_.deadline_ps() : kNever; }
  // Selective repeat: takes for lost the oldest packet of [from, end), and all others of them that were sent
  // at `overdue_ps` or before. Returns their frame bytes.
  uint64_t take_overdue_for_lost(TimePs now, uint64_t from, uint64_t end, TimePs overdue_ps);
  // Selective repeat: the next packet to be sent again.
  std::optional<uint64_t> next_lost();
  bool has_lost() const { return !lost_.empty(); }
  // At most so many packets are to be sent again: some may have arrived after all.
  size_t lost_packets() const { return lost_.size(); }
  // All that was sent of [from, end) is lost.
  void go_back(TimePs now, uint64_t from, uint64_t end);
  // Selective repeat: nothing of what is out arrives any more. All that has not arrived is to be sent again,
  // the oldest first, by no fault of a path.
  void lose_all();
  // What of [accepted, end) was sent at `overdue_ps` or before is in flight no more.
  void release_overdue(uint64_t end, TimePs overdue_ps);
  // Nothing is in flight any more.
  void release();

  // A packet was sent again whose earlier transmission has arrived.
  void note_needless_retransmission(TimePs now) { losses_.on_found(now); }

  void set_recovery_times(RecoveryTimes* times) { recovery_times_ = times; }
  void fetch(uint64_t next) const {
    sent_.fetch(accepted_);
    sent_.fetch(next);
  }

 private:
  struct Settled {
    uint64_t bytes = 0;
    uint64_t packets = 0;
  };
  // The one way in which acknowledgements take effect. `news` has what else than packets up to `end` and
  // `answered` has arrived, and what the acknowledgement says of the way.
  template <class News>
  bool take_arrived(TimePs now, uint64_t end, std::optional<uint64_t> answered, const News& news);
  void settle(TimePs now, SentPacket& packet, bool marked, Settled& settled);
  void note_missing(const Arrivals& arrivals);
  void take_for_lost(TimePs now, uint64_t sequence);
  void take_from_flight(uint64_t sequence);

  const RcConfig& config_;
  SendGate& gate_;
  PathChoice* path_choice_;
  bool selective_repeat_;
  uint64_t accepted_ = 0;         // oldest packet that is not known to have arrived
  uint64_t highest_ = 0;          // one past the newest packet ever sent
  uint64_t asked_end_ = 0;        // one past the newest packet that asks for an acknowledgement
  uint64_t in_flight_bytes_ = 0;  // this stream's part of the gate's
  SentPackets sent_;              // [accepted, highest)
  PacketNumbers numbers_;
  RoundTripEstimator round_trips_;
  LossDetector losses_;        // this and the next: selective repeat only
  RingBuffer<uint64_t> lost_;  // to be sent again
  RecoveryTimes* recovery_times_ = nullptr;
  LossObserver* observer_;  // null: nobody
};

}  // namespace weft
