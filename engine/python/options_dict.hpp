// Options (hosts/options.hpp) from a dictionary of Python's, and the type of that dictionary.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <type_traits>

#include "python/statistics_dict.hpp"

namespace weft {

// How Python gives an option of this type.
template <class Value>
struct PythonOption {
  static constexpr const char* kType = std::is_same_v<Value, bool>       ? "bool"
                                       : std::is_floating_point_v<Value> ? "float"
                                                                         : "int";
  static Value of(pybind11::handle given) { return given.cast<Value>(); }
};

// Declares the dictionary's type, in which every option may be left out.
template <class Options>
void declare_options(const std::string& name) {
  std::vector<RecordField>& fields = record_types()[name];
  fields.clear();
  Options::each_option([&fields]<class Value>(const char* option, Value Options::*, const char* meaning) {
    fields.push_back(
        {option, std::string("typing.NotRequired[") + PythonOption<Value>::kType + "]", meaning});
  });
}

// Returns the options given; those left out have their defaults. `owner` begins the message of the TypeError
// for an option that is unknown or of the wrong type.
template <class Options>
Options options_of(const pybind11::dict& given, const std::string& owner) {
  Options options;
  auto left = given.attr("copy")().cast<pybind11::dict>();
  Options::each_option([&]<class Value>(const char* name, Value Options::* member, const char*) {
    if (!left.contains(name)) return;
    try {
      options.*member = PythonOption<Value>::of(left.attr("pop")(name));
    } catch (const pybind11::cast_error&) {
      throw pybind11::type_error(owner + ": " + name + " is not of the right type or out of range");
    }
  });
  for (const auto& [name, value] : left)
    throw pybind11::type_error(owner + " has no option '" + pybind11::str(name).cast<std::string>() + "'");
  return options;
}

}  // namespace weft
