// Named sets of an algorithm's parameters, each with where it comes from.
#pragma once

#include <string_view>

#include "time/time.hpp"

namespace weft {

struct CongestionPreset {
  std::string_view name;
  std::string_view source;
  TimePs cnp_interval_ps = 0;  // what goes with it at the receiver: its CNPs for a flow come at most so often
};

}  // namespace weft
