// Calls of users' Python from events: the GIL is taken, and what comes back is checked.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace weft {

// A user's class gave something that cannot be used. Python sees it as engine.ExtensionError.
class ExtensionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A method of a user's object. May be called, moved and destroyed by any thread, without the GIL. What the
// method raises comes out as pybind11::error_already_set and ends the run.
class PythonMethod {
 public:
  // None stands for a method that does nothing; it is never called.
  PythonMethod(pybind11::object callable, std::string name)
      : callable_(std::move(callable)), name_(std::move(name)), exists_(!callable_.is_none()) {}
  PythonMethod(const PythonMethod&) = delete;
  PythonMethod(PythonMethod&&) noexcept = default;
  ~PythonMethod() {
    if (!callable_ || Py_IsInitialized() == 0) {
      callable_.release();
      return;
    }
    pybind11::gil_scoped_acquire gil;
    callable_ = pybind11::object();
  }

  explicit operator bool() const { return exists_; }

  template <class... Arguments>
  void operator()(Arguments&&... arguments) const {
    if (!exists_) return;
    pybind11::gil_scoped_acquire gil;
    callable_(std::forward<Arguments>(arguments)...);
  }

  // What it returns: a whole number from `least` to `most`, or None where `none_is_valid`. With the GIL.
  template <class... Arguments>
  std::optional<int64_t> whole_number(int64_t least, int64_t most, bool none_is_valid,
                                      Arguments&&... arguments) const {
    const pybind11::object value = callable_(std::forward<Arguments>(arguments)...);
    if (value.is_none() && none_is_valid) return std::nullopt;
    if (PyBool_Check(value.ptr()) == 0 && PyIndex_Check(value.ptr()) != 0) {
      const auto index = pybind11::reinterpret_steal<pybind11::object>(PyNumber_Index(value.ptr()));
      if (!index) throw pybind11::error_already_set();
      int overflow = 0;
      const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
      if (overflow == 0 && number >= least && number <= most) return number;
    }
    throw ExtensionError(name_ + "() returned " + pybind11::repr(value).cast<std::string>() +
                         " (valid: " + (none_is_valid ? "None, or " : "") + "whole numbers from " +
                         std::to_string(least) + " to " + std::to_string(most) + ")");
  }

 private:
  pybind11::object callable_;
  std::string name_;
  bool exists_;
};

}  // namespace weft
