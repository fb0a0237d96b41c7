#include "bindings.hpp"

namespace weft {

void bind_switch(pybind11::module_& /*m*/) {}

}  // namespace weft
