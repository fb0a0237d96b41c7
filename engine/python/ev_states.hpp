// How many entropy values are in which state, as Python has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hosts/mrc/ev_table.hpp"

namespace weft {

// By the states' names; no zeros.
inline std::vector<std::map<std::string, uint64_t>> named_states(
    const std::vector<mrc::EvStateCounts>& by_plane) {
  std::vector<std::map<std::string, uint64_t>> named(by_plane.size());
  for (size_t plane = 0; plane < by_plane.size(); ++plane) {
    for (size_t state = 0; state < mrc::kEvStates; ++state) {
      if (by_plane[plane][state] > 0)
        named[plane][mrc::ev_state_name(static_cast<mrc::EvState>(state))] = by_plane[plane][state];
    }
  }
  return named;
}

}  // namespace weft
