// Registered memory: what a peer may write to and read from, by rkey and virtual address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "hosts/foreign_memory.hpp"

namespace weft {

// What peers may do with a region.
enum RemoteAccess : uint8_t { kRemoteWrite = 1, kRemoteRead = 2, kRemoteAtomic = 4 };
constexpr uint8_t kAnyRemoteAccess = kRemoteWrite | kRemoteRead | kRemoteAtomic;

// A range of virtual addresses backed by a buffer, which the owner or else the caller keeps alive. A null
// buffer is a sink: accesses are checked and counted, what is written is discarded, what is read is zeros.
struct MemoryRegion {
  uint32_t rkey = 0;
  uint64_t virtual_address = 0;
  uint8_t* data = nullptr;
  uint64_t length_bytes = 0;
  uint8_t access = kRemoteWrite;      // of RemoteAccess
  std::shared_ptr<const void> owner;  // keeps the buffer alive while it is registered
  ForeignMemory* foreign = nullptr;   // in place of the buffer: no sink then
};

// Both copy to or from the region, whose range of addresses has been checked; from a sink come zeros. They
// return false if foreign memory is not there.
bool store(const MemoryRegion& region, uint64_t virtual_address, const uint8_t* from, size_t bytes);
bool load(const MemoryRegion& region, uint64_t virtual_address, uint8_t* to, size_t bytes);

// A protection domain of a NIC. No two domains of a NIC give out the same key.
class MemoryRegistry {
 public:
  MemoryRegistry() = default;
  // One more domain of the NIC that has `other`.
  static MemoryRegistry beside(const MemoryRegistry& other) { return MemoryRegistry(other.keys_); }
  MemoryRegistry(const MemoryRegistry&) = delete;
  MemoryRegistry& operator=(const MemoryRegistry&) = delete;

  // Registers a buffer and returns its rkey. Keys are never reused, so a stale one is refused.
  // Throws std::invalid_argument if the range of virtual addresses wraps, or if the keys are used up.
  uint32_t add(uint64_t virtual_address, uint8_t* data, uint64_t length_bytes, uint8_t access = kRemoteWrite,
               std::shared_ptr<const void> owner = nullptr);
  // The same for foreign memory, which begins at `virtual_address`.
  uint32_t add_foreign(uint64_t virtual_address, std::shared_ptr<ForeignMemory> memory, uint64_t length_bytes,
                       uint8_t access = kRemoteWrite);
  // Registers foreign memory under the key of a region of `before`, this domain or another of the NIC, in its
  // place. Throws as these; then the region of before is as it was.
  void add_foreign_again(MemoryRegistry& before, uint32_t rkey, uint64_t virtual_address,
                         std::shared_ptr<ForeignMemory> memory, uint64_t length_bytes, uint8_t access);
  // Throws std::invalid_argument if the rkey is unknown.
  void remove(uint32_t rkey);

  // The region that grants a peer this access to [virtual_address, +length_bytes), null if the rkey is
  // unknown, the range is not wholly inside or the access is not allowed.
  const MemoryRegion* find(uint32_t rkey, uint64_t virtual_address, uint64_t length_bytes,
                           RemoteAccess access) const;
  // The region of an rkey, null if unknown.
  const MemoryRegion* find(uint32_t rkey) const;

 private:
  explicit MemoryRegistry(std::shared_ptr<uint32_t> keys) : keys_(std::move(keys)) {}
  uint32_t add(MemoryRegion region);

  std::unordered_map<uint32_t, MemoryRegion> regions_;
  mutable const MemoryRegion* last_found_ = nullptr;  // one packet after the other asks for the same
  std::shared_ptr<uint32_t> keys_ = std::make_shared<uint32_t>(0x100);  // the next, for all of the NIC's
};

}  // namespace weft
