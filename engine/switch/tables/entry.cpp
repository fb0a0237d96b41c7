#include "switch/tables/entry.hpp"

#include "memory/huge_page_regions.hpp"
#include "memory/prefetch.hpp"
#include "switch/meter.hpp"

namespace weft {

namespace {

constexpr size_t kFirstBlockEntries = 8;

}  // namespace

TableEntry::~TableEntry() { delete meter; }

void TableEntry::set_own_action(uint32_t action_number, std::span<const uint8_t> data) {
  if (static_cast<int64_t>(data.size()) <= action_capacity_bytes) {
    write_action(*inline_action(), action_number, data);
    own_action.reset();
    action = inline_action();
  } else {
    own_action = make_action_data(action_number, data, 0);
    action = own_action.get();
  }
}

EntryPool::EntryPool(uint32_t key_words, uint32_t action_capacity_bytes)
    : key_words_(key_words),
      action_capacity_bytes_(static_cast<int32_t>((action_capacity_bytes + 7) / 8 * 8)),
      entry_bytes_(sizeof(TableEntry) + key_words * sizeof(uint64_t) + sizeof(ActionData) +
                   static_cast<size_t>(action_capacity_bytes_)),
      next_block_bytes_(kFirstBlockEntries * entry_bytes_) {}

void EntryPool::add_block() {
  size_t size = next_block_bytes_;
  if (size < kHugePageBytes)
    next_block_bytes_ *= 2;
  else  // One page instead of 512: a lookup in a large table would miss the translation cache, too.
    size = std::max(kHugePageBytes, entry_bytes_ / kHugePageBytes * kHugePageBytes + kHugePageBytes);
  blocks_.emplace_back(static_cast<std::byte*>(take_cache_lines(size)), GiveBack{size});
  unused_ = blocks_.back().get();
  unused_end_ = unused_ + size;
}

TableEntry* EntryPool::make() {
  void* memory = vacant_;
  if (vacant_ != nullptr) {
    vacant_ = vacant_->next;
  } else {
    if (static_cast<size_t>(unused_end_ - unused_) < entry_bytes_) add_block();
    memory = unused_;
    unused_ += entry_bytes_;
  }
  auto* entry = new (memory) TableEntry();
  entry->key_words = key_words_;
  entry->action_capacity_bytes = action_capacity_bytes_;
  return entry;
}

void EntryPool::fetch(PrefetchStep step) const {
  if (step == PrefetchStep::kObject) {
    prefetch<CacheLevel::kSecond>(blocks_.data(), blocks_.size() * sizeof(blocks_[0]));
    return;
  }
  for (const auto& block : blocks_) {
    const std::byte* end = block.get() + block.get_deleter().bytes;
    if (unused_ >= block.get() && unused_ < end) end = unused_;
    prefetch<CacheLevel::kSecond>(block.get(), static_cast<size_t>(end - block.get()));
  }
}

void EntryPool::free(TableEntry* entry) {
  entry->~TableEntry();
  vacant_ = new (static_cast<void*>(entry)) Vacant{vacant_};
}

}  // namespace weft
