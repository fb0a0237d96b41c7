#include "congestion/registry.hpp"

#include <dlfcn.h>

#include <span>
#include <stdexcept>

#include "congestion/own_controls.hpp"
#include "congestion/registered_kinds.hpp"

namespace weft {
namespace {

// Within a function, so that it is there before the first registration, whichever file is initialised first.
RegisteredKinds<CongestionControlKind>& registered() {
  static RegisteredKinds<CongestionControlKind> kinds("congestion control", "congestion controls");
  return kinds;
}

ParameterReader reader_of(const CongestionControlKind& kind, const CongestionParameters& parameters,
                          const std::string& preset) {
  return {kind.name, kind.parameters, kind.presets, parameters, preset};
}

}  // namespace

CongestionRegistration::CongestionRegistration(const CongestionControlKind& kind) { registered().add(kind); }

std::vector<const CongestionControlKind*> congestion_controls() { return registered().all(); }

std::vector<std::string> load_congestion_controls(const std::string& library, const std::string& prefix) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::invalid_argument(dlerror());
  // Stays loaded: controls that it made may be anywhere.
  const auto registered_there =
      reinterpret_cast<OwnCongestionControls>(dlsym(handle, kOwnCongestionControls));
  if (registered_there == nullptr) throw std::invalid_argument(dlerror());
  size_t count = 0;
  const CongestionControlKind* const* kinds = registered_there(&count);
  std::vector<std::string> names;
  for (const CongestionControlKind* kind : std::span(kinds, count)) {
    names.emplace_back(kind->name);
    registered().add_own(prefix + names.back(), *kind);
  }
  return names;
}

const CongestionControlKind& congestion_control_kind(std::string_view name) {
  return registered().named(name);
}

CongestionParameters congestion_parameters_in_force(const std::string& name, const PathProperties& path,
                                                    const CongestionParameters& parameters,
                                                    const std::string& preset) {
  const CongestionControlKind& kind = congestion_control_kind(name);
  ParameterReader reader = reader_of(kind, parameters, preset);
  kind.make(path, reader);
  return reader.values();
}

std::unique_ptr<CongestionControl> make_congestion_control(const std::string& name,
                                                           const PathProperties& path,
                                                           const CongestionParameters& parameters,
                                                           const std::string& preset) {
  const CongestionControlKind& kind = congestion_control_kind(name);
  ParameterReader reader = reader_of(kind, parameters, preset);
  return kind.make(path, reader);
}

}  // namespace weft
