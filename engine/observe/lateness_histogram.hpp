// How late events were served: counts in buckets of 1/16 of a power of two, so a percentile is within 6.25 %
// of the truth.
#pragma once

#include <array>
#include <cstdint>

#include "time/time.hpp"

namespace weft {

class LatenessHistogram {
 public:
  void record(TimePs lateness_ps);
  void reset() { *this = LatenessHistogram(); }
  uint64_t count() const { return count_; }
  TimePs max_ps() const { return max_ps_; }
  // Upper edge of the bucket that holds the given fraction (0 to 1) of all events, at most max_ps(); 0 when
  // empty.
  TimePs quantile_ps(double fraction) const;

 private:
  static constexpr int kSubBits = 4;
  static constexpr int kBuckets = (64 - kSubBits) << kSubBits;
  static int bucket_of(uint64_t value);
  static TimePs upper_edge_ps(int bucket);

  std::array<uint64_t, kBuckets> counts_{};
  uint64_t count_ = 0;
  TimePs max_ps_ = 0;
};

}  // namespace weft
