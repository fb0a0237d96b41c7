// Match tables: exact, LPM, ternary, optional and range keys by one algorithm, tuple space search.
//
// Entries with the same mask live in one hash table over the masked key, a tuple. A lookup probes the tuples
// in order of their highest priority and stops when no later one can win. An exact table is one tuple; an LPM
// table has one tuple per prefix length in use, with the length as its priority. (Srinivasan, Suri, Varghese,
// "Packet classification using tuple space search", SIGCOMM 1999.)
//
// A table with many masks would have as many tuples to probe. Beyond kFewTuples, entries with new masks are
// filed under a coarser one, so that many masks share a tuple, and are compared one by one there; those that
// would make such a chain long go under a finer mask. (The idea is that of Daly et al., "TupleMerge: fast
// software packet processing for online packet classification", IEEE/ACM ToN 2019.) A range is filed under
// the leading bits that all its values have in common.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "memory/prefetch_step.hpp"
#include "switch/tables/entry.hpp"
#include "switch/tables/index.hpp"
#include "switch/tables/tuple.hpp"

namespace weft {

// A field of the key that is matched by range, as bytes within the key (big-endian).
struct RangeField {
  uint32_t offset_bytes;
  uint32_t size_bytes;
};

// What to match, each span as wide as the table's key in words; `low` and `high` are empty without range
// fields.
struct EntryMatch {
  std::span<const uint64_t> value;
  std::span<const uint64_t> mask;
  std::span<const uint64_t> low;
  std::span<const uint64_t> high;
  int32_t priority = 0;
};

class alignas(64) MatchTable : public InCacheLines {
 public:
  // Entries have room for `action_capacity_bytes` of their action's data; more is allocated apart.
  MatchTable(uint32_t key_bytes, std::vector<RangeField> ranges, uint32_t action_capacity_bytes);
  ~MatchTable();
  MatchTable(const MatchTable&) = delete;

  static constexpr uint32_t words_for(uint32_t key_bytes) { return (key_bytes + 7) / 8; }

  // The matching entry of highest priority, or null. `key` has words_for(key_bytes) words.
  TableEntry* lookup(const uint64_t* key) const;
  // The same for a key as wide as the table's, in registers. What is rare or long is called last, so that the
  // usual lookup keeps nothing on the stack.
  template <size_t kWords>
  TableEntry* lookup(std::array<uint64_t, kWords> key) const {
    if (index_state_ != IndexState::kReady) [[unlikely]]
      return lookup_unindexed(key);
    const TableIndex<kWords>& in = index<kWords>();
    const auto& slot = in.find_first(key);
    if (!in.is_settled_by(slot)) return lookup_in_others(key, slot);
    return noted(in, slot);
  }

  // The entry installed with exactly this match and priority, or null.
  TableEntry* find(const EntryMatch& match) const;

  // A new entry without an action; the caller has made sure by find() that none like it exists.
  TableEntry* insert(const EntryMatch& match);
  void erase(TableEntry* entry);
  void clear();

  // Prefetches what lookups go through, `step` pointers away from this, unless the table is large.
  void fetch(PrefetchStep step) const;

  uint64_t size() const { return size_; }
  uint32_t key_bytes() const { return key_bytes_; }
  uint32_t key_words() const { return key_words_; }
  bool has_ranges() const { return !ranges_.empty(); }
  size_t tuple_count() const { return order_.size(); }

  // Appends the match of an entry of this table: priority (int32, native order), then as bytes of the key
  // value and mask, and with range fields low and high.
  void describe(const EntryView& entry, std::vector<uint8_t>& out) const;

  // Calls visit(TableEntry&) for every entry, tuple by tuple.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Tuple* tuple : order_) tuple->for_each(visit);
  }

 private:
  using Words = std::vector<uint64_t>;
  using WordsView = std::span<const uint64_t>;
  struct LessWords {
    using is_transparent = void;
    bool operator()(WordsView a, WordsView b) const {
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
    }
  };
  static constexpr size_t kFewTuples = 32;
  static constexpr int kLongestSharedChain = 4;
  // A larger table's index would crowd out of the cache what the tuples' tags leave there.
  static constexpr size_t kMostIndexed = 1024;
  // A larger one is not fetched as a whole: most of it would come for nothing.
  static constexpr size_t kMostFetched = 16;

  // The index's slots that lookups have found, up to the visit before the present one, of tables that are not
  // fetched as a whole: of a flow's packets there are mostly more to come. A bit each.
  struct alignas(kCacheLineBytes) RecentSlots : InCacheLines {
    // An index has fewer than four slots for each entry.
    static constexpr size_t kMostWords = 4 * kMostIndexed / 64;

    void add(size_t slot) { now[slot / 64] |= uint64_t{1} << slot % 64; }

    std::array<uint64_t, kMostWords> now{};
    std::array<uint64_t, kMostWords> before{};
  };

  // The masks that an entry may be filed under, the finest first.
  enum Grain : uint8_t { kBits, kNibbles, kBytes, kGrains };
  using FilingMasks = std::array<Words, kGrains>;

  FilingMasks filing_masks(WordsView mask, const uint64_t* low, const uint64_t* high) const;
  Words filing_key(const EntryMatch& match) const;
  template <size_t kWords>
  TableEntry* lookup_in_tuples(const uint64_t* key) const;
  template <size_t kWords>
  [[gnu::noinline]] TableEntry* lookup_unindexed(std::array<uint64_t, kWords> key) const;
  template <size_t kWords>
  [[gnu::noinline]] TableEntry* lookup_in_others(std::array<uint64_t, kWords> key,
                                                 const typename TableIndex<kWords>::Slot& found) const {
    const TableIndex<kWords>& in = index<kWords>();
    return noted(in, in.find_in_others(found, key));
  }
  // The slot's entry, or null.
  template <size_t kWords>
  TableEntry* noted(const TableIndex<kWords>& in, const typename TableIndex<kWords>::Slot& slot) const {
    if (recent_ != nullptr && slot.entry != nullptr) recent_->add(in.number_of(slot));
    return slot.entry;
  }
  template <size_t kWords>
  void fetch_recent(PrefetchStep step) const;
  template <size_t kWords>
  TableIndex<kWords>& index() const {
    if constexpr (kWords == 1)
      return index_of_1_;
    else
      return index_of_2_;
  }
  bool matches(const TableEntry& entry, const uint64_t* key) const;
  bool is_same(const TableEntry& entry, const EntryMatch& match) const;
  TableEntry* find_in(const Tuple* tuple, const uint64_t* key, const EntryMatch& match) const;
  Tuple* tuple_of(WordsView mask) const;
  Tuple& tuple_for_new(const EntryMatch& match, const uint64_t* key);
  Tuple& make_tuple(const Words& mask);
  void order_tuples();

  enum class IndexState : uint8_t {
    kStale,
    kReady,
    kNone
  };  // kNone: of the tuples as they are, there is none

  // Of the two, the one for the key's width is used.
  mutable IndexState index_state_ = IndexState::kStale;
  mutable std::unique_ptr<RecentSlots> recent_;  // of the index as it is
  mutable TableIndex<1> index_of_1_;
  mutable TableIndex<2> index_of_2_;
  uint32_t key_bytes_;
  uint32_t key_words_;
  std::vector<RangeField> ranges_;
  EntryPool pool_;
  std::map<Words, uint64_t, LessWords> masks_;  // of the entries, and how many have each
  std::map<Words, std::unique_ptr<Tuple>, LessWords> tuples_;
  bool has_coarse_ = false;    // some entries may have been filed under a mask that is not their own
  std::vector<Tuple*> order_;  // by highest priority, descending
  std::vector<int32_t> highest_priorities_;  // of order_'s tuples
  uint64_t size_ = 0;
};

}  // namespace weft
