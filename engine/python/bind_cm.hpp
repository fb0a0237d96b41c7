// Communication management in Python: messages, connections, and a host's /dev/infiniband/rdma_cm.
#pragma once

#include <pybind11/pybind11.h>

namespace weft {

void bind_cm(pybind11::module_& m);
// Adds the fields of its headers, by the headers' names in weft/wire/.
void add_cm_fields(pybind11::dict& headers);

}  // namespace weft
