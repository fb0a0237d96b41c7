// A path for each flowlet: packets that follow each other within a gap stay together.
// Source: Sinha, Kandula and Katabi, "Harnessing TCP's Burstiness with Flowlet Switching", HotNets 2004.
#include "paths/random_paths.hpp"
#include "paths/registry.hpp"

namespace weft {
namespace {

constexpr CongestionParameter kParameters[] = {
    {"gap_ps", "the farthest pair's idle round trip", 1, kMaxParameterPs,
     "a pause so long lets the flow choose again", "HotNets 2004: longer than paths differ in delay"},
};

struct FlowletParameters {
  TimePs gap_ps = 0;

  static FlowletParameters read(const PathProperties& path, ParameterReader& reader) {
    FlowletParameters parameters{path.base_round_trip_ps};
    reader.read("gap_ps", parameters.gap_ps);
    return parameters;
  }
};

class Flowlet final : public PathChoice {
 public:
  Flowlet(uint64_t seed, const FlowletParameters& parameters) : seed_(seed), gap_ps_(parameters.gap_ps) {}

  std::string_view name() const override;
  uint16_t entropy(TimePs now, uint64_t /*sequence*/, bool /*retransmission*/) override {
    if (now - last_sent_ps_ > gap_ps_) ++flowlet_;
    last_sent_ps_ = now;
    return static_cast<uint16_t>(mixed(seed_, flowlet_) & kEntropyMask);
  }

 private:
  uint64_t seed_;
  uint64_t flowlet_ = 0;
  TimePs gap_ps_;
  TimePs last_sent_ps_ = 0;
};

constexpr PathChoiceKind kFlowlet = {
    .name = "flowlet",
    .summary = "a flow takes another path after a pause",
    .source = "Sinha, Kandula and Katabi, HotNets 2004",
    .parameters = kParameters,
    .make = &make_path_choice_from<Flowlet, FlowletParameters>,
};
const PathChoiceRegistration kRegistration(kFlowlet);

std::string_view Flowlet::name() const { return kFlowlet.name; }

}  // namespace
}  // namespace weft
