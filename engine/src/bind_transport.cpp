#include "bindings.hpp"

namespace weft {

void bind_transport(pybind11::module_& /*m*/) {}

}  // namespace weft
