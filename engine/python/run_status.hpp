// How far a run is, as Python has it.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "collectives/schedule_executor.hpp"
#include "python/typed.hpp"

namespace weft {

inline Record<"RunStatus"> run_status(const RunStatus& status) {
  using namespace pybind11::literals;
  const auto time_or_none = [](TimePs time_ps) {
    return time_ps == kNever ? std::nullopt : std::optional(time_ps);
  };
  return pybind11::dict(
      "state"_a = run_state_name(status.state), "started_ps"_a = time_or_none(status.started_ps),
      "finished_ps"_a = time_or_none(status.finished_ps), "nodes_done"_a = status.nodes_done,
      "node_count"_a = status.node_count, "error"_a = status.error);
}

}  // namespace weft
