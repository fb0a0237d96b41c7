#include "hosts/memory_region.hpp"

#include <limits>
#include <stdexcept>
#include <string>

namespace weft {

uint32_t MemoryRegistry::add(uint64_t virtual_address, uint8_t* data, uint64_t length_bytes, uint8_t access,
                             std::shared_ptr<const void> owner) {
  if (length_bytes > std::numeric_limits<uint64_t>::max() - virtual_address) {
    throw std::invalid_argument("memory region of " + std::to_string(length_bytes) +
                                " bytes at virtual address " + std::to_string(virtual_address) +
                                " runs past the end of the address space");
  }
  const uint32_t rkey = next_rkey_++;
  regions_.emplace(rkey, MemoryRegion{rkey, virtual_address, data, length_bytes, access, std::move(owner)});
  return rkey;
}

void MemoryRegistry::remove(uint32_t rkey) {
  last_found_ = nullptr;
  if (regions_.erase(rkey) == 0)
    throw std::invalid_argument("no memory region has rkey " + std::to_string(rkey));
}

const MemoryRegion* MemoryRegistry::find(uint32_t rkey) const {
  if (last_found_ != nullptr && last_found_->rkey == rkey) return last_found_;
  const auto found = regions_.find(rkey);
  if (found == regions_.end()) return nullptr;
  last_found_ = &found->second;
  return last_found_;
}

const MemoryRegion* MemoryRegistry::find(uint32_t rkey, uint64_t virtual_address, uint64_t length_bytes,
                                         RemoteAccess access) const {
  const MemoryRegion* region = find(rkey);
  if (region == nullptr || (region->access & access) == 0 || virtual_address < region->virtual_address)
    return nullptr;
  const uint64_t offset = virtual_address - region->virtual_address;
  if (offset > region->length_bytes || length_bytes > region->length_bytes - offset) return nullptr;
  return region;
}

}  // namespace weft
