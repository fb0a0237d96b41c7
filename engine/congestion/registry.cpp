#include "congestion/registry.hpp"

#include <algorithm>
#include <stdexcept>

namespace weft {
namespace {

// Within a function, so that it is there before the first registration, whichever file is initialised first.
std::vector<const CongestionControlKind*>& registered() {
  static std::vector<const CongestionControlKind*> kinds;
  return kinds;
}

ParameterReader reader_of(const CongestionControlKind& kind, const CongestionParameters& parameters,
                          const std::string& preset) {
  return {kind.name, kind.parameters, kind.presets, parameters, preset};
}

}  // namespace

CongestionRegistration::CongestionRegistration(const CongestionControlKind& kind) {
  registered().push_back(&kind);
}

std::vector<const CongestionControlKind*> congestion_controls() {
  std::vector<const CongestionControlKind*> kinds = registered();
  std::ranges::sort(kinds, {}, &CongestionControlKind::name);
  const auto twice = std::ranges::adjacent_find(kinds, {}, &CongestionControlKind::name);
  if (twice != kinds.end()) {
    throw std::logic_error("two congestion controls are named '" + std::string((*twice)->name) + "'");
  }
  return kinds;
}

const CongestionControlKind& congestion_control_kind(std::string_view name) {
  std::string valid;
  for (const CongestionControlKind* kind : congestion_controls()) {
    if (kind->name == name) return *kind;
    valid += (valid.empty() ? "'" : ", '") + std::string(kind->name) + "'";
  }
  throw std::invalid_argument("unknown congestion control '" + std::string(name) + "' (valid: " + valid +
                              ")");
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
