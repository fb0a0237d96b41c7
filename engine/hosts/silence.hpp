// When a sender that hears nothing asks what has arrived, so that the loss of a last packet, or of its
// answer, does not wait for the retransmission timeout.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "time/time.hpp"

namespace weft {

class Silence {
 public:
  // Round trips without news after which a sender asks, and asks again.
  static constexpr TimePs kRoundTrips = 2;

  // When it has lasted `patience_ps` since the newest packet, news or question. After timeouts questions are
  // as rare as these: the time doubles `doublings` times.
  TimePs deadline_ps(TimePs since_ps, TimePs patience_ps, uint32_t doublings) const {
    return std::max(since_ps, asked_ps_) + (patience_ps << doublings);
  }
  // A question is due, and stays wanted until it is sent or not needed any more.
  void ask(TimePs now) {
    asked_ps_ = now;
    is_wanted_ = true;
  }
  bool is_wanted() const { return is_wanted_; }
  // Whether one was wanted; it is being sent.
  bool take() { return std::exchange(is_wanted_, false); }
  // There is news.
  void end() { is_wanted_ = false; }

 private:
  TimePs asked_ps_ = 0;  // when the newest question was due
  bool is_wanted_ = false;
};

}  // namespace weft
