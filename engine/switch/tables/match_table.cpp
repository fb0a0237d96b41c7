#include "switch/tables/match_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "memory/prefetch.hpp"

namespace weft {

namespace {

// The leading bits that all values from low to high have in common, put into mask.
void add_common_prefix(const uint8_t* low, const uint8_t* high, uint8_t* mask, uint32_t size_bytes) {
  for (uint32_t i = 0; i < size_bytes; ++i) {
    const auto difference = static_cast<uint8_t>(low[i] ^ high[i]);
    mask[i] = static_cast<uint8_t>(0xFF << std::bit_width(difference));
    if (difference != 0) return;
  }
}

uint8_t whole_nibbles(uint8_t bits) {
  return static_cast<uint8_t>(((bits & 0xF0) == 0xF0 ? 0xF0 : 0) | ((bits & 0x0F) == 0x0F ? 0x0F : 0));
}

}  // namespace

MatchTable::MatchTable(uint32_t key_bytes, std::vector<RangeField> ranges, uint32_t action_capacity_bytes)
    : key_bytes_(key_bytes),
      key_words_(words_for(key_bytes)),
      ranges_(std::move(ranges)),
      pool_(key_words_, action_capacity_bytes) {}

MatchTable::~MatchTable() { clear(); }

// ---- lookup

bool MatchTable::matches(const TableEntry& entry, const uint64_t* key) const {
  uint64_t difference = 0;
  for (uint32_t i = 0; i < key_words_; ++i) difference |= (entry.key()[i] ^ key[i]) & entry.mask[i];
  if (difference != 0) return false;
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

TableEntry* MatchTable::lookup(const uint64_t* key) const {
  switch (key_words_) {
    case 1:
      return lookup_in_tuples<1>(key);
    case 2:
      return lookup_in_tuples<2>(key);
    default:
      return lookup_in_tuples<0>(key);
  }
}

template <size_t kWords>
TableEntry* MatchTable::lookup_unindexed(std::array<uint64_t, kWords> key) const {
  if (index_state_ == IndexState::kStale) {
    // Tuples that hold several masks compare each entry, which the index does not.
    const bool plain =
        std::none_of(order_.begin(), order_.end(), [](const Tuple* tuple) { return tuple->shared; });
    index_state_ = plain && size_ <= kMostIndexed ? IndexState::kReady : IndexState::kNone;
    if (index_state_ == IndexState::kReady) {
      index<kWords>().build(order_);
      // To prefetch every entry of such a table would evict what else the partition needs.
      recent_ = size_ > kMostFetched ? std::make_unique<RecentSlots>() : nullptr;
      return index<kWords>().find(key).entry;
    }
  }
  return lookup_in_tuples<kWords>(key.data());
}

template TableEntry* MatchTable::lookup_unindexed(std::array<uint64_t, 1>) const;
template TableEntry* MatchTable::lookup_unindexed(std::array<uint64_t, 2>) const;

template <size_t kWords>
TableEntry* MatchTable::lookup_in_tuples(const uint64_t* key) const {
  const size_t tuple_count = order_.size();
  // An exact table, or an LPM table of one prefix length.
  if (tuple_count == 1 && !order_[0]->shared) return order_[0]->chain<kWords>(key);
  TableEntry* best = nullptr;
  for (size_t i = 0; i < tuple_count; ++i) {
    // Tuples are in order of their highest priority, so none that follows has a better entry.
    if (best != nullptr && best->priority >= highest_priorities_[i]) break;
    const Tuple& tuple = *order_[i];
    TableEntry* entry = tuple.chain<kWords>(key);
    if (tuple.shared)
      while (entry != nullptr && !matches(*entry, key)) entry = entry->next;
    if (entry != nullptr && (best == nullptr || entry->priority > best->priority)) best = entry;
  }
  return best;
}

// ---- filing

MatchTable::FilingMasks MatchTable::filing_masks(WordsView mask, const uint64_t* low,
                                                 const uint64_t* high) const {
  FilingMasks masks;
  masks[kBits].assign(mask.begin(), mask.end());
  auto* bits = reinterpret_cast<uint8_t*>(masks[kBits].data());
  for (const RangeField& range : ranges_)
    add_common_prefix(reinterpret_cast<const uint8_t*>(low) + range.offset_bytes,
                      reinterpret_cast<const uint8_t*>(high) + range.offset_bytes, bits + range.offset_bytes,
                      range.size_bytes);
  masks[kNibbles] = masks[kBytes] = masks[kBits];
  auto* nibbles = reinterpret_cast<uint8_t*>(masks[kNibbles].data());
  auto* bytes = reinterpret_cast<uint8_t*>(masks[kBytes].data());
  for (uint32_t i = 0; i < key_bytes_; ++i) {
    nibbles[i] = whole_nibbles(bits[i]);
    bytes[i] = bits[i] == 0xFF ? 0xFF : 0;
  }
  return masks;
}

// The entry's key, in range fields its lowest value.
MatchTable::Words MatchTable::filing_key(const EntryMatch& match) const {
  Words key(key_words_);
  for (uint32_t i = 0; i < key_words_; ++i) key[i] = match.value[i] & match.mask[i];
  for (const RangeField& range : ranges_)
    std::memcpy(reinterpret_cast<uint8_t*>(key.data()) + range.offset_bytes,
                reinterpret_cast<const uint8_t*>(match.low.data()) + range.offset_bytes, range.size_bytes);
  return key;
}

Tuple* MatchTable::tuple_of(WordsView mask) const {
  const auto found = tuples_.find(mask);
  return found == tuples_.end() ? nullptr : found->second.get();
}

Tuple& MatchTable::make_tuple(const Words& mask) {
  const auto [place, made] = tuples_.try_emplace(mask);
  if (made) {
    place->second = std::make_unique<Tuple>(mask);
    place->second->shared = has_ranges();
    order_.push_back(place->second.get());
  }
  return *place->second;
}

Tuple& MatchTable::tuple_for_new(const EntryMatch& match, const uint64_t* key) {
  if (!has_ranges()) {  // then an entry's finest mask is its own
    if (Tuple* own = tuple_of(match.mask)) return *own;
    if (tuples_.size() < kFewTuples) return make_tuple(Words(match.mask.begin(), match.mask.end()));
  }
  const FilingMasks masks = filing_masks(match.mask, match.low.data(), match.high.data());
  if (Tuple* own = tuple_of(masks[kBits])) return *own;
  // Every tuple costs each lookup a hash. A table of many masks files entries under coarser ones, and
  // compares.
  if (tuples_.size() < kFewTuples) return make_tuple(masks[kBits]);
  has_coarse_ = true;
  for (const Grain grain : {kBytes, kNibbles}) {
    Tuple& tuple = make_tuple(masks[grain]);
    int length = 0;
    for (const TableEntry* entry = tuple.chain(key); entry != nullptr; entry = entry->next) ++length;
    if (length < kLongestSharedChain) {
      tuple.shared = true;
      return tuple;
    }
  }
  return make_tuple(masks[kBits]);
}

void MatchTable::order_tuples() {
  std::stable_sort(order_.begin(), order_.end(), [](const Tuple* a, const Tuple* b) {
    return a->highest_priority() > b->highest_priority();
  });
  highest_priorities_.clear();
  for (Tuple* tuple : order_) {
    highest_priorities_.push_back(tuple->highest_priority());
    tuple->likely_found = order_.size() == 1;
  }
}

// ---- entries

bool MatchTable::is_same(const TableEntry& entry, const EntryMatch& match) const {
  if (entry.priority != match.priority) return false;
  for (uint32_t i = 0; i < key_words_; ++i)
    if (entry.mask[i] != match.mask[i] || ((entry.key()[i] ^ match.value[i]) & match.mask[i]) != 0)
      return false;
  if (ranges_.empty()) return true;
  const uint64_t* low = entry.ranges.get();
  return std::equal(match.low.begin(), match.low.end(), low) &&
         std::equal(match.high.begin(), match.high.end(), low + key_words_);
}

TableEntry* MatchTable::find_in(const Tuple* tuple, const uint64_t* key, const EntryMatch& match) const {
  if (tuple == nullptr) return nullptr;
  for (TableEntry* entry = tuple->chain(key); entry != nullptr; entry = entry->next)
    if (is_same(*entry, match)) return entry;
  return nullptr;
}

TableEntry* MatchTable::find(const EntryMatch& match) const {
  const Words key = filing_key(match);
  if (!has_ranges() && !has_coarse_) return find_in(tuple_of(match.mask), key.data(), match);
  for (const Words& mask : filing_masks(match.mask, match.low.data(), match.high.data()))
    if (TableEntry* entry = find_in(tuple_of(mask), key.data(), match)) return entry;
  return nullptr;
}

TableEntry* MatchTable::insert(const EntryMatch& match) {
  index_state_ = IndexState::kStale;
  const Words key = filing_key(match);
  TableEntry* entry = pool_.make();
  std::copy(key.begin(), key.end(), entry->key());
  entry->priority = match.priority;
  auto mask = masks_.find(match.mask);
  if (mask == masks_.end()) mask = masks_.try_emplace(Words(match.mask.begin(), match.mask.end())).first;
  // Entries share their masks: a table of a million entries has a few.
  ++mask->second;
  entry->mask = mask->first.data();
  if (has_ranges()) {
    entry->ranges = std::make_unique<uint64_t[]>(2 * key_words_);
    std::copy(match.low.begin(), match.low.end(), entry->ranges.get());
    std::copy(match.high.begin(), match.high.end(), entry->ranges.get() + key_words_);
  }
  Tuple& tuple = tuple_for_new(match, key.data());
  const bool reorder = tuple.empty() || match.priority > tuple.highest_priority();
  tuple.add(entry);
  ++size_;
  // Only for an entry that raises its tuple's priority: sorting for each would make filling a table
  // quadratic.
  if (reorder) order_tuples();
  return entry;
}

void MatchTable::fetch(PrefetchStep step) const {
  if (step == PrefetchStep::kObject) {
    prefetch<CacheLevel::kSecond>(this, sizeof(MatchTable));
  } else if (index_state_ != IndexState::kReady) {
    return;
  } else if (recent_ != nullptr) {
    key_words_ == 1 ? fetch_recent<1>(step) : fetch_recent<2>(step);
  } else if (step == PrefetchStep::kOneAway) {
    key_words_ == 1 ? index_of_1_.fetch() : index_of_2_.fetch();
    pool_.fetch(PrefetchStep::kObject);
  } else if (step == PrefetchStep::kTwoAway) {
    pool_.fetch(PrefetchStep::kOneAway);
  }
}

template <size_t kWords>
void MatchTable::fetch_recent(PrefetchStep step) const {
  // With the key and the beginning of its action's data, wherever within a cache line it begins.
  constexpr size_t kViewBytes =
      sizeof(EntryView) + kWords * sizeof(uint64_t) + sizeof(ActionData) + kCacheLineBytes;
  const TableIndex<kWords>& of = index<kWords>();
  const size_t words = (of.slot_count() + 63) / 64;
  if (step == PrefetchStep::kOneAway) {
    prefetch<CacheLevel::kSecond>(recent_->now.data(), words * sizeof(uint64_t));
    prefetch<CacheLevel::kSecond>(recent_->before.data(), words * sizeof(uint64_t));
    of.fetch_probes();
    return;
  }
  if (step > PrefetchStep::kThreeAway) return;
  if (step == PrefetchStep::kTwoAway) of.fetch_small_tuples();
  for (size_t word = 0; word < words; ++word) {
    for (uint64_t left = recent_->now[word] | recent_->before[word]; left != 0; left &= left - 1) {
      const auto& slot = of.slot(64 * word + static_cast<size_t>(std::countr_zero(left)));
      if (step == PrefetchStep::kTwoAway)
        prefetch<CacheLevel::kSecond>(&slot, sizeof slot);
      else
        prefetch<CacheLevel::kSecond>(static_cast<const EntryView*>(slot.entry), kViewBytes);
    }
    if (step == PrefetchStep::kThreeAway) recent_->before[word] = std::exchange(recent_->now[word], 0);
  }
}

void MatchTable::erase(TableEntry* entry) {
  index_state_ = IndexState::kStale;
  const Words own_mask(entry->mask, entry->mask + key_words_);
  const uint64_t* low = entry->ranges.get();
  for (const Words& mask : filing_masks(own_mask, low, low + (low == nullptr ? 0 : key_words_))) {
    Tuple* tuple = tuple_of(mask);
    if (tuple == nullptr) continue;
    const TableEntry* other = tuple->chain(entry->key());
    while (other != nullptr && other != entry) other = other->next;
    if (other == nullptr) continue;
    const int32_t highest = tuple->highest_priority();
    tuple->remove(entry);
    if (tuple->empty()) {
      std::erase(order_, tuple);
      tuples_.erase(mask);
      order_tuples();
    } else if (tuple->highest_priority() != highest) {
      order_tuples();
    }
    break;
  }
  const auto shared_mask = masks_.find(own_mask);
  pool_.free(entry);
  if (--shared_mask->second == 0) masks_.erase(shared_mask);
  --size_;
}

void MatchTable::describe(const EntryView& view, std::vector<uint8_t>& out) const {
  const auto& entry = static_cast<const TableEntry&>(view);
  const auto append = [&out](const void* data, size_t size_bytes) {
    const auto* bytes = static_cast<const uint8_t*>(data);
    out.insert(out.end(), bytes, bytes + size_bytes);
  };
  append(&entry.priority, sizeof entry.priority);
  append(entry.key(), key_bytes_);
  append(entry.mask, key_bytes_);
  if (entry.ranges == nullptr) return;
  append(entry.ranges.get(), key_bytes_);
  append(entry.ranges.get() + key_words_, key_bytes_);
}

void MatchTable::clear() {
  index_state_ = IndexState::kStale;
  for_each([this](TableEntry& entry) { pool_.free(&entry); });
  order_.clear();
  highest_priorities_.clear();
  tuples_.clear();
  masks_.clear();
  has_coarse_ = false;
  size_ = 0;
}

}  // namespace weft
