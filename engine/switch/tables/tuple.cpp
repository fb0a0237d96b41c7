#include "switch/tables/tuple.hpp"

#include <utility>

namespace weft {

namespace {

constexpr size_t kFirstSlots = 8;  // a window, at least

}  // namespace

Tuple::Tuple(std::vector<uint64_t> mask)
    : mask_(std::move(mask)), tags_(kFirstSlots + kWindow, kEmpty), heads_(kFirstSlots, nullptr) {}

void Tuple::set_tag(uint64_t slot, uint8_t tag) {
  tags_[slot] = tag;
  if (slot < kWindow) tags_[heads_.size() + slot] = tag;
}

// The key's slot, or the empty slot where it belongs.
uint64_t Tuple::slot_of(const uint64_t* key, uint64_t key_hash) const {
  const uint64_t last = heads_.size() - 1;
  uint64_t slot = key_hash & last;
  while (tags_[slot] != kEmpty && !(tags_[slot] == tag_of(key_hash) && agree(*heads_[slot], key)))
    slot = (slot + 1) & last;
  return slot;
}

void Tuple::add(TableEntry* entry) {
  if (used_ * 2 >= heads_.size()) grow();
  const uint64_t key_hash = hash(entry->key());
  const uint64_t slot = slot_of(entry->key(), key_hash);
  if (tags_[slot] == kEmpty) {
    set_tag(slot, tag_of(key_hash));
    ++used_;
  }
  TableEntry** link = &heads_[slot];
  while (*link != nullptr && (*link)->priority >= entry->priority) link = &(*link)->next;
  entry->next = *link;
  *link = entry;
  ++priorities_[entry->priority];
}

void Tuple::remove(TableEntry* entry) {
  const uint64_t slot = slot_of(entry->key(), hash(entry->key()));
  TableEntry** link = &heads_[slot];
  while (*link != entry) link = &(*link)->next;
  *link = entry->next;
  if (heads_[slot] == nullptr) remove_slot(slot);
  const auto count = priorities_.find(entry->priority);
  if (--count->second == 0) priorities_.erase(count);
}

void Tuple::grow() {
  std::vector<TableEntry*> old(heads_.size() * 2, nullptr);
  old.swap(heads_);
  tags_.assign(heads_.size() + kWindow, kEmpty);
  const uint64_t last = heads_.size() - 1;
  for (TableEntry* head : old) {
    if (head == nullptr) continue;
    const uint64_t key_hash = hash(head->key());
    uint64_t slot = key_hash & last;
    while (tags_[slot] != kEmpty) slot = (slot + 1) & last;
    set_tag(slot, tag_of(key_hash));
    heads_[slot] = head;
  }
}

void Tuple::remove_slot(uint64_t hole) {
  // Backward shift deletion keeps every remaining key reachable from its home slot without tombstones.
  const uint64_t last = heads_.size() - 1;
  for (uint64_t i = (hole + 1) & last; tags_[i] != kEmpty; i = (i + 1) & last) {
    const uint64_t home = hash(heads_[i]->key()) & last;
    if (((i - home) & last) >= ((i - hole) & last)) {
      set_tag(hole, tags_[i]);
      heads_[hole] = heads_[i];
      hole = i;
    }
  }
  set_tag(hole, kEmpty);
  heads_[hole] = nullptr;
  --used_;
}

}  // namespace weft
