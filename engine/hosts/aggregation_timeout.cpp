#include "hosts/aggregation_timeout.hpp"

#include <algorithm>

namespace weft {

AggregationTimeout::AggregationTimeout(TimePs least_ps, uint32_t most_doublings)
    : least_ps_(least_ps), most_doublings_(most_doublings) {}

uint32_t AggregationTimeout::doublings(uint32_t timeouts) const {
  return std::min(doublings_ + timeouts, most_doublings_);
}

void AggregationTimeout::on_result(uint64_t message, uint64_t next_message, TimePs elapsed_ps) {
  ++results_;
  shortest_ps_ = std::min(shortest_ps_, elapsed_ps);
  if (message < window_end_ || results_ < kLeastResults) return;
  doublings_ = 0;
  while (doublings_ < most_doublings_ && after(doublings_) < shortest_ps_) ++doublings_;
  window_end_ = next_message;
  results_ = 0;
  shortest_ps_ = kNone;
}

}  // namespace weft
