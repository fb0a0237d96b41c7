// Options of a queue pair from Python.
#pragma once

#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>

#include "hosts/rc_config.hpp"
#include "hosts/uet/uet_config.hpp"
#include "python/options_dict.hpp"

namespace weft {

template <>
struct PythonOption<Retransmission> {
  static constexpr const char* kType = "str";
  static Retransmission of(pybind11::handle given) {
    const auto name = given.cast<std::string>();
    if (name == "go-back-n") return Retransmission::kGoBackN;
    if (name == "selective-repeat") return Retransmission::kSelectiveRepeat;
    throw std::invalid_argument("retransmission is '" + name + "' (valid: 'go-back-n', 'selective-repeat')");
  }
};

template <>
struct PythonOption<UetService> {
  static constexpr const char* kType = "str";
  static UetService of(pybind11::handle given) {
    const auto name = given.cast<std::string>();
    if (name == "rud") return UetService::kRud;
    if (name == "rod") return UetService::kRod;
    if (name == "rudi") return UetService::kRudi;
    if (name == "uud") return UetService::kUud;
    throw std::invalid_argument("service is '" + name + "' (valid: 'rud', 'rod', 'rudi', 'uud')");
  }
};

template <>
struct PythonOption<LineFormat> {
  static constexpr const char* kType = "str";
  static LineFormat of(pybind11::handle given) {
    const auto name = given.cast<std::string>();
    if (name == "none") return LineFormat::kNone;
    if (name == "ll") return LineFormat::kLl;
    if (name == "ll128") return LineFormat::kLl128;
    throw std::invalid_argument("line_format is '" + name + "' (valid: 'none', 'll', 'll128')");
  }
};

}  // namespace weft
