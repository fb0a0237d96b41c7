// Where the storage of packets comes from: blocks of one size of packet each, in huge pages, because
// thousands of packets that are touched once in a while would otherwise miss the processor's page tables each
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/huge_page_regions.hpp"

namespace weft {

class PacketMemory {
 public:
  static constexpr size_t kBlockBytes = 64 * 1024;

  // Room for as many slots of so many bytes as fit into one block, aligned to cache lines, appended to
  // `slots`. They are given back all together, with this. slot_bytes is a multiple of 64 and at most half a
  // block.
  void carve(size_t slot_bytes, std::vector<void*>& slots);
  // Of the slot that begins here; 0 if it is a single one.
  static size_t slot_bytes(const void* slot);
  // A slot by itself, of any size, and its end.
  static void* take_single(size_t bytes);
  static void give_back_single(void* slot);

 private:
  struct alignas(64) BlockHeader {
    size_t slot_bytes;
  };

  static BlockHeader* header_of(const void* slot);

  HugePageRegions regions_;
};

}  // namespace weft
