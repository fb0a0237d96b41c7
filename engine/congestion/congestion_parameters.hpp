// Named parameters of a congestion control, as they come from scenario files and Python.
#pragma once

#include <cmath>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "congestion/congestion_preset.hpp"

namespace weft {

// By name, the unit last in it: "additive_increase_bytes". What is left out has its default.
using CongestionParameters = std::map<std::string, double>;

// Reads the parameters of one algorithm; every name must be asked for, every value must be in its range.
class ParameterReader {
 public:
  // `preset` names one of the algorithm's; empty: its default.
  ParameterReader(std::string algorithm, const CongestionParameters& parameters, std::string preset = "")
      : algorithm_(std::move(algorithm)), parameters_(parameters), preset_(std::move(preset)) {}

  // The preset that was asked for, the first one by default. Throws std::invalid_argument for an unknown one.
  const CongestionPreset& preset(std::span<const CongestionPreset> presets) {
    presets_ = presets;
    if (preset_.empty()) return presets.front();
    std::string valid;
    for (const CongestionPreset& known : presets) {
      if (known.name == preset_) return known;
      valid += (valid.empty() ? "'" : ", '") + std::string(known.name) + "'";
    }
    throw std::invalid_argument(algorithm_ + ": unknown preset '" + preset_ + "' (valid: " + valid + ")");
  }

  // Leaves `value` alone if the parameter is not given. Throws std::invalid_argument outside [least, most].
  template <class Value>
  void read(const char* name, Value& value, double least, double most) {
    known_.insert(name);
    const auto found = parameters_.find(name);
    if (found == parameters_.end()) {
      values_[name] = static_cast<double>(value);
      return;
    }
    const double given = found->second;
    const bool whole = std::is_floating_point_v<Value> || given == std::floor(given);
    if (!(given >= least && given <= most) || !whole) {
      throw std::invalid_argument(algorithm_ + ": " + name + " is " + text(given) + " (valid: " +
                                  (std::is_floating_point_v<Value> ? "" : "whole numbers from ") +
                                  text(least) + " to " + text(most) + ")");
    }
    value = static_cast<Value>(given);
    values_[name] = given;
  }
  // A default that follows from what has been read since.
  void set_default(const char* name, double value) { values_[name] = value; }

  // The parameters that were asked for, and the presets.
  const std::set<std::string>& names() const { return known_; }
  std::span<const CongestionPreset> presets() const { return presets_; }
  // What they are, given or by default.
  const CongestionParameters& values() const { return values_; }

  // Throws std::invalid_argument if a parameter was given that read() did not ask for, or a preset that
  // preset() did not.
  void finish() const {
    if (!preset_.empty() && presets_.empty()) {
      throw std::invalid_argument(algorithm_ + " has no presets ('" + preset_ + "' was given)");
    }
    for (const auto& [name, value] : parameters_) {
      if (known_.contains(name)) continue;
      std::string valid;
      for (const std::string& known : known_) valid += (valid.empty() ? "'" : ", '") + known + "'";
      throw std::invalid_argument(algorithm_ + ": unknown parameter '" + name + "' (valid: " + valid + ")");
    }
  }

 private:
  static std::string text(double value) {
    std::string digits = std::to_string(value);
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
    return digits;
  }

  std::string algorithm_;
  const CongestionParameters& parameters_;
  std::string preset_;
  std::span<const CongestionPreset> presets_;
  std::set<std::string> known_;
  CongestionParameters values_;
};

// Largest time, rate and size that a parameter may have: 100 s, 10 Tb/s, 1 TiB.
constexpr double kMaxParameterPs = 1e14;
constexpr double kMaxParameterBps = 1e13;
constexpr double kMaxParameterBytes = 1099511627776.0;

}  // namespace weft
