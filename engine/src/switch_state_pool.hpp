// Pooled packet states of one program. A state travels with its packet from ingress to egress as the packet's
// context and comes back here when the packet is released, wherever that happens.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "packet.hpp"
#include "switch_abi.hpp"

namespace weft {

class StatePool;

struct StateBlock : PacketContext {
  StatePool* pool;
  StateBlock* next_free;
  alignas(16) PacketState state;  // the program's state follows
};

// Packets may outlive the switch, so the pool deletes itself with its last state after close().
class StatePool {
 public:
  static StatePool* create(uint32_t state_bytes) { return new StatePool(state_bytes); }

  uint32_t state_bytes() const { return state_bytes_; }
  uint64_t live_states() const { return live_; }

  // Contents are undefined, but for what large_headers_written says.
  StateBlock* acquire() {
    ++live_;
    if (free_ != nullptr) {
      StateBlock* block = free_;
      free_ = block->next_free;
      return block;
    }
    const size_t size = sizeof(StateBlock) - sizeof(PacketState) + state_bytes_;
    void* memory = ::operator new(size, std::align_val_t{64});
    auto* block = new (memory) StateBlock();
    std::memset(static_cast<void*>(block + 1), 0, size - sizeof(StateBlock));
    block->release = &StatePool::release;
    block->pool = this;
    return block;
  }

  // No more acquire().
  void close() {
    closed_ = true;
    if (live_ == 0) delete this;
  }

 private:
  explicit StatePool(uint32_t state_bytes) : state_bytes_(state_bytes) {}
  ~StatePool() {
    while (free_ != nullptr) {
      StateBlock* next = free_->next_free;
      free_->~StateBlock();
      ::operator delete(static_cast<void*>(free_), std::align_val_t{64});
      free_ = next;
    }
  }

  static void release(PacketContext* context) noexcept {
    auto* block = static_cast<StateBlock*>(context);
    StatePool* pool = block->pool;
    block->next_free = pool->free_;
    pool->free_ = block;
    --pool->live_;
    if (pool->closed_ && pool->live_ == 0) delete pool;
  }

  uint32_t state_bytes_;
  uint64_t live_ = 0;
  bool closed_ = false;
  StateBlock* free_ = nullptr;
};

struct CloseStatePool {
  void operator()(StatePool* pool) const { pool->close(); }
};

}  // namespace weft
