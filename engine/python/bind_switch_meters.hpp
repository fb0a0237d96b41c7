// Meters as Python sees them: tuples of numbers, and the buckets as opaque bytes.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "switch/meter.hpp"

namespace weft {

// Rates and bursts as in MeterConfig.
using MeterConfigTuple = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t, std::optional<uint64_t>>;
// Configuration, (packets, bytes) of green, yellow and red, and the buckets as opaque bytes.
using MeterStateTuple = std::tuple<std::optional<MeterConfigTuple>,
                                   std::array<std::pair<uint64_t, uint64_t>, 3>, pybind11::bytes>;

std::optional<MeterConfig> meter_config(const std::optional<MeterConfigTuple>& values);
MeterStateTuple to_python(const MeterState& state);

// Throws std::invalid_argument if the buckets are not a meter's.
MeterState meter_state(const MeterStateTuple& values);

}  // namespace weft
