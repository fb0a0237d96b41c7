// What an MRC queue pair counts beyond what RC's do (RcCounters), which it counts, too: there its SACKs are
// acknowledgements.
#pragma once

#include <cstdint>

#include "observe/statistics.hpp"

namespace weft {

#define WEFT_MRC_COUNTERS(STATISTIC)                                                         \
  STATISTIC(uint64_t, trim_nacks_sent, "for packets whose payload a switch cut off")         \
  STATISTIC(uint64_t, other_nacks_sent, "for packets beyond the window")                     \
  STATISTIC(uint64_t, trim_nacks_received, "for packets whose payload a switch cut off")     \
  STATISTIC(uint64_t, other_nacks_received, "for another reason")                            \
  STATISTIC(uint64_t, probes_sent, "reliability probes")                                     \
  STATISTIC(uint64_t, probes_answered, "SACKs that answer our probes")                       \
  STATISTIC(uint64_t, probes_received, "of the peer")                                        \
  STATISTIC(uint64_t, evs_to_good, "times that an entropy value became good again")          \
  STATISTIC(uint64_t, evs_to_skip, "times that an entropy value was to be passed over once") \
  STATISTIC(uint64_t, evs_to_assumed_bad, "times that an entropy value's path was taken for dead")

struct MrcCounters {
  WEFT_STATISTICS(MrcCounters, WEFT_MRC_COUNTERS)

  MrcCounters& operator+=(const MrcCounters& others) {
    add_statistics(*this, others);
    return *this;
  }
};

}  // namespace weft
