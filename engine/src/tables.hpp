// Match tables: exact, LPM, ternary, optional and range keys by one algorithm, tuple space search.
//
// Entries with the same mask live in one hash table over the masked key. A lookup probes these tuples in
// order of their highest priority and stops when no later one can win. An exact table is one tuple; an LPM
// table has one tuple per prefix length in use, with the length as its priority. Range fields are masked out
// of the hash and checked along the chain of entries with the same masked key. (Srinivasan, Suri, Varghese,
// "Packet classification using tuple space search", SIGCOMM 1999.)
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "switch_abi.hpp"
#include "tables_action_profile.hpp"

namespace weft {

// A field of the key that is matched by range, as bytes within the key (big-endian).
struct RangeField {
  uint32_t offset_bytes;
  uint32_t size_bytes;
};

struct TableEntry : EntryView {
  std::unique_ptr<ActionData, FreeActionData> own_action;
  ActionMember* member = nullptr;
  TableEntry* next = nullptr;  // same tuple and masked key, lower or equal priority
  int32_t priority = 0;
  uint32_t action_handle = 0;  // id of the member or group, for reading back
  int64_t idle_timeout_ns = 0;
  std::unique_ptr<uint64_t[]> ranges;  // lows then highs, each as wide as the key; null without range fields

  TableEntry();
  ~TableEntry();
  TableEntry(const TableEntry&) = delete;
  uint64_t* key() { return reinterpret_cast<uint64_t*>(this + 1); }
  const uint64_t* key() const { return reinterpret_cast<const uint64_t*>(this + 1); }
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

class MatchTable {
 public:
  MatchTable(uint32_t key_bytes, std::vector<RangeField> ranges);
  ~MatchTable();
  MatchTable(const MatchTable&) = delete;

  static constexpr uint32_t words_for(uint32_t key_bytes) { return (key_bytes + 7) / 8; }

  // The matching entry of highest priority, or null. `key` has words_for(key_bytes) words.
  TableEntry* lookup(const uint64_t* key) const;

  // The entry installed with exactly this match and priority, or null.
  TableEntry* find(const EntryMatch& match) const;

  // A new entry without an action; the caller has made sure by find() that none like it exists.
  TableEntry* insert(const EntryMatch& match);
  void erase(TableEntry* entry, std::span<const uint64_t> mask);
  void clear();

  uint64_t size() const { return size_; }
  uint32_t key_bytes() const { return key_bytes_; }
  uint32_t key_words() const { return key_words_; }
  bool has_ranges() const { return !ranges_.empty(); }

  // Appends the match of an entry of this table: priority (int32, native order), then as bytes of the key
  // value and mask, and with range fields low and high. Looks through the whole table.
  void describe(const EntryView& entry, std::vector<uint8_t>& out) const;

  // Calls visit(const TableEntry&, mask words) for every entry, tuple by tuple.
  template <typename Visit>
  void for_each(Visit&& visit) const;

 private:
  struct Tuple;

  bool in_ranges(const TableEntry& entry, const uint64_t* key) const;
  bool same_ranges(const TableEntry& entry, const EntryMatch& match) const;
  Tuple* tuple_for(std::span<const uint64_t> mask) const;
  void order_tuples();

  uint32_t key_bytes_;
  uint32_t key_words_;
  std::vector<RangeField> ranges_;
  std::vector<std::unique_ptr<Tuple>> tuples_;  // by highest priority, descending
  uint64_t size_ = 0;
};

struct MatchTable::Tuple {
  struct Slot {
    uint64_t hash = 0;
    TableEntry* head = nullptr;  // null: empty
  };

  explicit Tuple(std::span<const uint64_t> mask_words);
  int32_t highest_priority() const { return priorities.rbegin()->first; }
  uint64_t hash(const uint64_t* key) const;
  bool same_key(const TableEntry& entry, const uint64_t* key) const;
  Slot* slot_of(const uint64_t* key,
                uint64_t key_hash);  // the key's slot, or the empty slot where it belongs
  void grow();
  void remove_slot(Slot* slot);

  std::vector<uint64_t> mask;
  std::vector<Slot> slots;  // open addressing, linear probing, at most half full
  uint64_t used = 0;
  int32_t max_priority = 0;
  std::map<int32_t, uint64_t> priorities;  // how many entries have each
};

template <typename Visit>
void MatchTable::for_each(Visit&& visit) const {
  for (const auto& tuple : tuples_)
    for (const auto& slot : tuple->slots)
      for (const TableEntry* entry = slot.head; entry != nullptr; entry = entry->next)
        visit(*entry, tuple->mask);
}

}  // namespace weft
