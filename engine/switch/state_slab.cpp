#include "switch/state_slab.hpp"

#include <sys/mman.h>

#include <bit>
#include <new>

#include "memory/cache_line.hpp"

namespace weft {

namespace {

// Zeros that take memory only where they are written to. Null if there is no room.
char* map_aligned(size_t bytes, size_t alignment) {
  const size_t most = bytes + alignment;
  void* mapped =
      mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* first = static_cast<char*>(mapped);
  const size_t before = (alignment - reinterpret_cast<uintptr_t>(first) % alignment) % alignment;
  if (before != 0) munmap(first, before);
  munmap(first + before + bytes, alignment - before);
  return first + before;
}

}  // namespace

StateSlab* StateSlab::make(size_t block_bytes, size_t apart_bytes, size_t large_regions) {
  const size_t region_bytes = std::bit_floor(apart_bytes);
  const size_t bytes = region_bytes * (1 + large_regions);
  // The last block's headers of the last region must lie in it, too.
  const size_t first_region_bytes = region_bytes - large_regions * (apart_bytes - region_bytes);
  char* memory = map_aligned(bytes, region_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  // Advice only: without huge pages it is merely slower.
  madvise(memory, bytes, MADV_HUGEPAGE);
  return new (memory) StateSlab(block_bytes, first_region_bytes, bytes);
}

StateSlab::StateSlab(size_t block_bytes, size_t first_region_bytes, size_t bytes)
    : block_bytes_(block_bytes),
      first_region_bytes_(first_region_bytes),
      bytes_(bytes),
      used_bytes_(kCacheLineBytes) {
  static_assert(sizeof(StateSlab) <= kCacheLineBytes);
}

void* StateSlab::take() {
  if (used_bytes_ + block_bytes_ > first_region_bytes_) return nullptr;
  void* block = reinterpret_cast<char*>(this) + used_bytes_;
  used_bytes_ += block_bytes_;
  users_.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void StateSlab::let_go() {
  if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) munmap(this, bytes_);
}

}  // namespace weft
