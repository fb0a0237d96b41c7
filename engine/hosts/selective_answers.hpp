// Which packets a receiver has still to answer, where each answer names the packet that caused it: those
// behind a gap one by one, those in order together.
//
// An answer reports whether the packets that it newly covers were marked (CE), so marked packets and others
// need one each: what came before a change is answered on its own, as DCTCP's receivers do (RFC 8257, section
// 3.2).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "memory/ring_buffer.hpp"

namespace weft {

// Packets that are answered together: one, or those in order that came since the answer before; and whether
// a switch had marked them.
struct Marked {
  uint64_t first = 0;
  uint64_t last = 0;
  bool marked = false;
};

class SelectiveAnswers {
 public:
  struct Answer {
    uint64_t answered = 0;  // the packet
    uint64_t end = 0;       // one past the last packet in order that it covers
    bool marked = false;
  };

  bool empty() const { return answers_.empty(); }

  // The packet has arrived and is to be answered, with those left before.
  void answer(uint64_t sequence, bool marked) {
    answer_left(marked);
    answers_.push({left_ ? left_->first : sequence, sequence, marked});
    left_.reset();
  }

  // The packet has arrived, and the next answer will cover it.
  void leave(uint64_t sequence, bool marked) {
    answer_left(marked);
    left_ = Marked{left_ ? left_->first : sequence, sequence, marked};
  }

  // The next answer; there is one. Everything before `expected` has arrived.
  Answer take(uint64_t expected) {
    Marked answered = answers_.pop();
    const uint64_t end = end_of_like_marks(expected, answered.marked);
    while (answered.last < end && !answers_.empty() && answers_.front().marked == answered.marked)
      answered = answers_.pop();
    return {answered.last, end, answered.marked};
  }

 private:
  void answer_left(bool next_is_marked) {
    if (!left_ || left_->marked == next_is_marked) return;
    answers_.push(*left_);
    left_.reset();
  }

  // One past the last packet that an answer to such a one may cover: others wait for an answer of their own.
  uint64_t end_of_like_marks(uint64_t expected, bool marked) const {
    uint64_t end = expected;
    for (size_t at = 0; at < answers_.size(); ++at) {
      if (answers_[at].marked != marked) end = std::min(end, answers_[at].first);
    }
    if (left_ && left_->marked != marked) end = std::min(end, left_->first);
    return end;
  }

  RingBuffer<Marked> answers_;
  std::optional<Marked> left_;  // in order, and nobody has asked to answer them
};

}  // namespace weft
