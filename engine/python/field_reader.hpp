// Headers as Python dictionaries: by the names of the fields that members fill.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "packets/header_fields.hpp"

namespace weft {

// Reads a dict of header fields; what nobody asked for is an error, so that a misspelt name is noticed.
class FieldReader {
 public:
  FieldReader(const pybind11::dict& fields, std::string place)
      : left_(fields.attr("copy")()), place_(std::move(place)) {}

  template <class Value>
  void read(const char* name, Value& value) {
    known_.emplace_back(name);
    if (!left_.contains(name)) return;
    value = convert<Value>(name, left_[name]);
    left_.attr("pop")(name);
  }

  // The sub-dict of this name, if present.
  template <class Reader>
  void read_group(const char* name, Reader&& reader) {
    known_.emplace_back(name);
    if (!left_.contains(name)) return;
    FieldReader group(convert<pybind11::dict>(name, left_[name]), place_ + "." + name);
    reader(group);
    group.finish();
    left_.attr("pop")(name);
  }

  void finish() const {
    for (const auto& [name, value] : left_) {
      std::string valid;
      for (const std::string& known : known_) valid += (valid.empty() ? "'" : ", '") + known + "'";
      throw std::invalid_argument(place_ + ": unknown field '" + pybind11::str(name).cast<std::string>() +
                                  "' (valid: " + valid + ")");
    }
  }

  template <class Value>
  Value convert(const char* name, const pybind11::handle& value) const {
    try {
      return value.cast<Value>();
    } catch (const pybind11::cast_error&) {
      throw std::invalid_argument(place_ + "." + name + ": " + pybind11::repr(value).cast<std::string>() +
                                  " is not of the right type or out of range");
    }
  }

 private:
  pybind11::dict left_;
  std::string place_;
  std::vector<std::string> known_;
};

// Members of a header that fields fill, by their names.
template <class Header>
void read_header(FieldReader& fields, Header& header) {
  wire::for_each_member<Header>(
      [&](const char* name, size_t, auto member) { fields.read(name, header.*member); });
}

template <class Header>
pybind11::dict header_dict(const Header& header) {
  pybind11::dict dict;
  wire::for_each_member<Header>(
      [&](const char* name, size_t, auto member) { dict[name] = pybind11::cast(header.*member); });
  return dict;
}

// Fields of a header in wire order, as names and widths.
template <class Header>
pybind11::list fields_list() {
  pybind11::list list;
  std::apply(
      [&](const auto&... fields) { (list.append(pybind11::make_tuple(fields.name, fields.bits)), ...); },
      Header::fields());
  return list;
}

}  // namespace weft
