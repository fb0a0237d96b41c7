#include "congestion/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

namespace weft {
namespace {

std::string text(double value) {
  std::string digits = std::to_string(value);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

template <class Names>
std::string quoted(const Names& names) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "'" : ", '") + std::string(name) + "'";
  return all;
}

}  // namespace

ParameterReader::ParameterReader(std::string_view algorithm, std::span<const CongestionParameter> declared,
                                 std::span<const CongestionPreset> presets, const CongestionParameters& given,
                                 std::string preset)
    : algorithm_(algorithm),
      declared_(declared),
      presets_(presets),
      given_(given),
      preset_(std::move(preset)) {}

const CongestionPreset& ParameterReader::preset() const {
  if (preset_.empty()) return presets_.front();
  std::vector<std::string_view> valid;
  for (const CongestionPreset& known : presets_) {
    if (known.name == preset_) return known;
    valid.push_back(known.name);
  }
  throw std::invalid_argument(algorithm_ + ": unknown preset '" + preset_ + "' (valid: " + quoted(valid) +
                              ")");
}

const CongestionParameter& ParameterReader::declaration(std::string_view name) const {
  for (const CongestionParameter& parameter : declared_) {
    if (parameter.name == name) return parameter;
  }
  std::vector<std::string_view> names;
  for (const CongestionParameter& parameter : declared_) names.push_back(parameter.name);
  throw std::invalid_argument(algorithm_ + " reads '" + std::string(name) +
                              "', which it does not declare (declared: " + quoted(names) + ")");
}

std::optional<double> ParameterReader::given_value(const CongestionParameter& parameter, bool whole) const {
  const auto found = given_.find(std::string(parameter.name));
  if (found == given_.end()) return std::nullopt;
  const double given = found->second;
  const bool in_range = given >= parameter.least && given <= parameter.most;
  if (!in_range || (whole && given != std::floor(given))) {
    throw std::invalid_argument(algorithm_ + ": " + std::string(parameter.name) + " is " + text(given) +
                                " (valid: " + (whole ? "whole numbers from " : "") + text(parameter.least) +
                                " to " + text(parameter.most) + ")");
  }
  return given;
}

void ParameterReader::finish() const {
  if (!preset_.empty() && presets_.empty()) {
    throw std::invalid_argument(algorithm_ + " has no presets ('" + preset_ + "' was given)");
  }
  std::set<std::string_view> known;
  for (const CongestionParameter& parameter : declared_) known.insert(parameter.name);
  for (const auto& [name, value] : given_) {
    if (known.contains(name)) continue;
    throw std::invalid_argument(algorithm_ + ": unknown parameter '" + name + "' (valid: " + quoted(known) +
                                ")");
  }
  for (const std::string_view name : known) {
    if (!values_.contains(std::string(name))) {
      throw std::invalid_argument(algorithm_ + " declares '" + std::string(name) + "' and does not read it");
    }
  }
}

}  // namespace weft
