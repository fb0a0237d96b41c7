// What a library of users' congestion controls exports: see load_congestion_controls().
#pragma once

#include <cstddef>

#include "congestion/registry.hpp"

namespace weft {

// Returns the kinds that the library registers, and how many these are.
using OwnCongestionControls = const CongestionControlKind* const* (*)(size_t* count);
constexpr const char* kOwnCongestionControls = "weft_own_congestion_controls";

}  // namespace weft
