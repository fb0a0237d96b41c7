// Pooled packet states of one program. A state travels with its packet from ingress to egress as the packet's
// context and comes back here when the packet is released, wherever that happens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "memory/cache_line.hpp"
#include "memory/prefetch.hpp"
#include "packets/packet.hpp"
#include "packets/packet_store.hpp"
#include "switch/abi.hpp"
#include "switch/program.hpp"
#include "switch/state_slab.hpp"

namespace weft {

class StatePool;

struct StateBlock : PacketContext {
  uint32_t slab_offset_bytes = 0;  // from its slab
  StatePool* pool;
  StateBlock* next_free;
  alignas(16) PacketState state;  // the program's state follows
};

// States that no packet has, for all switches that run the program and take their packets from one store (so
// one thread serves them): what the last packet has left is still in the processor's caches when the next one
// takes it, whichever switch that is at.
class alignas(64) StateStore {
 public:
  explicit StateStore(std::shared_ptr<const SwitchProgram> program) : program_(std::move(program)) {}
  ~StateStore() {
    while (free_ != nullptr) destroy(std::exchange(free_, free_->next_free));
    if (slab_ != nullptr) slab_->close();
  }
  StateStore(const StateStore&) = delete;
  StateStore& operator=(const StateStore&) = delete;

  // Contents are undefined, but for what large_headers_written says.
  StateBlock* take() {
    if (free_ == nullptr) [[unlikely]]
      return make();
    StateBlock* block = std::exchange(free_, free_->next_free);
    // While queues grow, the next one has not been used for long.
    if (taken_last_ && free_ != nullptr) prefetch(free_, block->used_bytes);
    taken_last_ = true;
    return block;
  }
  void give_back(StateBlock* block) {
    block->next_free = free_;
    free_ = block;
    taken_last_ = false;
  }
  static void destroy(StateBlock* block) {
    const uint32_t offset_bytes = block->slab_offset_bytes;
    block->~StateBlock();
    StateSlab::give_back(block, offset_bytes);
  }

 private:
  StateBlock* make() {
    constexpr size_t kHeadBytes = sizeof(StateBlock) - sizeof(PacketState);
    void* memory = slab_ == nullptr ? nullptr : slab_->take();
    if (memory == nullptr) {
      size_t block_bytes = kHeadBytes + program_->cleared_bytes;
      for (const uint32_t bytes : program_->large_parts_bytes)
        block_bytes = std::max(block_bytes, kHeadBytes + bytes);
      block_bytes = (block_bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
      StateSlab* next =
          StateSlab::make(block_bytes, program_->large_apart_bytes, program_->large_parts_bytes.size());
      if (slab_ != nullptr) slab_->close();
      slab_ = next;
      memory = slab_->take();
    }
    auto* block = new (memory) StateBlock();
    block->slab_offset_bytes = slab_->offset_of(memory);
    block->used_bytes =
        static_cast<uint16_t>(std::min<size_t>(kHeadBytes + program_->cleared_bytes, UINT16_MAX));
    return block;
  }

  std::shared_ptr<const SwitchProgram> program_;  // whose address is the store's key
  StateSlab* slab_ = nullptr;                     // where the next one is made
  StateBlock* free_ = nullptr;
  bool taken_last_ = false;  // and not given back
};

// The states of one switch's packets. Packets may outlive the switch, so the pool deletes itself with its
// last state after close().
class alignas(kApartBytes) StatePool : public InCacheLines {
 public:
  // packets: of the switch's engine, at whose store free states are kept.
  static StatePool* create(std::shared_ptr<const SwitchProgram> program, const PacketPool& packets) {
    return new StatePool(std::move(program), packets);
  }

  StateBlock* acquire() {
    StateBlock* block = store().take();
    block->release = &StatePool::release;
    block->pool = this;
    ++live_;
    return block;
  }

  // No more acquire(), and the engine may go.
  void close() {
    closed_ = true;
    if (live_ == 0) delete this;
  }

 private:
  StatePool(std::shared_ptr<const SwitchProgram> program, const PacketPool& packets)
      : packets_(packets), program_(std::move(program)) {}
  ~StatePool() = default;

  StateStore& store() {
    if (&packets_.store() != packet_store_) [[unlikely]]
      change_store();
    return *store_;
  }

  // Another thread serves the switch from now on, or it is the first time.
  void change_store() {
    packet_store_ = &packets_.store();
    store_ = packet_store_->shared<StateStore>(program_.get(),
                                               [this] { return std::make_shared<StateStore>(program_); });
  }

  static void release(PacketContext* context) noexcept {
    auto* block = static_cast<StateBlock*>(context);
    StatePool* pool = block->pool;
    --pool->live_;
    if (!pool->closed_) [[likely]] {
      pool->store().give_back(block);
      return;
    }
    StateStore::destroy(block);
    if (pool->live_ == 0) delete pool;
  }

  const PacketPool& packets_;
  std::shared_ptr<const SwitchProgram> program_;
  PacketStore* packet_store_ = nullptr;
  std::shared_ptr<StateStore> store_;
  uint64_t live_ = 0;
  bool closed_ = false;
};

struct CloseStatePool {
  void operator()(StatePool* pool) const { pool->close(); }
};

}  // namespace weft
