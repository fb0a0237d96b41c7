#include "packet.hpp"

#include <array>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft {

namespace {

// Storage sizes, headroom included: control packets and ACKs, frames of a 1,500-byte MTU, jumbo frames.
// Larger ones are allocated to measure and not kept.
constexpr std::array<uint32_t, 3> kClassCapacities = {512, 2304, 10240};
constexpr size_t kUnpooled = kClassCapacities.size();
constexpr size_t kTailroomBytes = 32;

// The smallest class of at least so many bytes, or kUnpooled.
size_t class_of(size_t capacity) {
  size_t size_class = 0;
  while (size_class < kUnpooled && kClassCapacities[size_class] < capacity) ++size_class;
  return size_class;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kRecycle = false;  // so that AddressSanitizer sees a packet used after its release
#else
constexpr bool kRecycle = true;
#endif

}  // namespace

struct PacketPoolState {
  std::array<std::vector<Packet*>, kClassCapacities.size()> free;
  uint64_t live = 0;
  uint64_t next_id = 0;
  bool abandoned = false;

  static Packet* create(uint32_t capacity) {
    void* memory = ::operator new(sizeof(Packet) + capacity, std::align_val_t(alignof(Packet)));
    Packet* packet = new (memory) Packet();
    packet->capacity_ = capacity;
    return packet;
  }

  static void destroy(Packet* packet) {
    packet->~Packet();
    ::operator delete(packet, std::align_val_t(alignof(Packet)));
  }

  static uint8_t* inline_storage(Packet* packet) {
    return reinterpret_cast<uint8_t*>(packet) + sizeof(Packet);
  }

  Packet* take(size_t size) {
    const size_t needed = Packet::kHeadroomBytes + size + kTailroomBytes;
    if (needed > UINT32_MAX)
      throw std::length_error("packet of " + std::to_string(size) + " bytes (at most 2^32)");
    uint8_t size_class = 0;
    while (size_class < kUnpooled && kClassCapacities[size_class] < needed) ++size_class;
    Packet* packet = nullptr;
    if (size_class < kUnpooled && !free[size_class].empty()) {
      packet = free[size_class].back();
      free[size_class].pop_back();
    } else {
      packet = create(size_class < kUnpooled ? kClassCapacities[size_class] : static_cast<uint32_t>(needed));
      packet->pool_ = this;
    }
    packet->storage_ = inline_storage(packet);
    packet->data_ = packet->storage_ + Packet::kHeadroomBytes;
    packet->size_ = static_cast<uint32_t>(size);
    packet->id = next_id++;
    ++live;
    return packet;
  }

  void give_back(Packet* packet) {
    if (packet->context != nullptr) {
      packet->context->release(packet->context);
      packet->context = nullptr;
    }
    --live;
    const size_t size_class = class_of(packet->capacity_);
    if (kRecycle && !abandoned && size_class < kUnpooled && packet->grown_ == nullptr) {
      packet->received_ps = 0;
      free[size_class].push_back(packet);
    } else {
      destroy(packet);
    }
    if (abandoned && live == 0) delete this;
  }

  ~PacketPoolState() {
    for (auto& packets : free)
      for (Packet* packet : packets) destroy(packet);
  }
};

void PacketDeleter::operator()(Packet* packet) const noexcept { packet->pool_->give_back(packet); }

PacketPtr Packet::clone() const {
  PacketPtr copy(pool_->take(size_));
  std::memcpy(copy->data_, data_, size_);
  copy->received_ps = received_ps;
  return copy;
}

void Packet::reserve(size_t headroom_bytes, size_t tailroom_bytes) {
  const size_t needed = headroom_bytes + size_ + tailroom_bytes;
  if (needed > UINT32_MAX) throw std::length_error("packet would need " + std::to_string(needed) + " bytes");
  auto grown = std::make_unique<uint8_t[]>(needed);
  std::memcpy(grown.get() + headroom_bytes, data_, size_);
  storage_ = grown.get();
  data_ = storage_ + headroom_bytes;
  capacity_ = static_cast<uint32_t>(needed);
  grown_ = std::move(grown);
}

void Packet::throw_trim(size_t n) const {
  throw std::out_of_range("trim_front(" + std::to_string(n) + ") of a packet of " + std::to_string(size_) +
                          " bytes");
}

PacketPool::PacketPool() : state_(new PacketPoolState()) {}

PacketPool::~PacketPool() {
  if (state_->live == 0)
    delete state_;
  else
    state_->abandoned = true;
}

PacketPtr PacketPool::allocate(size_t size) { return PacketPtr(state_->take(size)); }

PacketPtr PacketPool::copy_of(std::span<const uint8_t> bytes) {
  PacketPtr packet = allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(packet->data(), bytes.data(), bytes.size());
  return packet;
}

uint64_t PacketPool::live_packets() const { return state_->live; }

}  // namespace weft
