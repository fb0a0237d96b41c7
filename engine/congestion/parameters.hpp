// Parameters of congestion controls: declared once by each control, given by scenario files and Python.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "time/time.hpp"

namespace weft {

// A parameter's value where none is given: a number, or words where it follows from the path, the preset or
// other parameters.
struct ParameterDefault {
  constexpr ParameterDefault(double number) : value(number) {}
  constexpr ParameterDefault(const char* words) : rule(words) {}
  std::optional<double> value;
  std::string_view rule;
};

struct CongestionParameter {
  std::string_view name;  // its unit last: _ps, _bps, _bytes, _packets, or none
  ParameterDefault default_value;
  double least;
  double most;
  std::string_view meaning;
  std::string_view source;  // paper and section, or what else the parameter and its default come from
};

// A named set of an algorithm's parameters.
struct CongestionPreset {
  std::string_view name;
  std::string_view source;
  TimePs cnp_interval_ps = 0;  // what goes with it at the receiver: its CNPs for a flow come at most so often
};

// By name. What is left out has its default.
using CongestionParameters = std::map<std::string, double>;

// Reads the parameters of one algorithm; every one that it declares must be read, every value must be in its
// range.
class ParameterReader {
 public:
  // `preset` names one of the algorithm's; empty: its default. `given` must outlive the reader.
  ParameterReader(std::string_view algorithm, std::span<const CongestionParameter> declared,
                  std::span<const CongestionPreset> presets, const CongestionParameters& given,
                  std::string preset = "");

  // The preset that was asked for, the first one by default. Throws std::invalid_argument for an unknown one.
  const CongestionPreset& preset() const;

  // What was given, or the default: `value` itself where that follows from a rule. Throws
  // std::invalid_argument for a value outside the declared range.
  template <class Value>
  void read(std::string_view name, Value& value) {
    const CongestionParameter& parameter = declaration(name);
    if (parameter.default_value.value) value = static_cast<Value>(*parameter.default_value.value);
    if (const auto given = given_value(parameter, !std::is_floating_point_v<Value>)) {
      value = static_cast<Value>(*given);
    }
    values_[std::string(name)] = static_cast<double>(value);
  }
  // A default that follows from what has been read since.
  void set_default(std::string_view name, double value) { values_[std::string(name)] = value; }

  // All parameters, given or by default.
  const CongestionParameters& values() const { return values_; }

  // Throws std::invalid_argument if a parameter was given that the algorithm does not have, or a preset where
  // it has none, or it has not read what it declares.
  void finish() const;

 private:
  const CongestionParameter& declaration(std::string_view name) const;
  std::optional<double> given_value(const CongestionParameter& parameter, bool whole) const;

  std::string algorithm_;
  std::span<const CongestionParameter> declared_;
  std::span<const CongestionPreset> presets_;
  const CongestionParameters& given_;
  std::string preset_;
  CongestionParameters values_;
};

// Largest time, rate and size that a parameter may have: 100 s, 10 Tb/s, 1 TiB.
constexpr double kMaxParameterPs = 1e14;
constexpr double kMaxParameterBps = 1e13;
constexpr double kMaxParameterBytes = 1099511627776.0;

}  // namespace weft
