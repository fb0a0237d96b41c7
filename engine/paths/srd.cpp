// After SRD: packets are sprayed over some paths, and those that are slow or lose packets are avoided.
// Source: Shalev et al., "A Cloud-Optimized Transport Protocol for Elastic and Scalable HPC", IEEE Micro
// 40(6), 2020: the sender controls the path of each packet by its encapsulation, knows each path's round
// trip, and leaves overloaded and failed paths at once. The paper gives no algorithm: here each packet takes
// the better of two paths drawn at random (Mitzenmacher, "The Power of Two Choices in Randomized Load
// Balancing", IEEE TPDS 2001).
#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "paths/random_paths.hpp"
#include "paths/registry.hpp"

namespace weft {
namespace {

constexpr CongestionParameter kParameters[] = {
    {"paths", 64.0, 1, 1024, "entropies that packets are sprayed over", "assumed"},
    {"weight", 0.125, 0.001, 1, "of the newest round trip in a path's mean", "RFC 6298, as TCP's"},
    {"avoid_ps", "ten idle round trips of the farthest pair", 0, kMaxParameterPs,
     "a path that lost a packet is not taken for so long", "assumed"},
};

struct SrdParameters {
  uint32_t paths = 0;
  double weight = 0;
  TimePs avoid_ps = 0;

  static SrdParameters read(const PathProperties& path, ParameterReader& reader) {
    SrdParameters parameters;
    parameters.avoid_ps = 10 * path.base_round_trip_ps;
    reader.read("paths", parameters.paths);
    reader.read("weight", parameters.weight);
    reader.read("avoid_ps", parameters.avoid_ps);
    return parameters;
  }
};

class Srd final : public PathChoice {
 public:
  Srd(uint64_t seed, const SrdParameters& parameters)
      : seed_(seed), parameters_(parameters), paths_(parameters.paths) {
    std::set<uint16_t> entropies;
    for (uint64_t drawn = 0; entropies.size() < parameters.paths; ++drawn)
      entropies.insert(entropy_of_path(seed, drawn));
    auto path = paths_.begin();
    for (const uint16_t entropy : entropies) (path++)->entropy = entropy;
  }

  std::string_view name() const override;

  uint16_t entropy(TimePs now, uint64_t /*sequence*/, bool /*retransmission*/) override {
    const uint64_t drawn = mixed(seed_, ++sent_);
    const Path& one = paths_[(drawn >> 32) % paths_.size()];
    const Path& other = paths_[(drawn & 0xFFFFFFFF) % paths_.size()];
    return is_better(other, one, now) ? other.entropy : one.entropy;
  }

  void on_delivered(TimePs /*now*/, uint16_t entropy, TimePs round_trip_ps,
                    bool /*congestion_experienced*/) override {
    Path* path = path_of(entropy);
    if (path == nullptr || round_trip_ps <= 0) return;
    const auto newest_ps = static_cast<double>(round_trip_ps);
    if (path->mean_round_trip_ps == 0) path->mean_round_trip_ps = newest_ps;
    path->mean_round_trip_ps += parameters_.weight * (newest_ps - path->mean_round_trip_ps);
  }

  void on_lost(TimePs now, uint16_t entropy) override {
    if (Path* path = path_of(entropy)) path->avoided_until_ps = now + parameters_.avoid_ps;
  }

 private:
  struct Path {
    uint16_t entropy = 0;
    double mean_round_trip_ps = 0;  // 0: not known, and worth a try
    TimePs avoided_until_ps = 0;
  };

  static bool is_better(const Path& one, const Path& other, TimePs now) {
    const bool avoided = one.avoided_until_ps > now;
    if (avoided != (other.avoided_until_ps > now)) return !avoided;
    return one.mean_round_trip_ps < other.mean_round_trip_ps;
  }

  Path* path_of(uint16_t entropy) {
    const auto found = std::ranges::lower_bound(paths_, entropy, {}, &Path::entropy);
    return found != paths_.end() && found->entropy == entropy ? &*found : nullptr;
  }

  uint64_t seed_;
  SrdParameters parameters_;
  uint64_t sent_ = 0;
  std::vector<Path> paths_;  // in order of their entropies
};

constexpr PathChoiceKind kSrd = {
    .name = "srd",
    .summary = "packets are sprayed over some paths, the slow and the lossy ones avoided",
    .source = "after Shalev et al., IEEE Micro 40(6), 2020",
    .reorders = true,
    .parameters = kParameters,
    .make = &make_path_choice_from<Srd, SrdParameters>,
};
const PathChoiceRegistration kRegistration(kSrd);

std::string_view Srd::name() const { return kSrd.name; }

}  // namespace
}  // namespace weft
