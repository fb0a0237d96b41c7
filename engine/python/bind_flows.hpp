// What is added to the Python module by python/bind_flows.cpp and python/bind_scale_up.cpp.
#pragma once

#include <pybind11/pybind11.h>

namespace weft {

void bind_host_links(pybind11::module_& m);
void bind_scale_up(pybind11::module_& m);  // links between the ranks of a host
void bind_flows(pybind11::module_& m);     // traffic of many flows

}  // namespace weft
