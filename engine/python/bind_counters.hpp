// Counters of queue pairs in Python.
#pragma once

#include <pybind11/pybind11.h>

#include "hosts/rc_config.hpp"

namespace weft {

pybind11::dict counters_dict(const RcCounters& counters);

}  // namespace weft
