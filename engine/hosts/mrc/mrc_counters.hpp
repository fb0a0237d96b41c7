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

// What a NIC counts of endpoint operations, which belong to no queue pair.
#define WEFT_MRC_ENDPOINT_COUNTERS(STATISTIC)                                                          \
  STATISTIC(uint64_t, port_updates_sent, "requests that tell peers which ports are up")                \
  STATISTIC(uint64_t, port_updates_confirmed, "by a response of the peer")                             \
  STATISTIC(uint64_t, port_updates_received, "requests by which peers tell which ports are up")        \
  STATISTIC(uint64_t, ev_probes_sent, "requests that probe an entropy value")                          \
  STATISTIC(uint64_t, ev_probes_answered, "by a response of the probed peer")                          \
  STATISTIC(uint64_t, ev_probes_expired, "that nobody has answered within the retransmission timeout") \
  STATISTIC(uint64_t, ev_events_dropped, "that nobody had taken when too many were waiting")           \
  STATISTIC(uint64_t, ev_probes_received, "requests by which peers probe an entropy value")            \
  STATISTIC(uint64_t, ev_probe_responses_refused,                                                      \
            "that answer no probe of ours, or too late, or from elsewhere")                            \
  STATISTIC(uint64_t, endpoint_packets_refused,                                                        \
            "of hosts that have no queue pair here, or with "                                          \
            "another opcode or partition key")

struct MrcEndpointCounters {
  WEFT_STATISTICS(MrcEndpointCounters, WEFT_MRC_ENDPOINT_COUNTERS)
};

}  // namespace weft
