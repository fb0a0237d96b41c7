// A host's IP stack in Python.
#pragma once

#include <pybind11/pybind11.h>

namespace weft {

void bind_ip(pybind11::module_& m);            // the stack
void bind_applications(pybind11::module_& m);  // programs on it
void bind_tcp_flows(pybind11::module_& m);     // TCP's

}  // namespace weft
