// When packets that hosts sent again arrived after all.
#pragma once

#include "time/time.hpp"

namespace weft {

// The first and the last acknowledgement of a packet that had been sent again; -1: there was none.
struct RecoveryTimes {
  TimePs first_ps = -1;
  TimePs last_ps = -1;

  void add(TimePs now) {
    if (first_ps < 0) first_ps = now;
    last_ps = now;
  }
};

}  // namespace weft
