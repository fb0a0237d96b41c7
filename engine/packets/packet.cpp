#include "packets/packet.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "packets/packet_store.hpp"

namespace weft {

namespace {
constexpr size_t kTailroomBytes = 32;
}

Packet* PacketPoolState::take(size_t size) {
  Packet* packet = store->take(Packet::kHeadroomBytes + size + kTailroomBytes);
  packet->pool_ = this;
  packet->storage_ = reinterpret_cast<uint8_t*>(packet) + sizeof(Packet);
  packet->data_ = packet->storage_ + Packet::kHeadroomBytes;
  packet->size_ = static_cast<uint32_t>(size);
  packet->received_ps = 0;
  packet->virtual_bytes_ = 0;
  packet->as_length_ = false;
  packet->damaged_ = false;
  packet->virtual_lane_ = Packet::kNoLane;
  packet->traffic_kind_ = 0;
  packet->packets_ = 1;
  packet->segment_offset_ = 0;
  packet->ends_segment_ = true;
  packet->once_words_ = 0;
  ++live;
  return packet;
}

void PacketPoolState::give_back(Packet* packet) {
  packet->release_context();
  store->give_back(packet);
  --live;
  if (abandoned && live == 0) delete this;
}

void PacketDeleter::operator()(Packet* packet) const noexcept { packet->pool_->give_back(packet); }

PacketPtr Packet::clone() const {
  PacketPtr copy(pool_->take(size_));
  std::memcpy(copy->data_, data_, size_);
  copy->virtual_bytes_ = virtual_bytes_;
  copy->as_length_ = as_length_;
  copy->virtual_lane_ = virtual_lane_;
  copy->traffic_kind_ = traffic_kind_;
  copy->packets_ = packets_;
  copy->segment_offset_ = segment_offset_;
  copy->ends_segment_ = ends_segment_;
  copy->once_words_ = once_words_;
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

PacketPool::PacketPool(std::shared_ptr<PacketStore> store) : state_(new PacketPoolState()) {
  use_store(std::move(store));
}

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

void PacketPool::use_store(std::shared_ptr<PacketStore> store) { state_->store = std::move(store); }

}  // namespace weft
