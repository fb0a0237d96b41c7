#include "packets/packet_memory.hpp"

#include <new>

namespace weft {

void PacketMemory::carve(size_t slot_bytes, std::vector<void*>& slots) {
  auto* block = static_cast<char*>(regions_.take(kBlockBytes, kBlockBytes));
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
