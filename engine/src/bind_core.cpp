#include "bindings.hpp"

namespace weft {

void bind_core(pybind11::module_& /*m*/) {}

}  // namespace weft
