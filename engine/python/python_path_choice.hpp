// A choice of path that a user writes in Python.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>

#include "paths/path_choice.hpp"
#include "python/python_extension.hpp"

namespace weft {

// What Python raises, and an entropy out of range (ExtensionError), ends the run.
class PythonPathChoice final : public PathChoice {
 public:
  // The user's object; methods that its class does not define are None.
  struct Methods {
    PythonMethod entropy;
    PythonMethod on_delivered;
    PythonMethod on_lost;
    PythonMethod on_congestion_notification;
  };

  PythonPathChoice(std::string name, Methods methods)
      : name_(std::move(name)), methods_(std::move(methods)) {}

  std::string_view name() const override { return name_; }
  uint16_t entropy(TimePs now, uint64_t sequence, bool retransmission) override;
  void on_delivered(TimePs now, uint16_t entropy, TimePs round_trip_ps, bool congestion_experienced) override;
  void on_lost(TimePs now, uint16_t entropy) override;
  void on_congestion_notification(TimePs now) override;

 private:
  std::string name_;
  Methods methods_;
};

void bind_python_path_choice(pybind11::module_& m);

}  // namespace weft
