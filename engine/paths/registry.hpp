// The choices of path that there are. Each registers itself from its own file in this folder
// (docs/howto/path-choice.md), so that nothing else needs to name it. A queue pair without one keeps to a
// single path.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "congestion/congestion_control.hpp"
#include "congestion/parameters.hpp"
#include "paths/path_choice.hpp"

namespace weft {

struct PathChoiceKind {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  bool reorders = false;  // packets of a flow overtake each other even if nothing is congested or lost
  bool marks = false;     // reads CE marks of switches
  std::span<const CongestionParameter> parameters;
  std::unique_ptr<PathChoice> (*make)(uint64_t seed, const PathProperties& path, ParameterReader& reader);
};

// One object of namespace scope in each choice's file.
class PathChoiceRegistration {
 public:
  // `kind` must outlive the program's use of it.
  explicit PathChoiceRegistration(const PathChoiceKind& kind);
};

// Makes a choice from parameters that are read from the path and from what was given: for
// PathChoiceKind::make.
template <class Choice, class Parameters>
std::unique_ptr<PathChoice> make_path_choice_from(uint64_t seed, const PathProperties& path,
                                                  ParameterReader& reader) {
  const Parameters parameters = Parameters::read(path, reader);
  reader.finish();
  return std::make_unique<Choice>(seed, parameters);
}

// All, in alphabetical order of their names. Throws std::logic_error if two have one name.
std::vector<const PathChoiceKind*> path_choices();

// Throws std::invalid_argument for an unknown name, naming the valid ones.
const PathChoiceKind& path_choice_kind(std::string_view name);

// What it draws repeats with the seed. Throws std::invalid_argument for an unknown name or parameter, or a
// value out of range, naming the valid ones.
std::unique_ptr<PathChoice> make_path_choice(const std::string& name, uint64_t seed,
                                             const PathProperties& path,
                                             const CongestionParameters& parameters);

// All parameters of what make_path_choice() would make, those left out by their defaults. Throws as it.
CongestionParameters path_parameters_in_force(const std::string& name, const PathProperties& path,
                                              const CongestionParameters& parameters);

}  // namespace weft
