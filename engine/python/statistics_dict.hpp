// Statistics as Python dictionaries, and what each of their types holds.
#pragma once

#include <pybind11/pybind11.h>

#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "observe/statistics.hpp"
#include "python/bindings_support.hpp"

namespace weft {

// A key of a dictionary that Python gets, for the stub and for who enumerates names.
struct RecordField {
  std::string name;
  std::string type;  // Python's
  std::string meaning;
};

// By the name of the dictionary's type.
inline std::map<std::string, std::vector<RecordField>>& record_types() {
  static std::map<std::string, std::vector<RecordField>> types;
  return types;
}

template <class Value>
constexpr const char* python_type() {
  if (std::is_same_v<Value, TrafficCounter>) return "TrafficCounter";
  return std::is_same_v<Value, bool> ? "bool" : "int";
}

// Declares a dictionary's type: those of Statistics, where that is not void, and `more` behind them.
template <class Statistics = void>
void declare_record(const std::string& name, const std::vector<RecordField>& more = {}) {
  std::vector<RecordField>& fields = record_types()[name];
  fields.clear();
  if constexpr (!std::is_void_v<Statistics>) {
    Statistics::each_statistic(
        [&fields]<class Value>(const char* field, Value Statistics::*, const char* meaning) {
          fields.push_back({field, python_type<Value>(), meaning});
        });
  }
  fields.insert(fields.end(), more.begin(), more.end());
}

inline pybind11::object python_statistic(const TrafficCounter& counter) { return counter_dict(counter); }
template <class Number>
pybind11::object python_statistic(Number number) {
  return pybind11::cast(number);
}

template <class Statistics>
pybind11::dict statistics_dict(const Statistics& statistics) {
  pybind11::dict dict;
  Statistics::each_statistic([&](const char* name, auto member, const char*) {
    dict[shared_key(name)] = python_statistic(statistics.*member);
  });
  return dict;
}

}  // namespace weft
