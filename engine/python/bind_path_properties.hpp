// PathProperties from Python's keyword arguments.
#pragma once

#include <pybind11/pybind11.h>

#include "congestion/congestion_control.hpp"

namespace weft {

// Of line_rate_bps, base_round_trip_ps, nearest_round_trip_ps, nearest_hops, hop_round_trip_ps, int_rates_bps
// and, where `with_frame_bytes`, frame_bytes; the first two, and frame_bytes, are required. Throws TypeError
// for others and for values of another type.
PathProperties path_properties_of(const pybind11::kwargs& given, bool with_frame_bytes);

}  // namespace weft
