#include "time/load_sharing.hpp"

#include <algorithm>
#include <numeric>

namespace weft {

std::vector<Load> join_neighbours(const std::vector<Load>& single, const NeighbourLoads& neighbours) {
  std::vector<size_t> leaders(single.size());  // of each partition one that it is with, maybe itself
  std::iota(leaders.begin(), leaders.end(), size_t{0});
  const auto leader_of = [&leaders](size_t partition) {
    while (leaders[partition] != partition) partition = leaders[partition];
    return partition;
  };
  for (size_t partition = 0; partition < single.size(); ++partition) {
    uint64_t links = 0;
    for (const auto& [neighbour, count] : neighbours[partition]) links += count;
    for (const auto& [neighbour, count] : neighbours[partition]) {
      const auto [first, second] = std::minmax({leader_of(partition), leader_of(neighbour)});
      // Half of the links or more: a host goes with its leaf, a spine with none of its many leaves.
      if (2 * uint64_t{count} >= links) leaders[second] = first;
    }
  }
  std::vector<Load> joined(single.size());
  for (size_t partition = 0; partition < single.size(); ++partition)
    joined[leader_of(partition)].add(single[partition]);
  std::erase_if(joined, [](const Load& load) { return load.partitions.empty(); });
  return joined;
}

std::vector<Load> share_out(std::vector<Load> loads, size_t workers) {
  // The heaviest first, each to the least loaded worker (Graham's LPT rule). Stable, so that equal loads keep
  // an order.
  std::stable_sort(loads.begin(), loads.end(),
                   [](const Load& a, const Load& b) { return a.weight > b.weight; });
  std::vector<Load> shares(workers);
  for (const Load& load : loads)
    std::min_element(shares.begin(), shares.end(), [](const Load& a, const Load& b) {
      return a.weight < b.weight;
    })->add(load);
  return shares;
}

bool is_even(const std::vector<Load>& shares) {
  const auto [least, most] = std::minmax_element(
      shares.begin(), shares.end(), [](const Load& a, const Load& b) { return a.weight < b.weight; });
  // Within a tenth: workers wait for the slowest at the end of every window.
  return 10 * most->weight <= 11 * least->weight;
}

}  // namespace weft
