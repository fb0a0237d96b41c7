// What lookups in a small table with a narrow key go through: the keys of all its tuples beside the addresses
// of their entries in one array, so that a lookup touches a cache line for the table, one for each tuple it
// tries, and the entry. Made anew from the tuples after a change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/prefetch.hpp"
#include "switch/tables/entry.hpp"
#include "switch/tables/tuple.hpp"

namespace weft {

template <size_t kWords>
class TableIndex {
 public:
  using Key = std::array<uint64_t, kWords>;

  // `order`: the table's tuples by falling priority; none of them is shared.
  void build(std::span<Tuple* const> order);

  struct Slot {
    Key key;
    TableEntry* entry = nullptr;  // null: vacant
  };

  // Where the matching entry of highest priority is, until the next build(); a vacant slot if there is none.
  const Slot& find(Key key) const {
    const Slot& slot = find_first(key);
    if (is_settled_by(slot)) [[likely]]
      return slot;
    return find_in_others(slot, key);
  }
  // The steps of find(): the first tuple; where that does not settle it, the better of `best`, which may be
  // vacant, and what the other tuples have.
  const Slot& find_first(const Key& key) const { return find_in(first_, key); }
  bool is_settled_by(const Slot& slot) const { return first_settles_[slot.entry != nullptr]; }
  [[gnu::noinline]] const Slot& find_in_others(const Slot& best, Key key) const;

  size_t slot_count() const { return slots_.size(); }
  const Slot& slot(size_t number) const { return slots_[number]; }
  // Of a slot that is not vacant.
  size_t number_of(const Slot& slot) const { return static_cast<size_t>(&slot - slots_.data()); }

  // Prefetches what find() goes through.
  void fetch() const {
    prefetch<CacheLevel::kSecond>(slots_.data(), slots_.size() * sizeof(Slot));
    fetch_probes();
  }
  void fetch_probes() const {
    prefetch<CacheLevel::kSecond>(others_.data(), others_.size() * sizeof(Probe));
    prefetch<CacheLevel::kSecond>(filters_.data(), filters_.size() * sizeof(uint64_t));
  }
  // Prefetches tuples of few entries whole, once fetch_probes() has had its effect.
  void fetch_small_tuples() const {
    fetch_if_small(first_);
    for (const Probe& probe : others_) fetch_if_small(probe);
  }

 private:
  static constexpr size_t kSmallTupleSlots = 16;
  // A key that is not in a tuple passes its filter in one of sixteen cases at most.
  static constexpr size_t kFilterBitsPerSlot = 8;

  struct Probe {
    Key mask;
    uint32_t first_slot = 0;
    uint32_t last = 0;  // number of slots, a power of two, less one
    int32_t highest_priority = INT32_MIN;
    bool decides = true;  // no entry of a later tuple can have a higher priority than one found here
    // Of a tuple before others, which most keys are not in: a bit for each hash that a key of it may have.
    uint32_t first_filter_word = 0;
    uint32_t last_filter_bit = 0;  // number of bits, a power of two, less one; 0: no filter
  };

  const Slot& find_in(const Probe& probe, const Key& key) const {
    Key masked;
    for (size_t i = 0; i < kWords; ++i) masked[i] = key[i] & probe.mask[i];
    const Slot* slots = slots_.data() + probe.first_slot;
    const uint64_t hash = home(masked);
    if (probe.last_filter_bit != 0 && !may_be_in(probe, hash)) return vacant_;
    for (uint64_t at = hash & probe.last;; at = (at + 1) & probe.last) {
      const Slot& slot = slots[at];
      uint64_t difference = 0;  // not ==, which would call memcmp
      for (size_t i = 0; i < kWords; ++i) difference |= slot.key[i] ^ masked[i];
      if (difference == 0 || slot.entry == nullptr) return slot;
    }
  }
  // Other bits of the hash than those that choose the slot.
  static uint64_t filter_bit(const Probe& probe, uint64_t hash) { return hash >> 32 & probe.last_filter_bit; }
  bool may_be_in(const Probe& probe, uint64_t hash) const {
    const uint64_t bit = filter_bit(probe, hash);
    return (filters_[probe.first_filter_word + bit / 64] >> bit % 64 & 1) != 0;
  }
  void fetch_if_small(const Probe& probe) const {
    if (probe.last < kSmallTupleSlots)
      prefetch<CacheLevel::kSecond>(&slots_[probe.first_slot], (size_t{probe.last} + 1) * sizeof(Slot));
  }
  static uint64_t home(const Key& key) {
    uint64_t state = 0;
    for (const uint64_t word : key) {
      const auto product = static_cast<unsigned __int128>(word ^ state) * 0xd6e8feb86659fd93ULL;
      state = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    }
    return state;
  }

  // Most tables have one tuple, or find what they look for in the first.
  Probe first_;
  std::array<bool, 2> first_settles_ = {true,
                                        true};  // the search, if it finds nothing, and if it finds an entry
  CacheLineVector<Slot> slots_ = CacheLineVector<Slot>(1);
  CacheLineVector<Probe> others_;
  CacheLineVector<uint64_t> filters_;
  Slot vacant_;
};

extern template class TableIndex<1>;
extern template class TableIndex<2>;

}  // namespace weft
