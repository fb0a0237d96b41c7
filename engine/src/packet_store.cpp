#include "packet_store.hpp"

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft {

namespace {

constexpr size_t kUnpooled = PacketStore::kClassCapacities.size();
// Packets that stores exchange at a time; a store keeps up to two batches of a class.
constexpr size_t kBatch = 256;

// The smallest class of at least so many bytes, or kUnpooled.
size_t class_of(size_t capacity) {
  size_t size_class = 0;
  while (size_class < kUnpooled && PacketStore::kClassCapacities[size_class] < capacity) ++size_class;
  return size_class;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kRecycle = false;  // so that AddressSanitizer sees a packet used after its release
#else
constexpr bool kRecycle = true;
#endif

}  // namespace

PacketStore::PacketStore(std::shared_ptr<PacketDepot> depot)
    : most_idle_(depot == nullptr ? SIZE_MAX : 2 * kBatch), depot_(std::move(depot)) {}

PacketStore::~PacketStore() {
  for (FreeList& packets : free_)
    for (Packet* packet : packets) destroy(packet);
}

Packet* PacketStore::create(size_t capacity) {
  if (capacity > UINT32_MAX)
    throw std::length_error("a packet of " + std::to_string(capacity) + " bytes with headroom (below 2^32)");
  void* memory = ::operator new(sizeof(Packet) + capacity, std::align_val_t(alignof(Packet)));
  Packet* packet = new (memory) Packet();
  packet->capacity_ = static_cast<uint32_t>(capacity);
  return packet;
}

void PacketStore::destroy(Packet* packet) {
  packet->~Packet();
  ::operator delete(packet, std::align_val_t(alignof(Packet)));
}

Packet* PacketStore::take(size_t capacity) {
  const size_t size_class = class_of(capacity);
  if (size_class == kUnpooled) [[unlikely]]
    return create(capacity);
  FreeList& free = free_[size_class];
  if (free.empty()) [[unlikely]]
    return refill(size_class);
  Packet* packet = free.back();
  free.pop_back();
  return packet;
}

void PacketStore::give_back(Packet* packet) {
  const size_t size_class = class_of(packet->capacity_);
  if (!kRecycle || size_class == kUnpooled || packet->grown_ != nullptr) [[unlikely]] {
    destroy(packet);
    return;
  }
  FreeList& free = free_[size_class];
  if (free.size() >= most_idle_) [[unlikely]]
    spill(size_class);
  free.push_back(packet);
}

Packet* PacketStore::refill(size_t size_class) {
  if (depot_ != nullptr) {
    const std::lock_guard lock(depot_->mutex_);
    if (auto& batches = depot_->batches_[size_class]; !batches.empty()) {
      free_[size_class] = std::move(batches.back());
      batches.pop_back();
    }
  }
  FreeList& free = free_[size_class];
  if (free.empty()) return create(kClassCapacities[size_class]);
  Packet* packet = free.back();
  free.pop_back();
  return packet;
}

void PacketStore::spill(size_t size_class) {
  FreeList& free = free_[size_class];
  PacketDepot::Batch batch(free.end() - kBatch, free.end());
  free.resize(free.size() - kBatch);
  const std::lock_guard lock(depot_->mutex_);
  depot_->batches_[size_class].push_back(std::move(batch));
}

size_t PacketStore::idle_packets() const {
  size_t count = 0;
  for (const FreeList& packets : free_) count += packets.size();
  return count;
}

PacketDepot::~PacketDepot() {
  for (auto& batches : batches_)
    for (Batch& batch : batches)
      for (Packet* packet : batch) PacketStore::destroy(packet);
}

}  // namespace weft
