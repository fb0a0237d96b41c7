#include "observe/hop_latencies.hpp"

#include <algorithm>

namespace weft {
namespace {

constexpr uint32_t kTimestampMask = 0xFFFFFF;

uint64_t key_of(int32_t peer, int32_t plane, const roce::IntStack& stack) {
  const auto route = static_cast<uint64_t>(stack.path_id) << 4 |
                     static_cast<uint64_t>(stack.hop_count & 7) << 1 | static_cast<uint64_t>(stack.overflow);
  return static_cast<uint64_t>(static_cast<uint32_t>(peer)) << 32 |
         static_cast<uint64_t>(static_cast<uint16_t>(plane)) << 16 | route;
}

}  // namespace

void HopLatencies::record(int32_t peer, int32_t plane, const roce::IntStack& stack) {
  const size_t hop_count = std::min<size_t>(stack.hop_count, roce::kIntHops);
  if (hop_count == 0) return;
  const uint64_t key = key_of(peer, plane, stack);
  auto found = numbers_.find(key);
  if (found == numbers_.end()) {
    if (paths_.size() == kMostPaths) {
      ++stacks_beyond_limit_;
      return;
    }
    found = numbers_.emplace(key, paths_.size()).first;
    paths_.push_back({peer, plane, stack.path_id, static_cast<uint8_t>(hop_count), stack.overflow, 0, {}});
  }
  Path& path = paths_[found->second];
  ++path.stacks;
  for (size_t number = 0; number < hop_count; ++number) {
    Hop& hop = path.hops[number];
    hop.queue_cells += stack.hops[number].queue_cells;
    if (number == 0) continue;
    const uint32_t latency_ns =
        (stack.hops[number].timestamp_ns - stack.hops[number - 1].timestamp_ns) & kTimestampMask;
    hop.latency_ns += latency_ns;
    const auto edge = std::lower_bound(kEdgesNs.begin(), kEdgesNs.end(), latency_ns);
    ++hop.counts[static_cast<size_t>(edge - kEdgesNs.begin())];
  }
}

void HopLatencies::reset() {
  numbers_.clear();
  paths_.clear();
  stacks_beyond_limit_ = 0;
}

}  // namespace weft
