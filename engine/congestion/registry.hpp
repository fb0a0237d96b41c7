// The congestion controls that there are. Each registers itself from its own file in this folder
// (docs/howto/congestion-control.md), so that nothing else needs to name it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "congestion/congestion_control.hpp"
#include "congestion/parameters.hpp"

namespace weft {

// What an algorithm needs of the fabric and of receivers.
struct CongestionNeeds {
  bool telemetry = false;              // INT in data packets, echoed by acknowledgements
  bool marks = false;                  // CE marks of switches: as CNPs, or echoed by acknowledgements
  bool every_acknowledgement = false;  // an acknowledgement of each packet, not one for several
  bool one_path = false;               // all packets of a flow on one path
  bool notifications = false;          // switches notify senders of queues, and mark what exceeds the supply
};

// Where switches are to mark for an algorithm: at depths that take so much of the farthest pair's idle round
// trip to drain. All 0: as for DCQCN.
struct CongestionMarks {
  double kmin_round_trips = 0;
  double kmax_round_trips = 0;
  double pmax = 0;  // probability of a mark just below kmax
};

struct CongestionControlKind {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  CongestionNeeds needs;
  std::span<const CongestionParameter> parameters;
  std::span<const CongestionPreset> presets;  // the default first; none if all defaults stand in `parameters`
  std::unique_ptr<CongestionControl> (*make)(const PathProperties& path, ParameterReader& reader);
  CongestionMarks marks{};
};

// One object of namespace scope in each control's file.
class CongestionRegistration {
 public:
  // `kind` must outlive the program's use of it.
  explicit CongestionRegistration(const CongestionControlKind& kind);
};

// Makes a control from parameters that are read from the path and from what was given: for
// CongestionControlKind::make.
template <class Algorithm, class Parameters>
std::unique_ptr<CongestionControl> make_from_parameters(const PathProperties& path, ParameterReader& reader) {
  const Parameters parameters = Parameters::read(path, reader);
  reader.finish();
  return std::make_unique<Algorithm>(parameters);
}

// All, in alphabetical order of their names. Throws std::logic_error if two have one name.
std::vector<const CongestionControlKind*> congestion_controls();

// Loads a library that was made with congestion/own_registration.hpp, for good, and returns the names of the
// controls that it registers. The functions below know each by `prefix` and its name. Throws
// std::invalid_argument if it cannot be loaded or is no such library.
std::vector<std::string> load_congestion_controls(const std::string& library, const std::string& prefix);

// Throws std::invalid_argument for an unknown name, naming the valid ones.
const CongestionControlKind& congestion_control_kind(std::string_view name);

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
