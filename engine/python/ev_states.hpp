// Entropy values and their states, as Python has them.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hosts/mrc/ev_table.hpp"
#include "python/bind_codec.hpp"
#include "python/typed.hpp"

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

inline std::string outer_destination(const mrc::EvTable& table, size_t ev) {
  const std::optional<roce::IpAddress> outer = table.outer_destination(ev);
  return outer ? format_ip(*outer) : "";
}

inline std::vector<Record<"EntropyValue">> entropy_values(const mrc::EvTable& table) {
  using namespace pybind11::literals;
  std::vector<Record<"EntropyValue">> evs;
  for (size_t ev = 0; ev < table.size(); ++ev)
    evs.emplace_back(pybind11::dict("value"_a = table.value(ev), "plane"_a = table.plane_of(ev),
                                    "state"_a = mrc::ev_state_name(table.state(ev)),
                                    "active"_a = table.is_active(ev), "turns"_a = table.turns(ev),
                                    "outer_destination"_a = outer_destination(table, ev)));
  return evs;
}

}  // namespace weft
