#include "tables.hpp"

#include <algorithm>
#include <new>

#include "switch_meter.hpp"

namespace weft {

TableEntry::TableEntry() : EntryView{nullptr, nullptr, {0, 0}, nullptr, 0} {}

TableEntry::~TableEntry() { delete meter; }

namespace {

// 64x64 to 128 bit multiply, folded: the mixing step of wyhash.
inline uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

constexpr uint64_t kHashSeed = 0x9e3779b97f4a7c15ULL;
constexpr uint64_t kHashMultiplier = 0xd6e8feb86659fd93ULL;

TableEntry* new_entry(uint32_t key_words) {
  void* memory = ::operator new(sizeof(TableEntry) + key_words * sizeof(uint64_t));
  return new (memory) TableEntry();
}

void delete_entry(TableEntry* entry) {
  entry->~TableEntry();
  ::operator delete(entry);
}

}  // namespace

MatchTable::Tuple::Tuple(std::span<const uint64_t> mask_words)
    : mask(mask_words.begin(), mask_words.end()), slots(8) {}

uint64_t MatchTable::Tuple::hash(const uint64_t* key) const {
  uint64_t state = kHashSeed;
  for (size_t i = 0; i < mask.size(); ++i) state = mix((key[i] & mask[i]) ^ state, kHashMultiplier ^ i);
  return state;
}

bool MatchTable::Tuple::same_key(const TableEntry& entry, const uint64_t* key) const {
  uint64_t difference = 0;
  for (size_t i = 0; i < mask.size(); ++i) difference |= entry.key()[i] ^ (key[i] & mask[i]);
  return difference == 0;
}

MatchTable::Tuple::Slot* MatchTable::Tuple::slot_of(const uint64_t* key, uint64_t key_hash) {
  const uint64_t last = slots.size() - 1;
  for (uint64_t i = key_hash & last;; i = (i + 1) & last) {
    Slot& slot = slots[i];
    if (slot.head == nullptr || (slot.hash == key_hash && same_key(*slot.head, key))) return &slot;
  }
}

void MatchTable::Tuple::grow() {
  std::vector<Slot> old(slots.size() * 2);
  old.swap(slots);
  const uint64_t last = slots.size() - 1;
  for (const Slot& slot : old) {
    if (slot.head == nullptr) continue;
    uint64_t i = slot.hash & last;
    while (slots[i].head != nullptr) i = (i + 1) & last;
    slots[i] = slot;
  }
}

void MatchTable::Tuple::remove_slot(Slot* slot) {
  // Backward shift deletion keeps every remaining key reachable from its home slot without tombstones.
  const uint64_t last = slots.size() - 1;
  uint64_t hole = static_cast<uint64_t>(slot - slots.data());
  for (uint64_t i = (hole + 1) & last; slots[i].head != nullptr; i = (i + 1) & last) {
    const uint64_t home = slots[i].hash & last;
    if (((i - home) & last) >= ((i - hole) & last)) {
      slots[hole] = slots[i];
      hole = i;
    }
  }
  slots[hole] = Slot{};
  --used;
}

MatchTable::MatchTable(uint32_t key_bytes, std::vector<RangeField> ranges)
    : key_bytes_(key_bytes), key_words_(words_for(key_bytes)), ranges_(std::move(ranges)) {}

MatchTable::~MatchTable() { clear(); }

bool MatchTable::in_ranges(const TableEntry& entry, const uint64_t* key) const {
  const auto* key_bytes = reinterpret_cast<const uint8_t*>(key);
  const auto* low = reinterpret_cast<const uint8_t*>(entry.ranges.get());
  const uint8_t* high = low + key_words_ * sizeof(uint64_t);
  for (const RangeField& range : ranges_) {
    const uint8_t* field = key_bytes + range.offset_bytes;
    if (std::memcmp(field, low + range.offset_bytes, range.size_bytes) < 0) return false;
    if (std::memcmp(field, high + range.offset_bytes, range.size_bytes) > 0) return false;
  }
  return true;
}

bool MatchTable::same_ranges(const TableEntry& entry, const EntryMatch& match) const {
  if (ranges_.empty()) return true;
  const uint64_t* low = entry.ranges.get();
  return std::equal(match.low.begin(), match.low.end(), low) &&
         std::equal(match.high.begin(), match.high.end(), low + key_words_);
}

TableEntry* MatchTable::lookup(const uint64_t* key) const {
  TableEntry* best = nullptr;
  for (const auto& tuple : tuples_) {
    if (best != nullptr && best->priority >= tuple->max_priority) break;
    TableEntry* entry = tuple->slot_of(key, tuple->hash(key))->head;
    if (!ranges_.empty())
      while (entry != nullptr && !in_ranges(*entry, key)) entry = entry->next;
    if (entry != nullptr && (best == nullptr || entry->priority > best->priority)) best = entry;
  }
  return best;
}

MatchTable::Tuple* MatchTable::tuple_for(std::span<const uint64_t> mask) const {
  for (const auto& tuple : tuples_)
    if (std::equal(mask.begin(), mask.end(), tuple->mask.begin())) return tuple.get();
  return nullptr;
}

TableEntry* MatchTable::find(const EntryMatch& match) const {
  Tuple* tuple = tuple_for(match.mask);
  if (tuple == nullptr) return nullptr;
  TableEntry* entry = tuple->slot_of(match.value.data(), tuple->hash(match.value.data()))->head;
  while (entry != nullptr && !(entry->priority == match.priority && same_ranges(*entry, match)))
    entry = entry->next;
  return entry;
}

TableEntry* MatchTable::insert(const EntryMatch& match) {
  TableEntry* entry = new_entry(key_words_);
  for (uint32_t i = 0; i < key_words_; ++i) entry->key()[i] = match.value[i] & match.mask[i];
  entry->priority = match.priority;
  if (!ranges_.empty()) {
    entry->ranges = std::make_unique<uint64_t[]>(2 * key_words_);
    std::copy(match.low.begin(), match.low.end(), entry->ranges.get());
    std::copy(match.high.begin(), match.high.end(), entry->ranges.get() + key_words_);
  }
  Tuple* tuple = tuple_for(match.mask);
  if (tuple == nullptr) {
    tuples_.push_back(std::make_unique<Tuple>(match.mask));
    tuple = tuples_.back().get();
  }
  if (tuple->used * 2 >= tuple->slots.size()) tuple->grow();
  const uint64_t hash = tuple->hash(entry->key());
  Tuple::Slot* slot = tuple->slot_of(entry->key(), hash);
  if (slot->head == nullptr) {
    slot->hash = hash;
    ++tuple->used;
  }
  TableEntry** link = &slot->head;
  while (*link != nullptr && (*link)->priority >= entry->priority) link = &(*link)->next;
  entry->next = *link;
  *link = entry;
  const bool reorder = tuple->priorities.empty() || entry->priority > tuple->max_priority;
  ++tuple->priorities[entry->priority];
  if (reorder) order_tuples();
  ++size_;
  return entry;
}

void MatchTable::erase(TableEntry* entry, std::span<const uint64_t> mask) {
  Tuple* tuple = tuple_for(mask);
  Tuple::Slot* slot = tuple->slot_of(entry->key(), tuple->hash(entry->key()));
  TableEntry** link = &slot->head;
  while (*link != entry) link = &(*link)->next;
  *link = entry->next;
  if (slot->head == nullptr) tuple->remove_slot(slot);
  const auto count = tuple->priorities.find(entry->priority);
  if (--count->second == 0) tuple->priorities.erase(count);
  delete_entry(entry);
  --size_;
  if (tuple->priorities.empty()) {
    std::erase_if(tuples_, [tuple](const auto& other) { return other.get() == tuple; });
  } else if (tuple->highest_priority() != tuple->max_priority) {
    order_tuples();
  }
}

void MatchTable::order_tuples() {
  for (const auto& tuple : tuples_) tuple->max_priority = tuple->highest_priority();
  std::stable_sort(tuples_.begin(), tuples_.end(),
                   [](const auto& a, const auto& b) { return a->max_priority > b->max_priority; });
}

void MatchTable::clear() {
  for (const auto& tuple : tuples_)
    for (auto& slot : tuple->slots)
      for (TableEntry* entry = slot.head; entry != nullptr;) {
        TableEntry* next = entry->next;
        delete_entry(entry);
        entry = next;
      }
  tuples_.clear();
  size_ = 0;
}

void MatchTable::describe(const EntryView& wanted, std::vector<uint8_t>& out) const {
  for_each([&](const TableEntry& entry, std::span<const uint64_t> mask) {
    if (static_cast<const EntryView*>(&entry) != &wanted) return;
    const auto append = [&out](const void* data, size_t size_bytes) {
      const auto* bytes = static_cast<const uint8_t*>(data);
      out.insert(out.end(), bytes, bytes + size_bytes);
    };
    append(&entry.priority, sizeof entry.priority);
    append(entry.key(), key_bytes_);
    append(mask.data(), key_bytes_);
    if (entry.ranges == nullptr) return;
    append(entry.ranges.get(), key_bytes_);
    append(entry.ranges.get() + key_words_, key_bytes_);
  });
}

}  // namespace weft
