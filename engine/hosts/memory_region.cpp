#include "hosts/memory_region.hpp"

#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

namespace weft {

bool store(const MemoryRegion& region, uint64_t virtual_address, const uint8_t* from, size_t bytes) {
  const uint64_t offset = virtual_address - region.virtual_address;
  if (region.foreign != nullptr) return region.foreign->write(offset, from, bytes);
  if (region.data != nullptr) std::memcpy(region.data + offset, from, bytes);
  return true;
}

bool load(const MemoryRegion& region, uint64_t virtual_address, uint8_t* to, size_t bytes) {
  const uint64_t offset = virtual_address - region.virtual_address;
  if (region.foreign != nullptr) return region.foreign->read(offset, to, bytes);
  if (region.data != nullptr)
    std::memcpy(to, region.data + offset, bytes);
  else
    std::memset(to, 0, bytes);
  return true;
}

namespace {

void check_range(const MemoryRegion& region) {
  if (region.length_bytes > std::numeric_limits<uint64_t>::max() - region.virtual_address) {
    throw std::invalid_argument("memory region of " + std::to_string(region.length_bytes) +
                                " bytes at virtual address " + std::to_string(region.virtual_address) +
                                " runs past the end of the address space");
  }
}

}  // namespace

uint32_t MemoryRegistry::add(MemoryRegion region) {
  check_range(region);
  if (*keys_ == std::numeric_limits<uint32_t>::max())
    throw std::invalid_argument("all keys of the NIC's memory are used up");
  region.rkey = (*keys_)++;
  return regions_.emplace(region.rkey, std::move(region)).first->first;
}

uint32_t MemoryRegistry::add(uint64_t virtual_address, uint8_t* data, uint64_t length_bytes, uint8_t access,
                             std::shared_ptr<const void> owner) {
  return add(MemoryRegion{0, virtual_address, data, length_bytes, access, std::move(owner)});
}

uint32_t MemoryRegistry::add_foreign(uint64_t virtual_address, std::shared_ptr<ForeignMemory> memory,
                                     uint64_t length_bytes, uint8_t access) {
  ForeignMemory* const foreign = memory.get();
  if (foreign == nullptr) throw std::invalid_argument("foreign memory is null");
  return add(MemoryRegion{0, virtual_address, nullptr, length_bytes, access, std::move(memory), foreign});
}

void MemoryRegistry::add_foreign_again(MemoryRegistry& before, uint32_t rkey, uint64_t virtual_address,
                                       std::shared_ptr<ForeignMemory> memory, uint64_t length_bytes,
                                       uint8_t access) {
  ForeignMemory* const foreign = memory.get();
  if (foreign == nullptr) throw std::invalid_argument("foreign memory is null");
  MemoryRegion region{rkey, virtual_address, nullptr, length_bytes, access, std::move(memory), foreign};
  check_range(region);
  before.remove(rkey);
  regions_.emplace(rkey, std::move(region));
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
