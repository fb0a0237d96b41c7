// What each part of a reduction in the network is for: which workers add data to it, and which get its
// result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/element_table.hpp"

namespace weft {

enum class AggregationKind : uint8_t {
  kAllReduce,
  kReduce,         // the root gets the result
  kBroadcast,      // the root's data, for all
  kReduceScatter,  // each rank gets its own part of the result
  kAllGather,      // each rank's own part, for all
  kBarrier,        // no data
};

// Whether each rank has elements of its own.
inline bool is_parted(AggregationKind kind) {
  return kind == AggregationKind::kReduceScatter || kind == AggregationKind::kAllGather;
}

// Throws std::invalid_argument for a name that is none ("all_reduce", …).
AggregationKind parse_aggregation_kind(const std::string& name);

enum class AggregationFlow : uint8_t {
  kReduced,  // all workers' data are combined
  kMoved,    // one worker's data, bit by bit
  kSignal,   // one message without lanes, up and down
};

// Elements that go one way. All workers have the same parts, but for `contributes`.
struct AggregationPart {
  static constexpr uint32_t kAll = ~0u;

  Elements elements;         // of the request's buffers
  uint32_t receiver = kAll;  // rank that gets the result
  AggregationFlow flow = AggregationFlow::kReduced;
  bool contributes = true;  // this worker's data go up; else its packets have no lanes
};

// The parts of a collective for one rank. `ranges` are the ranks' own parts, in order, where each has one,
// else one range. Throws std::invalid_argument for a rank or root without a range.
std::vector<AggregationPart> aggregation_parts(AggregationKind kind, std::span<const Elements> ranges,
                                               uint32_t rank, uint32_t root);

// Cuts parts into blocks of so many elements, one for each message with data. A part begins a block.
class AggregationBlocks {
 public:
  struct Block {
    const AggregationPart* part;
    uint64_t first_element;
    size_t element_count;  // less than a whole block's at a part's end, 0 of a signal
  };

  AggregationBlocks(std::vector<AggregationPart> parts, size_t block_elements);

  uint64_t count() const { return count_; }
  Block operator[](uint64_t number) const;

 private:
  std::vector<AggregationPart> parts_;
  std::vector<uint64_t> first_blocks_;  // by part
  size_t block_elements_;
  uint64_t count_ = 0;
};

}  // namespace weft
