#include "python/bind_path_properties.hpp"

#include <pybind11/stl.h>

#include <string>

namespace weft {

namespace py = pybind11;

namespace {

enum class Need { kRequired, kOptional };

template <class Value>
void take(py::dict& given, const char* name, Value& value, Need need) {
  if (!given.contains(name)) {
    if (need == Need::kRequired) throw py::type_error(std::string("a path needs ") + name);
    return;
  }
  try {
    value = given.attr("pop")(name).cast<Value>();
  } catch (const py::cast_error&) {
    throw py::type_error(std::string(name) + " is not of the right type or out of range");
  }
}

}  // namespace

PathProperties path_properties_of(const py::kwargs& given, bool with_frame_bytes) {
  py::dict left = given.attr("copy")();
  PathProperties path;
  take(left, "line_rate_bps", path.line_rate_bps, Need::kRequired);
  take(left, "base_round_trip_ps", path.base_round_trip_ps, Need::kRequired);
  if (with_frame_bytes) take(left, "frame_bytes", path.frame_bytes, Need::kRequired);
  take(left, "nearest_round_trip_ps", path.nearest_round_trip_ps, Need::kOptional);
  take(left, "nearest_hops", path.nearest_hops, Need::kOptional);
  take(left, "hop_round_trip_ps", path.hop_round_trip_ps, Need::kOptional);
  take(left, "sprayed", path.sprayed, Need::kOptional);
  take(left, "int_rates_bps", path.int_rates_bps, Need::kOptional);
  for (const auto& [name, value] : left) {
    throw py::type_error("a path has no '" + py::str(name).cast<std::string>() + "'");
  }
  return path;
}

}  // namespace weft
