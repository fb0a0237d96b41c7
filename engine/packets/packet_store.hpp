// Storage of packets that are not in use, for the pools of one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "packets/packet.hpp"
#include "packets/packet_memory.hpp"

namespace weft {

// What stores of several threads share: the memory, and what they have too much of. Packets made by one
// thread and released by another would otherwise pile up there.
class PacketDepot;

class alignas(64) PacketStore {
 public:
  // Storage sizes, headroom included: headers alone (ACKs, payloads as lengths), such headers with telemetry
  // for INT's five hops, small frames, those of a 1,500-byte MTU, jumbo frames.
  // Larger ones are allocated to measure and not kept.
  static constexpr std::array<uint32_t, 5> kClassCapacities = {192, 320, 512, 2304, 10240};

  // With a depot of its own.
  PacketStore();
  explicit PacketStore(std::shared_ptr<PacketDepot> depot);
  ~PacketStore();
  PacketStore(const PacketStore&) = delete;
  PacketStore& operator=(const PacketStore&) = delete;

  // A packet with room for so many bytes in all. Throws std::length_error beyond 2^32.
  Packet* take(size_t capacity);
  void give_back(Packet* packet);

  // What users of this store share beside packets: the T of this key, made by make() if nobody has it. The
  // key must be of that T alone as long as anyone holds it.
  template <class T, class Make>
  std::shared_ptr<T> shared(const void* key, Make make) {
    std::erase_if(shared_, [](const Shared& other) { return other.value.expired(); });
    for (const Shared& other : shared_)
      if (other.key == key) return std::static_pointer_cast<T>(other.value.lock());
    std::shared_ptr<T> made = make();
    shared_.push_back({key, made});
    return made;
  }

 private:
  friend class PacketDepot;
  using FreeList = std::vector<Packet*>;
  struct Shared {
    const void* key;
    std::weak_ptr<void> value;
  };

  static Packet* make(void* slot, size_t capacity);
  void spill(size_t size_class);
  void give_back_unusual(Packet* packet);

  std::array<FreeList, kClassCapacities.size()> free_;
  size_t most_idle_;  // of a class, before some go to the depot
  std::shared_ptr<PacketDepot> depot_;
  std::vector<Shared> shared_;
};

class PacketDepot {
 public:
  PacketDepot() = default;
  PacketDepot(const PacketDepot&) = delete;
  PacketDepot& operator=(const PacketDepot&) = delete;

 private:
  friend class PacketStore;
  using Batch = std::vector<Packet*>;

  // A batch that another store has left, or new packets.
  Batch take_batch(size_t size_class);
  void leave(size_t size_class, Batch batch);

  std::mutex mutex_;
  std::array<std::vector<Batch>, PacketStore::kClassCapacities.size()> batches_;
  PacketMemory memory_;
};

}  // namespace weft
