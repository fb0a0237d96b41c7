// The congestion controls that there are, by name.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "congestion/congestion_control.hpp"
#include "congestion/congestion_parameters.hpp"
#include "congestion/congestion_preset.hpp"

namespace weft {

// Names that make_congestion_control() knows, in alphabetical order.
std::vector<std::string_view> congestion_control_names();

// Names of an algorithm's parameters. Throws std::invalid_argument for an unknown algorithm.
std::set<std::string> congestion_parameter_names(const std::string& name);

// An algorithm's presets, its default first; none where it has none. Throws std::invalid_argument for an
// unknown algorithm.
std::span<const CongestionPreset> congestion_presets(const std::string& name);

// All parameters of what make_congestion_control() would make, those left out by their defaults. Throws as
// it.
CongestionParameters congestion_parameters_in_force(const std::string& name, const PathProperties& path,
                                                    const CongestionParameters& parameters,
                                                    const std::string& preset = "");

// With the parameters of a preset (empty: the default) but for those that are given. Throws
// std::invalid_argument for an unknown name, preset or parameter, or a value out of range, naming the valid
// ones.
std::unique_ptr<CongestionControl> make_congestion_control(const std::string& name,
                                                           const PathProperties& path,
                                                           const CongestionParameters& parameters,
                                                           const std::string& preset = "");

}  // namespace weft
