// For a library of users' congestion controls, which includes this once, before their files: the registration
// that their files use keeps their kinds here.
#pragma once

#include <vector>

#include "congestion/own_controls.hpp"

namespace weft {

inline std::vector<const CongestionControlKind*>& own_congestion_controls() {
  static std::vector<const CongestionControlKind*> kinds;
  return kinds;
}

CongestionRegistration::CongestionRegistration(const CongestionControlKind& kind) {
  own_congestion_controls().push_back(&kind);
}

}  // namespace weft

extern "C" [[gnu::visibility("default")]] const weft::CongestionControlKind* const*
weft_own_congestion_controls(size_t* count) {
  *count = weft::own_congestion_controls().size();
  return weft::own_congestion_controls().data();
}
