// The path choices that there are, by name. A queue pair without one keeps to a single path.
#pragma once

#include <memory>
#include <string>

#include "hosts/path_choice.hpp"

namespace weft {

// Every packet takes another path, pseudo-randomly, as in packet spraying (Dixit et al., "On the Impact of
// Packet Spraying in Data Center Networks", INFOCOM 2013).
class Spray final : public PathChoice {
 public:
  // `path_count` entropies are used, 1 to 2^14; which ones, and in which order, follows from the seed.
  // Throws std::invalid_argument for another count.
  Spray(uint64_t seed, uint32_t path_count);

  std::string_view name() const override { return "spray"; }
  uint16_t entropy(TimePs now, uint64_t sequence, bool retransmission) override;

 private:
  uint64_t seed_;
  uint64_t sent_ = 0;
  uint32_t path_count_;
};

// A path for each flowlet: packets that follow each other within `gap_ps` stay together (Sinha, Kandula and
// Katabi, "Harnessing TCP's Burstiness with Flowlet Switching", HotNets 2004).
class Flowlet final : public PathChoice {
 public:
  // Throws std::invalid_argument unless the gap is above 0.
  Flowlet(uint64_t seed, TimePs gap_ps);

  std::string_view name() const override { return "flowlet"; }
  uint16_t entropy(TimePs now, uint64_t sequence, bool retransmission) override;

 private:
  uint64_t seed_;
  uint64_t flowlet_ = 0;
  TimePs gap_ps_;
  TimePs last_sent_ps_ = 0;
};

}  // namespace weft
