#include "tcp/congestion/registry.hpp"

#include <algorithm>
#include <stdexcept>

namespace weft::tcp {
namespace {

// Within a function, so that it is there before the first registration, whichever file is initialised first.
std::vector<const CongestionKind*>& registered() {
  static std::vector<const CongestionKind*> kinds;
  return kinds;
}

}  // namespace

CongestionRegistration::CongestionRegistration(const CongestionKind& kind) { registered().push_back(&kind); }

std::vector<const CongestionKind*> congestion_kinds() {
  std::vector<const CongestionKind*> kinds = registered();
  std::ranges::sort(kinds, {}, &CongestionKind::name);
  return kinds;
}

std::unique_ptr<CongestionControl> make_congestion_control(const std::string& name,
                                                           const CongestionParameters& parameters) {
  std::string valid;
  for (const CongestionKind* kind : congestion_kinds()) {
    if (kind->name == name) {
      ParameterReader reader(kind->name, kind->parameters, {}, parameters);
      auto made = kind->make(reader);
      reader.finish();
      return made;
    }
    valid += (valid.empty() ? "'" : ", '") + std::string(kind->name) + "'";
  }
  throw std::invalid_argument("unknown TCP congestion control '" + name + "' (valid: " + valid + ")");
}

}  // namespace weft::tcp
