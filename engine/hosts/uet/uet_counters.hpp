// What a queue pair of UET counts beyond what RC's do (RcCounters), which it counts, too.
#pragma once

#include <cstdint>

#include "observe/statistics.hpp"

namespace weft {

#define WEFT_UET_COUNTERS(STATISTIC)                                                       \
  STATISTIC(uint64_t, pdcs_opened, "PDCs that it opened as initiator")                     \
  STATISTIC(uint64_t, pdcs_accepted, "PDCs that a peer opened here")                       \
  STATISTIC(uint64_t, pdcs_closed, "PDCs that it closed as initiator, having been idle")   \
  STATISTIC(uint64_t, pdcs_given_up, "PDCs of a peer that fell silent")                    \
  STATISTIC(uint64_t, pdcs_reopened, "PDCs that its peer did not have any more")           \
  STATISTIC(uint64_t, pdc_waits, "times that it waited because its NIC had no PDC left")   \
  STATISTIC(uint64_t, trim_nacks_sent, "for packets whose payload a switch cut off")       \
  STATISTIC(uint64_t, pdc_nacks_sent, "for want of a PDC")                                 \
  STATISTIC(uint64_t, order_nacks_sent, "ROD: for packets behind a gap")                   \
  STATISTIC(uint64_t, other_nacks_sent, "for another reason")                              \
  STATISTIC(uint64_t, trim_nacks_received, "for packets whose payload a switch cut off")   \
  STATISTIC(uint64_t, pdc_nacks_received, "the peer had no PDC left")                      \
  STATISTIC(uint64_t, order_nacks_received, "ROD: for packets behind a gap")               \
  STATISTIC(uint64_t, other_nacks_received, "for another reason")                          \
  STATISTIC(uint64_t, credits_sent, "RCCC: control packets with credit")                   \
  STATISTIC(uint64_t, credits_received, "RCCC: control packets with credit")               \
  STATISTIC(uint64_t, credit_waits, "RCCC: times that it had to wait for credit")          \
  STATISTIC(uint64_t, responses_trimmed, "RUDI: data of READs whose payload was cut off")  \
  STATISTIC(uint64_t, datagrams_without_receive, "UUD, dropped: no receive was posted")    \
  STATISTIC(uint64_t, datagrams_too_long, "UUD, dropped: longer than the receive")         \
  STATISTIC(uint64_t, datagrams_trimmed, "UUD, dropped: a switch cut off their payload")   \
  STATISTIC(uint64_t, probes_sent, "control packets that ask what has arrived")            \
  STATISTIC(uint64_t, probes_received, "of the peer")                                      \
  STATISTIC(uint64_t, wrong_responses, "dropped: data of READs that it has not asked for") \
  STATISTIC(uint64_t, late_packets, "dropped: of a PDC that is closed, or of none of this queue pair")

struct UetCounters {
  WEFT_STATISTICS(UetCounters, WEFT_UET_COUNTERS)

  UetCounters& operator+=(const UetCounters& others) {
    add_statistics(*this, others);
    return *this;
  }
};

}  // namespace weft
