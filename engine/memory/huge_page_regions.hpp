// Memory in large regions, which the kernel is asked to put into huge pages: what lies side by side there is
// found in the processor's page tables together.
#pragma once

#include <cstddef>
#include <vector>

namespace weft {

constexpr size_t kHugePageBytes = 2 * 1024 * 1024;  // of x86-64 and AArch64

class HugePageRegions {
 public:
  HugePageRegions() = default;
  ~HugePageRegions();
  HugePageRegions(const HugePageRegions&) = delete;
  HugePageRegions& operator=(const HugePageRegions&) = delete;

  // Memory that is given back with all the rest, by the destructor. alignment: a power of two, at most 64
  // KiB. Throws std::bad_alloc.
  void* take(size_t bytes, size_t alignment);

 private:
  // Regions grow to a huge page, so that a small fabric stays small.
  static constexpr size_t kFirstRegionBytes = 64 * 1024;

  void add_region(size_t least_bytes);

  std::vector<void*> regions_;
  size_t region_bytes_ = 0;  // of the last one
  size_t used_bytes_ = 0;    // of the last one
};

}  // namespace weft
