// Memory for many packet states of one program. Their parts that are cleared for every packet lie side by
// side in a region; their large headers lie in further regions, each at the same distance behind its state.
// Few packets have large headers, and pages that nobody has written to take no memory: a state of fabric.p4
// takes 800 bytes instead of 2,000.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft {

class StateSlab {
 public:
  // block_bytes: of a state in each region; apart_bytes: from a state to its headers in the next region, a
  // power of two of at least one huge page, with room for several blocks, and less than a block more;
  // large_regions: behind the first one. Throws std::bad_alloc.
  static StateSlab* make(size_t block_bytes, size_t apart_bytes, size_t large_regions);

  // Zeros, aligned to cache lines; null if all have been taken.
  void* take();
  // From here to a block that it has given.
  uint32_t offset_of(const void* block) const {
    return static_cast<uint32_t>(static_cast<const char*>(block) - reinterpret_cast<const char*>(this));
  }
  // The block is not used any more; for any thread.
  static void give_back(void* block, uint32_t offset_bytes) {
    reinterpret_cast<StateSlab*>(static_cast<char*>(block) - offset_bytes)->let_go();
  }
  // No more take(). The slab ends with its last block.
  void close() { let_go(); }

 private:
  StateSlab(size_t block_bytes, size_t first_region_bytes, size_t bytes);
  ~StateSlab() = default;
  void let_go();

  std::atomic<uint32_t> users_{1};  // who takes blocks, and the blocks
  size_t block_bytes_;
  size_t first_region_bytes_;
  size_t bytes_;
  size_t used_bytes_;
};

}  // namespace weft
