// What is added to the Python module by python/bind_services.cpp and python/bind_parameters.cpp.
#pragma once

#include <pybind11/pybind11.h>

namespace weft {

void bind_services(pybind11::module_& m);    // clients of switches' services
void bind_parameters(pybind11::module_& m);  // parameter stores and their clients

}  // namespace weft
