// The types of the dictionaries that Python gets: names, keys, what they mean.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "python/bindings.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;

void bind_record_types(py::module_& m) {
  m.def(
      "record_types",
      [] {
        Record<"dict[str, dict[str, tuple[str, str]]]"> types;
        for (const auto& [name, fields] : record_types()) {
          py::dict keys;
          for (const RecordField& field : fields)
            keys[py::str(field.name)] = py::make_tuple(field.type, field.meaning);
          types[py::str(name)] = keys;
        }
        return types;
      },
      "Types of dictionaries, by name: for each key its type in Python's notation, and what it means.");
}

}  // namespace weft
