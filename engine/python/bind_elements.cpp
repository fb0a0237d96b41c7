// Elements of all types in Python: kernels of reductions, and how elements travel in the network.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>

#include "collectives/lane_encoding.hpp"
#include "collectives/reduction.hpp"
#include "python/bind_schedules.hpp"
#include "python/bindings.hpp"
#include "python/python_buffer.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

size_t element_count(const PythonBuffer& buffer, DataType dtype) {
  if (buffer.size_bytes() % element_bytes(dtype) != 0) {
    throw std::invalid_argument(std::to_string(buffer.size_bytes()) + " bytes are not whole elements of " +
                                data_type_name(dtype));
  }
  return buffer.size_bytes() / element_bytes(dtype);
}

void combine_elements(const py::buffer& destination, const py::buffer& source, const std::string& dtype,
                      const std::string& operation) {
  const DataType type = parse_data_type(dtype);
  const PythonBuffer into(destination, true);
  const PythonBuffer from(source, false);
  if (into.size_bytes() != from.size_bytes()) throw std::invalid_argument("buffers of different sizes");
  reduce(into.data(), from.data(), element_count(into, type), type, parse_operation(operation));
}

void divide_elements(const py::buffer& data, const std::string& dtype, uint32_t divisor) {
  const DataType type = parse_data_type(dtype);
  if (divisor == 0) throw std::invalid_argument("divisor 0 (valid: 1 or more)");
  const PythonBuffer buffer(data, true);
  divide(buffer.data(), element_count(buffer, type), type, divisor);
}

// An encoding beside the type, which its methods need to know how many elements a buffer has.
struct PythonEncoding {
  DataType dtype;
  LaneEncoding encoding;
};

int32_t exponent(const PythonEncoding& self, const py::buffer& block) {
  const PythonBuffer buffer(block, false);
  return self.encoding.exponent(buffer.data(), element_count(buffer, self.dtype), 0);
}

py::array_t<int32_t> encode(const PythonEncoding& self, const py::buffer& block, int32_t exponent) {
  const PythonBuffer buffer(block, false);
  const size_t count = element_count(buffer, self.dtype);
  const size_t each = self.encoding.elements_per_lane();
  py::array_t<int32_t> lanes(static_cast<py::ssize_t>((count + each - 1) / each));
  self.encoding.encode(buffer.data(), count, exponent, lanes.mutable_data());
  return lanes;
}

bool decode(const PythonEncoding& self, const py::array_t<int32_t, py::array::c_style>& lanes,
            const py::buffer& block, int32_t exponent) {
  const PythonBuffer buffer(block, true);
  const size_t count = element_count(buffer, self.dtype);
  if (static_cast<size_t>(lanes.size()) * self.encoding.elements_per_lane() < count) {
    throw std::invalid_argument("fewer lanes than elements");
  }
  return self.encoding.decode(lanes.data(), count, exponent, buffer.data());
}

}  // namespace

void bind_elements(py::module_& m) {
  m.def("combine_elements", &combine_elements, "destination"_a, "source"_a, "dtype"_a, "operation"_a,
        "Reduce each element of the source into that of the destination, as ranks do.");
  m.def("divide_elements", &divide_elements, "data"_a, "dtype"_a, "divisor"_a,
        "Divide elements: integers rounded towards zero, floats to nearest.");
  py::class_<PythonEncoding>(m, "LaneEncoding", "How elements travel in the lanes of aggregation packets.")
      .def(py::init([](const std::string& dtype, const std::string& operation, uint32_t rank_count) {
             const DataType type = parse_data_type(dtype);
             return PythonEncoding{type, LaneEncoding(type, parse_operation(operation), rank_count)};
           }),
           "dtype"_a, "operation"_a, "rank_count"_a)
      .def_property_readonly("elements_per_lane",
                             [](const PythonEncoding& self) { return self.encoding.elements_per_lane(); })
      .def("exponent", &exponent, "block"_a, "Of a block of floats. Raises ValueError for NaN and infinity.")
      .def("encode", &encode, "block"_a, "exponent"_a = 0, "Lanes of a block's elements.")
      .def("decode", &decode, "lanes"_a, "block"_a, "exponent"_a = 0,
           "Write the elements that lanes stand for; return whether one was out of the type's range.");
}

}  // namespace weft
