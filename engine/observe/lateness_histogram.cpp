#include "observe/lateness_histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weft {

int LatenessHistogram::bucket_of(uint64_t value) {
  if (value < (1u << kSubBits)) return static_cast<int>(value);
  const int shift = std::bit_width(value) - 1 - kSubBits;
  const auto sub_bucket = static_cast<int>((value >> shift) & ((1u << kSubBits) - 1));
  return ((shift + 1) << kSubBits) + sub_bucket;
}

TimePs LatenessHistogram::upper_edge_ps(int bucket) {
  if (bucket < (1 << kSubBits)) return bucket;
  const int shift = (bucket >> kSubBits) - 1;
  const uint64_t leading = (1ull << kSubBits) | (static_cast<uint64_t>(bucket) & ((1u << kSubBits) - 1));
  return static_cast<TimePs>(((leading + 1) << shift) - 1);
}

void LatenessHistogram::record(TimePs lateness_ps) {
  lateness_ps = std::max<TimePs>(lateness_ps, 0);
  ++counts_[bucket_of(static_cast<uint64_t>(lateness_ps))];
  ++count_;
  max_ps_ = std::max(max_ps_, lateness_ps);
}

TimePs LatenessHistogram::quantile_ps(double fraction) const {
  if (count_ == 0) return 0;
  const auto rank =
      static_cast<uint64_t>(std::ceil(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    seen += counts_[bucket];
    if (seen >= rank && seen > 0) return std::min(upper_edge_ps(bucket), max_ps_);
  }
  return max_ps_;
}

}  // namespace weft
