// Statistics declared once. A list names each with its type and meaning; the members of the struct, sums,
// Python's dictionaries, their types in the stub and the names that Python enumerates follow from it:
//
//   #define WEFT_LINK_COUNTERS(STATISTIC)
//     STATISTIC(uint64_t, lost_packets, "lost by a fault")
//     STATISTIC(TrafficCounter, cut, "on the link as it failed")
//   struct LinkCounters {
//     WEFT_STATISTICS(LinkCounters, WEFT_LINK_COUNTERS)
//   };
#pragma once

#include <cstdint>

#include "observe/traffic_counter.hpp"

#define WEFT_STATISTIC_MEMBER(type, name, meaning) type name{};
#define WEFT_STATISTIC_VISIT(type, name, meaning) visit(#name, &Self::name, meaning);
#define WEFT_STATISTICS(Struct, LIST)                   \
  LIST(WEFT_STATISTIC_MEMBER)                           \
  template <class Visit>                                \
  static constexpr void each_statistic(Visit&& visit) { \
    using Self = Struct;                                \
    LIST(WEFT_STATISTIC_VISIT)                          \
  }

namespace weft {

inline void add_statistic(uint64_t& sum, uint64_t other) { sum += other; }
inline void add_statistic(int64_t& sum, int64_t other) { sum += other; }
inline void add_statistic(TrafficCounter& sum, const TrafficCounter& other) { sum.add(other); }

// Adds each statistic to that of the same name.
template <class Statistics>
void add_statistics(Statistics& sum, const Statistics& other) {
  Statistics::each_statistic(
      [&](const char*, auto member, const char*) { add_statistic(sum.*member, other.*member); });
}

}  // namespace weft
