// What packets have met at each hop of their paths, by the INT stacks that acknowledgements bring back: how
// long from the hop before, and how much waited behind them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "packets/roce_formats.hpp"

namespace weft {

class HopLatencies {
 public:
  // Upper edges of the buckets in nanoseconds; one bucket more is without.
  static constexpr std::array<uint32_t, 13> kEdgesNs = {1'000,     2'000,     5'000,     10'000,  20'000,
                                                        50'000,    100'000,   200'000,   500'000, 1'000'000,
                                                        2'000'000, 5'000'000, 10'000'000};
  // A host has so many paths, to all peers and over all planes; stacks of further ones are counted alone.
  static constexpr size_t kMostPaths = 1024;

  struct Hop {
    uint64_t latency_ns = 0;   // since the packets left the hop before, a sum; 0 at the first hop
    uint64_t queue_cells = 0;  // a sum
    std::array<uint64_t, kEdgesNs.size() + 1> counts{};  // by latency; 0 at the first hop
  };

  struct Path {
    int32_t peer = -1;
    int32_t plane = -1;
    uint16_t path_id = 0;
    uint8_t hop_count = 0;
    bool overflow = false;
    uint64_t stacks = 0;
    std::array<Hop, roce::kIntHops> hops{};
  };

  // A stack without hops says nothing. Differences of time stamps are modulo 2^24 ns.
  void record(int32_t peer, int32_t plane, const roce::IntStack& stack);
  void reset();
  const std::vector<Path>& paths() const { return paths_; }
  uint64_t stacks_beyond_limit() const { return stacks_beyond_limit_; }

 private:
  std::unordered_map<uint64_t, size_t> numbers_;
  std::vector<Path> paths_;
  uint64_t stacks_beyond_limit_ = 0;
};

}  // namespace weft
