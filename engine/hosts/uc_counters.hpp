// What a UC queue pair counts beyond RcCounters.
#pragma once

#include <cstdint>

#include "observe/statistics.hpp"

namespace weft {

#define WEFT_UC_COUNTERS(STATISTIC)                                                       \
  STATISTIC(uint64_t, packets_missing, "that have not come when a later one came")        \
  STATISTIC(uint64_t, packets_skipped,                                                    \
            "dropped: of a message that had been dropped or whose first is missing")      \
  STATISTIC(uint64_t, messages_broken, "dropped: begun, and a packet of them is missing") \
  STATISTIC(uint64_t, messages_without_receive, "dropped: no receive was posted")         \
  STATISTIC(uint64_t, messages_too_long, "dropped: SENDs longer than their receive")      \
  STATISTIC(uint64_t, messages_refused,                                                   \
            "dropped: WRITEs to memory that the peer may not write, or that has gone")    \
  STATISTIC(uint64_t, messages_malformed, "dropped: an opcode or a length that does not go on as it began")

struct UcCounters {
  WEFT_STATISTICS(UcCounters, WEFT_UC_COUNTERS)
};

}  // namespace weft
