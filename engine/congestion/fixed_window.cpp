// A fixed window, normally one bandwidth-delay product; reacts to nothing.
#include <cstdint>
#include <stdexcept>

#include "congestion/registry.hpp"
#include "congestion/window_defaults.hpp"

namespace weft {
namespace {

constexpr CongestionParameter kParameters[] = {
    {"window_bytes",
     "the path's bandwidth-delay product, at least eight frames, and what is not acknowledged because "
     "acknowledgements come in steps",
     1, kMaxParameterBytes, "frame bytes that may be unacknowledged",
     "Weft; the bandwidth-delay product fills an idle path"},
    {"pacing_rate_bps", 0.0, 0, kMaxParameterBps,
     "rate at which frames leave; 0: as fast as the port takes them", "Weft"},
};

struct FixedWindowParameters {
  uint64_t window_bytes = 0;
  uint64_t pacing_rate_bps = 0;

  static FixedWindowParameters read(const PathProperties& path, ParameterReader& reader) {
    FixedWindowParameters parameters;
    parameters.window_bytes = path_filling_window_bytes(path);
    reader.read("window_bytes", parameters.window_bytes);
    reader.read("pacing_rate_bps", parameters.pacing_rate_bps);
    return parameters;
  }
};

class FixedWindow final : public CongestionControl {
 public:
  explicit FixedWindow(const FixedWindowParameters& parameters) : parameters_(parameters) {
    if (parameters_.window_bytes == 0) throw std::invalid_argument("window_bytes is 0 (valid: 1 or more)");
  }

  std::string_view name() const override;
  uint64_t window_bytes() const override { return parameters_.window_bytes; }
  uint64_t pacing_rate_bps() const override { return parameters_.pacing_rate_bps; }

 private:
  FixedWindowParameters parameters_;
};

constexpr CongestionControlKind kFixedWindow = {
    .name = "fixed-window",
    .summary = "a window that nothing changes, for fabrics without loss and for comparison",
    .source = "Weft",
    .needs = {},
    .parameters = kParameters,
    .presets = {},
    .make = &make_from_parameters<FixedWindow, FixedWindowParameters>,
};
const CongestionRegistration kRegistration(kFixedWindow);

std::string_view FixedWindow::name() const { return kFixedWindow.name; }

}  // namespace
}  // namespace weft
