#include "packets/packet_store.hpp"

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft {

namespace {

constexpr size_t kUnpooled = PacketStore::kClassCapacities.size();
// Packets that stores leave at the depot at a time; a store keeps up to two batches of a class.
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

PacketStore::PacketStore() : most_idle_(SIZE_MAX), depot_(std::make_shared<PacketDepot>()) {}

PacketStore::PacketStore(std::shared_ptr<PacketDepot> depot)
    : most_idle_(2 * kBatch), depot_(std::move(depot)) {}

PacketStore::~PacketStore() {
  // To the depot, whose memory they are: other stores may go on.
  for (size_t size_class = 0; size_class < kUnpooled; ++size_class)
    if (!free_[size_class].empty()) depot_->leave(size_class, std::move(free_[size_class]));
}

Packet* PacketStore::make(void* slot, size_t capacity) {
  Packet* packet = new (slot) Packet();
  packet->capacity_ = static_cast<uint32_t>(capacity);
  return packet;
}

Packet* PacketStore::take(size_t capacity) {
  const size_t size_class = class_of(capacity);
  if (size_class == kUnpooled || !kRecycle) [[unlikely]] {
    if (capacity > UINT32_MAX)
      throw std::length_error("a packet of " + std::to_string(capacity) +
                              " bytes with headroom (below 2^32)");
    return make(PacketMemory::take_single(sizeof(Packet) + capacity), capacity);
  }
  FreeList& free = free_[size_class];
  if (free.empty()) [[unlikely]]
    free = depot_->take_batch(size_class);
  Packet* packet = free.back();
  free.pop_back();
  return packet;
}

void PacketStore::give_back(Packet* packet) {
  const size_t size_class = class_of(packet->capacity_);
  if (!kRecycle || size_class == kUnpooled || packet->grown_ != nullptr) [[unlikely]] {
    give_back_unusual(packet);
    return;
  }
  FreeList& free = free_[size_class];
  if (free.size() >= most_idle_) [[unlikely]]
    spill(size_class);
  free.push_back(packet);
}

void PacketStore::give_back_unusual(Packet* packet) {
  const size_t slot_bytes = PacketMemory::slot_bytes(packet);
  if (slot_bytes == 0) {
    packet->~Packet();
    PacketMemory::give_back_single(packet);
  } else {
    packet->grown_.reset();
    packet->capacity_ = static_cast<uint32_t>(slot_bytes - sizeof(Packet));
    give_back(packet);
  }
}

void PacketStore::spill(size_t size_class) {
  FreeList& free = free_[size_class];
  FreeList batch(free.end() - kBatch, free.end());
  free.resize(free.size() - kBatch);
  depot_->leave(size_class, std::move(batch));
}

PacketDepot::Batch PacketDepot::take_batch(size_t size_class) {
  const std::lock_guard lock(mutex_);
  if (auto& batches = batches_[size_class]; !batches.empty()) {
    Batch batch = std::move(batches.back());
    batches.pop_back();
    return batch;
  }
  const size_t capacity = PacketStore::kClassCapacities[size_class];
  std::vector<void*> slots;
  memory_.carve(sizeof(Packet) + capacity, slots);
  Batch batch;
  // The first slot is the last of the list, and so the first to be taken.
  for (auto slot = slots.rbegin(); slot != slots.rend(); ++slot)
    batch.push_back(PacketStore::make(*slot, capacity));
  return batch;
}

void PacketDepot::leave(size_t size_class, Batch batch) {
  const std::lock_guard lock(mutex_);
  batches_[size_class].push_back(std::move(batch));
}

}  // namespace weft
