// Entries of match tables, and the pool that a table keeps them in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "memory/cache_line.hpp"
#include "memory/prefetch_step.hpp"
#include "switch/abi.hpp"
#include "switch/tables/action_profile.hpp"

namespace weft {

struct TableEntry;

// What an entry holds that no packet looks at, unless entries share a tuple.
struct EntryFacts {
  TableEntry* next = nullptr;  // same slot of the same tuple, lower or equal priority
  int32_t priority = 0;
  uint32_t action_handle = 0;          // id of the member or group, for reading back
  const uint64_t* mask = nullptr;      // as wide as the key; shared by the table's entries
  std::unique_ptr<uint64_t[]> ranges;  // lows then highs, each as wide as the key; null without range fields
  std::unique_ptr<ActionData, FreeActionData> own_action;  // where the room behind the key is too small
  ActionMember* member = nullptr;
  int64_t idle_timeout_ns = 0;
  uint32_t key_words = 0;
  int32_t action_capacity_bytes = -1;  // of inline_action()'s data; -1: nothing follows the entry
};

// The key follows the entry, and room for its action's data the key: what a lookup and the action after it
// touch lies side by side, behind what they do not.
struct TableEntry : InCacheLines, EntryFacts, EntryView {
  TableEntry() : EntryView{{0, 0}, nullptr, 0, nullptr, nullptr} {}
  ~TableEntry();
  TableEntry(const TableEntry&) = delete;
  uint64_t* key() { return reinterpret_cast<uint64_t*>(this + 1); }
  const uint64_t* key() const { return reinterpret_cast<const uint64_t*>(this + 1); }
  ActionData* inline_action() { return reinterpret_cast<ActionData*>(key() + key_words); }

  // Makes this the entry's action.
  void set_own_action(uint32_t action_number, std::span<const uint8_t> data);
};

// Entries of one size, in blocks that grow with the table: no allocator's overhead each, and few pages to
// translate in a large table.
class EntryPool {
 public:
  EntryPool(uint32_t key_words, uint32_t action_capacity_bytes);
  EntryPool(const EntryPool&) = delete;

  TableEntry* make();
  void free(TableEntry* entry);
  // Prefetches all entries, once kObject has fetched where they are.
  void fetch(PrefetchStep step) const;

 private:
  struct GiveBack {
    size_t bytes = 0;
    void operator()(std::byte* memory) const { give_back_cache_lines(memory, bytes); }
  };
  struct Vacant {
    Vacant* next;
  };

  void add_block();

  uint32_t key_words_;
  int32_t action_capacity_bytes_;
  size_t entry_bytes_;
  size_t next_block_bytes_;
  std::vector<std::unique_ptr<std::byte[], GiveBack>> blocks_;
  std::byte* unused_ = nullptr;  // of the last block
  std::byte* unused_end_ = nullptr;
  Vacant* vacant_ = nullptr;
};

}  // namespace weft
