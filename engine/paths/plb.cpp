// PLB: a flow leaves a path on which too many of its packets were marked for some round trips in a row.
// Source: Qureshi et al., "PLB: Congestion Signals are Simple and Effective for Network Load Balancing",
// SIGCOMM 2022, section 3; defaults of Linux (tcp_plb.c).
#include <cstdint>

#include "paths/random_paths.hpp"
#include "paths/registry.hpp"

namespace weft {
namespace {

constexpr CongestionParameter kParameters[] = {
    {"threshold", 0.5, 0, 1, "a round trip with a larger share of marked packets is congested",
     "PLB, SIGCOMM 2022, section 3.2; tcp_plb_cong_thresh of Linux: 128 of 256"},
    {"rounds", 12.0, 1, 1000, "congested round trips in a row after which the flow takes another path",
     "tcp_plb_rehash_rounds of Linux"},
    {"round_trip_ps", "the farthest pair's idle round trip", 1, kMaxParameterPs, "length of a round", "Weft"},
};

struct PlbParameters {
  double threshold = 0;
  uint32_t rounds = 0;
  TimePs round_trip_ps = 0;

  static PlbParameters read(const PathProperties& path, ParameterReader& reader) {
    PlbParameters parameters;
    parameters.round_trip_ps = path.base_round_trip_ps;
    reader.read("threshold", parameters.threshold);
    reader.read("rounds", parameters.rounds);
    reader.read("round_trip_ps", parameters.round_trip_ps);
    return parameters;
  }
};

class Plb final : public PathChoice {
 public:
  Plb(uint64_t seed, const PlbParameters& parameters)
      : seed_(seed), parameters_(parameters), entropy_(entropy_of_path(seed, 0)) {}

  std::string_view name() const override;
  uint16_t entropy(TimePs /*now*/, uint64_t /*sequence*/, bool /*retransmission*/) override {
    return entropy_;
  }
  void on_delivered(TimePs now, uint16_t entropy, TimePs /*round_trip_ps*/,
                    bool congestion_experienced) override {
    if (entropy != entropy_) return;
    ++delivered_;
    if (congestion_experienced) ++marked_;
    if (now < round_end_ps_) return;
    const bool congested =
        static_cast<double>(marked_) > parameters_.threshold * static_cast<double>(delivered_);
    congested_rounds_ = congested ? congested_rounds_ + 1 : 0;
    if (congested_rounds_ >= parameters_.rounds) {
      entropy_ = entropy_of_path(seed_, ++path_);
      congested_rounds_ = 0;
    }
    delivered_ = marked_ = 0;
    round_end_ps_ = now + parameters_.round_trip_ps;
  }

 private:
  uint64_t seed_;
  PlbParameters parameters_;
  uint64_t path_ = 0;
  uint16_t entropy_;
  uint32_t delivered_ = 0;
  uint32_t marked_ = 0;
  uint32_t congested_rounds_ = 0;
  TimePs round_end_ps_ = 0;
};

constexpr PathChoiceKind kPlb = {
    .name = "plb",
    .summary = "a flow leaves a path on which its packets are marked",
    .source = "Qureshi et al., SIGCOMM 2022",
    .marks = true,
    .parameters = kParameters,
    .make = &make_path_choice_from<Plb, PlbParameters>,
};
const PathChoiceRegistration kRegistration(kPlb);

std::string_view Plb::name() const { return kPlb.name; }

}  // namespace
}  // namespace weft
