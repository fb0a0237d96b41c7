#include "congestion/congestion_controls.hpp"

#include <stdexcept>
#include <utility>

#include "congestion/dcqcn.hpp"
#include "congestion/fixed_window.hpp"
#include "congestion/hpcc.hpp"
#include "congestion/swift.hpp"

namespace weft {
namespace {

using Maker = std::unique_ptr<CongestionControl> (*)(const PathProperties&, ParameterReader&);

// An algorithm is made from its parameters, and these from the path and what the user gave.
template <class Algorithm, class Parameters>
std::unique_ptr<CongestionControl> make(const PathProperties& path, ParameterReader& reader) {
  const Parameters parameters = Parameters::read(path, reader);
  reader.finish();
  return std::make_unique<Algorithm>(parameters);
}

constexpr std::pair<std::string_view, Maker> kMakers[] = {
    {"dcqcn", &make<Dcqcn, DcqcnParameters>},
    {"fixed-window", &make<FixedWindow, FixedWindowParameters>},
    {"hpcc", &make<Hpcc, HpccParameters>},
    {"swift", &make<Swift, SwiftParameters>},
};

Maker maker_of(const std::string& name) {
  std::string valid;
  for (const auto& [known, maker] : kMakers) {
    if (known == name) return maker;
    valid += (valid.empty() ? "'" : ", '") + std::string(known) + "'";
  }
  throw std::invalid_argument("unknown congestion control '" + name + "' (valid: " + valid + ")");
}

// Makes one to see what it asks for.
ParameterReader read_for_any_path(const std::string& name, const CongestionParameters& parameters) {
  constexpr PathProperties kAnyPath{100'000'000'000, 10 * kPsPerUs, 1100, 1};
  ParameterReader reader(name, parameters);
  maker_of(name)(kAnyPath, reader);
  return reader;
}

}  // namespace

std::vector<std::string_view> congestion_control_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, maker] : kMakers) names.push_back(name);
  return names;
}

std::set<std::string> congestion_parameter_names(const std::string& name) {
  const CongestionParameters none;
  return read_for_any_path(name, none).names();
}

std::span<const CongestionPreset> congestion_presets(const std::string& name) {
  const CongestionParameters none;
  return read_for_any_path(name, none).presets();
}

CongestionParameters congestion_parameters_in_force(const std::string& name, const PathProperties& path,
                                                    const CongestionParameters& parameters,
                                                    const std::string& preset) {
  ParameterReader reader(name, parameters, preset);
  maker_of(name)(path, reader);
  return reader.values();
}

std::unique_ptr<CongestionControl> make_congestion_control(const std::string& name,
                                                           const PathProperties& path,
                                                           const CongestionParameters& parameters,
                                                           const std::string& preset) {
  ParameterReader reader(name, parameters, preset);
  return maker_of(name)(path, reader);
}

}  // namespace weft
