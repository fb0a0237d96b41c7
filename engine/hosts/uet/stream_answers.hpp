// What ACKs and NACKs say of the packets of a PDC in one direction: how their receiver writes it, how their
// sender reads it. Requests go one way, the data of READs the other.
#pragma once

#include <cstdint>
#include <optional>

#include "hosts/arrival_window.hpp"
#include "hosts/sent_stream.hpp"
#include "memory/ring_buffer.hpp"
#include "packets/uet_frame.hpp"

namespace weft::uet {

// Of the 64 packets that an ACK of this one tells of, the first, counted from cack_psn.
int64_t sack_offset(const ArrivalWindow& arrivals, uint64_t sequence);
// Has an ACK of this packet say what has arrived. `ack_psn_offset` of an answer to a probe stays as it is.
void set_arrivals(Ack& ack, AckCc& cc, const ArrivalWindow& arrivals, const WidePsnMap& psns,
                  uint64_t sequence);
// What an ACK says of what has been sent; nothing if it is about what has not.
std::optional<SentStream::Arrivals> read_arrivals(const AckPacket& ack, const WidePsnMap& psns,
                                                  const SentStream& sent, uint8_t hop_limit);

// The oldest answer, or a later one that says the same and more. `Answer` has is_plain(), initiator_pdc and
// sequence.
template <class Answer>
Answer take_answer(RingBuffer<Answer>& answers, const ArrivalWindow& arrivals) {
  Answer taken = answers.pop();
  while (!answers.empty()) {
    const Answer& next = answers.front();
    const bool covers = taken.is_plain() && next.is_plain() && taken.initiator_pdc == next.initiator_pdc &&
                        sack_offset(arrivals, taken.sequence) == sack_offset(arrivals, next.sequence);
    if (!covers) break;
    taken = answers.pop();
  }
  return taken;
}

// Service rod: a gap causes one NACK, and another each time that the sender's packets begin again below the
// newest that was refused, because the one it went back to was lost, too.
class GapNotices {
 public:
  enum class Fate : uint8_t { kTake, kTell, kDrop };
  Fate meet(uint64_t sequence, uint64_t expected) {
    if (sequence == expected) {
      is_told_ = false;
      return Fate::kTake;
    }
    const bool begins_again = sequence <= newest_refused_;
    newest_refused_ = sequence;
    if (is_told_ && !begins_again) return Fate::kDrop;
    is_told_ = true;
    return Fate::kTell;
  }

 private:
  uint64_t newest_refused_ = 0;  // the newest packet behind the gap
  bool is_told_ = false;         // the sender has got a NACK for it
};

}  // namespace weft::uet
