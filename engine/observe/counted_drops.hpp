// Why packets are dropped, where statistics count that: declared once. A list names each reason, what Python
// calls it, and the statistic that counts such packets; the enumerators, names and the dictionary that Python
// reads follow from it:
//
//   #define WEFT_LINK_DROPS(DROP)
//     DROP(kLost, "lost", lost_packets)
//     DROP(kCut, "cut", cut)
//   WEFT_COUNTED_DROPS(LinkDrop, kLinkDrops, LinkCounters, WEFT_LINK_DROPS)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft {

struct CountedDrop {
  const char* name;
  const char* statistic;
};

}  // namespace weft

#define WEFT_DROP_ENUMERATOR(enumerator, name, statistic) enumerator,
#define WEFT_DROP_AND_STATISTIC(enumerator, name, statistic) CountedDrop{name, #statistic},
#define WEFT_DROP_IS_COUNTED(enumerator, name, statistic) \
  static_assert(requires { &Statistics::statistic; }, "no such statistic");
#define WEFT_COUNTED_DROPS(Drop, array_name, Struct, LIST)                                \
  enum class Drop : uint8_t { LIST(WEFT_DROP_ENUMERATOR) kCount };                        \
  inline constexpr std::array<CountedDrop, static_cast<size_t>(Drop::kCount)> array_name{ \
      {LIST(WEFT_DROP_AND_STATISTIC)}};                                                   \
  template <class Statistics>                                                             \
  constexpr bool counts_drops(Drop) {                                                     \
    LIST(WEFT_DROP_IS_COUNTED)                                                            \
    return true;                                                                          \
  }                                                                                       \
  static_assert(counts_drops<Struct>(Drop::kCount));
