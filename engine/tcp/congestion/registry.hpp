// The congestion controls that TCP has. Each registers itself from its own file in this folder.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "congestion/parameters.hpp"
#include "tcp/congestion/congestion_control.hpp"

namespace weft::tcp {

struct CongestionKind {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  std::span<const CongestionParameter> parameters;
  std::unique_ptr<CongestionControl> (*make)(ParameterReader& reader);
};

// One object of namespace scope in each control's file.
class CongestionRegistration {
 public:
  // `kind` must outlive the program's use of it.
  explicit CongestionRegistration(const CongestionKind& kind);
};

// All, in alphabetical order of their names.
std::vector<const CongestionKind*> congestion_kinds();

// With the parameters given, the others by default. Throws std::invalid_argument for an unknown name or
// parameter or a value out of range, naming the valid ones.
std::unique_ptr<CongestionControl> make_congestion_control(const std::string& name,
                                                           const CongestionParameters& parameters = {});

}  // namespace weft::tcp
