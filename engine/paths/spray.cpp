// Every packet takes another path, pseudo-randomly.
// Source: Dixit et al., "On the Impact of Packet Spraying in Data Center Networks", INFOCOM 2013.
#include "paths/random_paths.hpp"
#include "paths/registry.hpp"

namespace weft {
namespace {

constexpr CongestionParameter kParameters[] = {
    {"paths", kEntropyMask + 1.0, 1, kEntropyMask + 1.0, "entropies that packets draw from", "Weft"},
};

struct SprayParameters {
  uint32_t paths = 0;

  static SprayParameters read(const PathProperties& /*path*/, ParameterReader& reader) {
    SprayParameters parameters;
    reader.read("paths", parameters.paths);
    return parameters;
  }
};

class Spray final : public PathChoice {
 public:
  // Which entropies are used, and in which order, follows from the seed.
  Spray(uint64_t seed, const SprayParameters& parameters) : seed_(seed), paths_(parameters.paths) {}

  std::string_view name() const override;
  uint16_t entropy(TimePs /*now*/, uint64_t /*sequence*/, bool /*retransmission*/) override {
    return entropy_of_path(seed_, mixed(seed_, ++sent_) % paths_);
  }

 private:
  uint64_t seed_;
  uint64_t sent_ = 0;
  uint32_t paths_;
};

constexpr PathChoiceKind kSpray = {
    .name = "spray",
    .summary = "every packet takes another path, pseudo-randomly",
    .source = "Dixit et al., INFOCOM 2013",
    .reorders = true,
    .parameters = kParameters,
    .make = &make_path_choice_from<Spray, SprayParameters>,
};
const PathChoiceRegistration kRegistration(kSpray);

std::string_view Spray::name() const { return kSpray.name; }

}  // namespace
}  // namespace weft
