// Records as columns of NumPy's int64, for Python.
#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <vector>

namespace weft {

// One field of every record.
template <class Record, class Field>
pybind11::array_t<int64_t> column_of(const std::vector<Record>& records, Field Record::* field) {
  pybind11::array_t<int64_t> values(static_cast<pybind11::ssize_t>(records.size()));
  int64_t* out = values.mutable_data();
  for (const Record& record : records) *out++ = static_cast<int64_t>(record.*field);
  return values;
}

}  // namespace weft
