#include "packet_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace weft {

namespace {
// A huge page of x86-64 and AArch64; the first regions are smaller, so that a small fabric stays small.
constexpr size_t kLargestRegion = 2 * 1024 * 1024;
}  // namespace

PacketMemory::~PacketMemory() {
  for (void* region : regions_) std::free(region);
}

char* PacketMemory::take_block() {
  if (region_used_ == region_bytes_) {
    region_bytes_ = region_bytes_ == 0 ? kBlockBytes : std::min(2 * region_bytes_, kLargestRegion);
    region_used_ = 0;
    regions_.reserve(regions_.size() + 1);
    void* region = std::aligned_alloc(region_bytes_, region_bytes_);
    if (region == nullptr) {
      region_bytes_ = 0;
      throw std::bad_alloc();
    }
    regions_.push_back(region);
    // Advice only: without huge pages it is merely slower.
    if (region_bytes_ == kLargestRegion) madvise(region, region_bytes_, MADV_HUGEPAGE);
  }
  char* block = static_cast<char*>(regions_.back()) + region_used_;
  region_used_ += kBlockBytes;
  return block;
}

void PacketMemory::carve(size_t slot_bytes, std::vector<void*>& slots) {
  char* block = take_block();
  new (block) BlockHeader{slot_bytes};
  for (size_t at = sizeof(BlockHeader); at + slot_bytes <= kBlockBytes; at += slot_bytes)
    slots.push_back(block + at);
}

PacketMemory::BlockHeader* PacketMemory::header_of(const void* slot) {
  return reinterpret_cast<BlockHeader*>(reinterpret_cast<uintptr_t>(slot) & ~(kBlockBytes - 1));
}

size_t PacketMemory::slot_bytes(const void* slot) { return header_of(slot)->slot_bytes; }

void* PacketMemory::take_single(size_t bytes) {
  void* block = ::operator new(sizeof(BlockHeader) + bytes, std::align_val_t{kBlockBytes});
  return new (block) BlockHeader{0} + 1;
}

void PacketMemory::give_back_single(void* slot) {
  ::operator delete(header_of(slot), std::align_val_t{kBlockBytes});
}

}  // namespace weft
