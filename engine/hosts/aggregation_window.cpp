#include "hosts/aggregation_window.hpp"

#include <algorithm>

namespace weft {
namespace {

constexpr double kLeast = 1.0;  // one message in flight: without it nothing would ever be heard again

}  // namespace

AggregationWindow::AggregationWindow(uint32_t slot_count) : most_(slot_count), window_(most_) {}

void AggregationWindow::on_result(uint64_t message, uint64_t next_message, bool is_marked) {
  ++results_;
  if (is_marked) ++marked_results_;
  // RFC 8257, section 3.5: growth goes on as without marks, by one message a window.
  window_ = std::min(most_, window_ + 1.0 / window_);
  if (message >= window_end_) end_window(next_message);
}

// Section 3.3: once a window, the estimate follows the share of marked results, and a mark reduces the window
// by half of the estimate.
void AggregationWindow::end_window(uint64_t next_message) {
  const double share = static_cast<double>(marked_results_) / static_cast<double>(results_);
  marked_share_ += kGain * (share - marked_share_);
  if (marked_results_ > 0) window_ = std::max(kLeast, window_ * (1.0 - marked_share_ / 2));
  window_end_ = next_message;
  results_ = marked_results_ = 0;
}

}  // namespace weft
