#include "memory/huge_page_regions.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace weft {

HugePageRegions::~HugePageRegions() {
  for (void* region : regions_) std::free(region);
}

void* HugePageRegions::take(size_t bytes, size_t alignment) {
  size_t start = (used_bytes_ + alignment - 1) / alignment * alignment;
  if (start + bytes > region_bytes_) {
    add_region(bytes);
    start = 0;
  }
  used_bytes_ = start + bytes;
  return static_cast<char*>(regions_.back()) + start;
}

void HugePageRegions::add_region(size_t least_bytes) {
  size_t region_bytes = std::clamp(2 * region_bytes_, kFirstRegionBytes, kHugePageBytes);
  while (region_bytes < least_bytes) region_bytes *= 2;
  regions_.reserve(regions_.size() + 1);
  void* region = std::aligned_alloc(std::min(region_bytes, kHugePageBytes), region_bytes);
  if (region == nullptr) throw std::bad_alloc();
  regions_.push_back(region);
  region_bytes_ = region_bytes;
  used_bytes_ = 0;
  // Advice only: without huge pages it is merely slower.
  if (region_bytes >= kHugePageBytes) madvise(region, region_bytes, MADV_HUGEPAGE);
}

}  // namespace weft
