// REPS: packets take again the entropies whose packets came back unmarked, and random ones otherwise.
// Source: Bonato et al., "REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure
// Mitigation", 2024, section 3 (algorithms 1 and 2). What these leave open is as in the Ultra Ethernet
// Consortium's simulator (uet-htsim, uec_mp.cpp and buffer_reps.h).
#include <cstdint>
#include <vector>

#include "congestion/window_defaults.hpp"
#include "paths/random_paths.hpp"
#include "paths/registry.hpp"

namespace weft {
namespace {

constexpr CongestionParameter kParameters[] = {
    {"paths", kEntropyMask + 1.0, 1, kEntropyMask + 1.0, "entropies that random packets draw from",
     "Weft; all 65,536 in REPS, section 3"},
    {"buffer_entropies", 8.0, 1, 65'536, "entropies that are remembered", "REPS, section 3.1"},
    {"exploring_packets", "the path's bandwidth-delay product", 0, 1e9,
     "first packets of a connection, all random", "REPS, algorithm 2"},
    {"freezing_ps", 1e10, 0, kMaxParameterPs,
     "after a retransmission timeout only remembered entropies are used for so long; 0: never",
     "uet-htsim, buffer_reps.cpp: 10 ms"},
    {"exploring_packets_after_freezing", 16.0, 0, 1e9, "random packets when that is over",
     "uet-htsim, uec_mp.cpp"},
};

struct RepsParameters {
  uint32_t paths = 0;
  uint32_t buffer_entropies = 0;
  uint64_t exploring_packets = 0;
  TimePs freezing_ps = 0;
  uint64_t exploring_packets_after_freezing = 0;

  static RepsParameters read(const PathProperties& path, ParameterReader& reader) {
    RepsParameters parameters;
    parameters.exploring_packets =
        path.frame_bytes == 0 ? 1 : static_cast<uint64_t>(bandwidth_delay_product_packets(path));
    reader.read("paths", parameters.paths);
    reader.read("buffer_entropies", parameters.buffer_entropies);
    reader.read("exploring_packets", parameters.exploring_packets);
    reader.read("freezing_ps", parameters.freezing_ps);
    reader.read("exploring_packets_after_freezing", parameters.exploring_packets_after_freezing);
    return parameters;
  }
};

class Reps final : public PathChoice {
 public:
  Reps(uint64_t seed, const RepsParameters& parameters)
      : seed_(seed),
        parameters_(parameters),
        exploring_(parameters.exploring_packets),
        remembered_(parameters.buffer_entropies) {}

  std::string_view name() const override;

  uint16_t entropy(TimePs /*now*/, uint64_t /*sequence*/, bool /*retransmission*/) override {
    if (exploring_ > 0) {
      --exploring_;
      return random();
    }
    if (is_frozen() && count_ > 0) return take_again();
    return fresh_ > 0 ? take_oldest() : random();
  }

  void on_delivered(TimePs now, uint16_t entropy, TimePs /*round_trip_ps*/,
                    bool congestion_experienced) override {
    thaw(now);
    if (!congestion_experienced) remember(entropy);
  }

  // Silence is what a failed path leaves. Congestion loses packets, too, and their successors say so.
  void on_timeout(TimePs now) override {
    if (parameters_.freezing_ps > 0 && !is_frozen() && exploring_ == 0)
      frozen_until_ps_ = now + parameters_.freezing_ps;
    thaw(now);
  }

 private:
  struct Remembered {
    uint16_t entropy = 0;
    bool fresh = false;
  };

  bool is_frozen() const { return frozen_until_ps_ != kNever; }
  uint16_t random() { return entropy_of_path(seed_, mixed(seed_, ++drawn_) % parameters_.paths); }

  // Algorithm 1.
  void remember(uint16_t entropy) {
    if (!remembered_[head_].fresh) ++fresh_;
    remembered_[head_] = {entropy, true};
    head_ = (head_ + 1) % remembered_.size();
    if (count_ < remembered_.size()) ++count_;
  }

  // The fresh ones stand together, before head_.
  uint16_t take_oldest() {
    Remembered& oldest = remembered_[(head_ + remembered_.size() - fresh_) % remembered_.size()];
    oldest.fresh = false;
    --fresh_;
    return oldest.entropy;
  }

  // In turn, fresh or not: in a fabric that has lost paths these are known to work.
  uint16_t take_again() {
    Remembered& next = remembered_[turn_ % count_];
    turn_ = (turn_ + 1) % count_;
    return next.entropy;
  }

  void thaw(TimePs now) {
    if (!is_frozen() || now <= frozen_until_ps_) return;
    frozen_until_ps_ = kNever;
    remembered_.assign(remembered_.size(), {});
    head_ = count_ = fresh_ = turn_ = 0;
    exploring_ = parameters_.exploring_packets_after_freezing;
  }

  uint64_t seed_;
  RepsParameters parameters_;
  uint64_t drawn_ = 0;
  uint64_t exploring_;
  std::vector<Remembered> remembered_;  // a ring
  size_t head_ = 0;                     // where the next one goes
  size_t count_ = 0;
  size_t fresh_ = 0;
  size_t turn_ = 0;
  TimePs frozen_until_ps_ = kNever;  // kNever: not frozen
};

constexpr PathChoiceKind kReps = {
    .name = "reps",
    .summary = "packets take again the paths whose packets came back unmarked",
    .source = "Bonato et al., 2024",
    .reorders = true,
    .marks = true,
    .parameters = kParameters,
    .make = &make_path_choice_from<Reps, RepsParameters>,
};
const PathChoiceRegistration kRegistration(kReps);

std::string_view Reps::name() const { return kReps.name; }

}  // namespace
}  // namespace weft
