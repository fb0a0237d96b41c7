#include "paths/registry.hpp"

#include "congestion/registered_kinds.hpp"

namespace weft {
namespace {

RegisteredKinds<PathChoiceKind>& registered() {
  static RegisteredKinds<PathChoiceKind> kinds("choice of path", "choices of path");
  return kinds;
}

}  // namespace

PathChoiceRegistration::PathChoiceRegistration(const PathChoiceKind& kind) { registered().add(kind); }

std::vector<const PathChoiceKind*> path_choices() { return registered().all(); }

const PathChoiceKind& path_choice_kind(std::string_view name) { return registered().named(name); }

std::unique_ptr<PathChoice> make_path_choice(const std::string& name, uint64_t seed,
                                             const PathProperties& path,
                                             const CongestionParameters& parameters) {
  const PathChoiceKind& kind = path_choice_kind(name);
  ParameterReader reader(kind.name, kind.parameters, {}, parameters);
  return kind.make(seed, path, reader);
}

CongestionParameters path_parameters_in_force(const std::string& name, const PathProperties& path,
                                              const CongestionParameters& parameters) {
  const PathChoiceKind& kind = path_choice_kind(name);
  ParameterReader reader(kind.name, kind.parameters, {}, parameters);
  kind.make(0, path, reader);
  return reader.values();
}

}  // namespace weft
