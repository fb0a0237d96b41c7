// Which worker serves what: even shares of partitions between which few links run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace weft {

// How many links join each partition with others, by their numbers.
using NeighbourLoads = std::vector<std::map<uint32_t, uint32_t>>;

// Partitions that one worker is to serve, and how much there is to do.
struct Load {
  size_t weight = 0;
  std::vector<uint32_t> partitions;

  void add(const Load& other) {
    weight += other.weight;
    partitions.insert(partitions.end(), other.partitions.begin(), other.partitions.end());
  }
};

// Puts loads of one partition each (the first of partition 0, and so on) together where half of the links of
// either lead to the other, as the hosts of a leaf and the leaf: what comes over a link from another worker
// comes from another core's caches.
std::vector<Load> join_neighbours(const std::vector<Load>& single, const NeighbourLoads& neighbours);

// One share for each worker, no load divided: the heaviest first, each to the worker with the least so far.
std::vector<Load> share_out(std::vector<Load> loads, size_t workers);

// Whether no worker would wait for another for long.
bool is_even(const std::vector<Load>& shares);

}  // namespace weft
