#include "collectives/aggregation_parts.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft {
namespace {

constexpr std::array<const char*, 6> kKindNames = {"all_reduce",     "reduce",     "broadcast",
                                                   "reduce_scatter", "all_gather", "barrier"};

void require(bool right, const std::string& problem) {
  if (!right) throw std::invalid_argument(problem);
}

}  // namespace

AggregationKind parse_aggregation_kind(const std::string& name) {
  const auto found = std::find(kKindNames.begin(), kKindNames.end(), name);
  if (found == kKindNames.end()) {
    throw std::invalid_argument("'" + name +
                                "' is no kind of aggregation (valid: all_reduce, reduce, broadcast, "
                                "reduce_scatter, all_gather, barrier)");
  }
  return static_cast<AggregationKind>(found - kKindNames.begin());
}

std::vector<AggregationPart> aggregation_parts(AggregationKind kind, std::span<const Elements> ranges,
                                               uint32_t rank, uint32_t root) {
  if (kind == AggregationKind::kBarrier)
    return {{.elements = {}, .flow = AggregationFlow::kSignal, .contributes = false}};
  require(is_parted(kind) ? rank < ranges.size() : ranges.size() == 1,
          "an aggregation of " + std::to_string(ranges.size()) + " ranges for rank " + std::to_string(rank) +
              " (valid: one, or where each rank has its own, one a rank)");
  std::vector<AggregationPart> parts;
  parts.reserve(ranges.size());
  for (uint32_t number = 0; number < ranges.size(); ++number) {
    AggregationPart part{.elements = ranges[number]};
    switch (kind) {
      case AggregationKind::kReduce:
        part.receiver = root;
        break;
      case AggregationKind::kBroadcast:
        part.flow = AggregationFlow::kMoved;
        part.contributes = rank == root;
        break;
      case AggregationKind::kReduceScatter:
        part.receiver = number;
        break;
      case AggregationKind::kAllGather:
        part.flow = AggregationFlow::kMoved;
        part.contributes = rank == number;
        break;
      case AggregationKind::kAllReduce:
      case AggregationKind::kBarrier:
        break;
    }
    parts.push_back(part);
  }
  return parts;
}

AggregationBlocks::AggregationBlocks(std::vector<AggregationPart> parts, size_t block_elements)
    : parts_(std::move(parts)), block_elements_(block_elements) {
  first_blocks_.reserve(parts_.size());
  for (const AggregationPart& part : parts_) {
    first_blocks_.push_back(count_);
    count_ += part.flow == AggregationFlow::kSignal
                  ? 1
                  : (part.elements.count() + block_elements - 1) / block_elements;
  }
}

AggregationBlocks::Block AggregationBlocks::operator[](uint64_t number) const {
  // The last part that starts at or before the block; an empty one shares its start with the next.
  const auto after = std::upper_bound(first_blocks_.begin(), first_blocks_.end(), number);
  const auto index = static_cast<size_t>(after - first_blocks_.begin()) - 1;
  const AggregationPart& part = parts_[index];
  const uint64_t first = part.elements.start + (number - first_blocks_[index]) * block_elements_;
  if (part.flow == AggregationFlow::kSignal) return {&part, part.elements.start, 0};
  return {&part, first, static_cast<size_t>(std::min<uint64_t>(block_elements_, part.elements.stop - first))};
}

}  // namespace weft
