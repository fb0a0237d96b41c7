// A tuple of a match table: the entries filed under one mask, hashed by the key's bits under it.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "switch/tables/entry.hpp"

namespace weft {

class Tuple {
 public:
  explicit Tuple(std::vector<uint64_t> mask);

  // The first of the entries whose keys agree with this one under the tuple's mask, by falling priority; or
  // null.
  //
  // `kWords` is the key's width in words where the caller knows it, so that nothing loops over them; else 0.
  template <size_t kWords = 0>
  TableEntry* chain(const uint64_t* key) const {
    const uint64_t key_hash = hash<kWords>(key);
    const uint64_t last = heads_.size() - 1;
    // An only tuple mostly has the key: its entry's address comes while the tags do.
    if (likely_found) __builtin_prefetch(&heads_[key_hash & last]);
    for (uint64_t slot = key_hash & last;; slot = (slot + kWindow) & last) {
      // Without a branch for every slot: most lookups in a tuple without the key end after one window, and
      // the processor predicts that and begins the next tuple's meanwhile.
      const uint64_t window = tags_at(slot);
      const uint64_t empty = zero_bytes(window);
      uint64_t candidates = zero_bytes(window ^ kEveryByte * tag_of(key_hash)) & below_lowest(empty);
      for (; candidates != 0; candidates &= candidates - 1) {
        TableEntry* head = heads_[(slot + static_cast<uint64_t>(std::countr_zero(candidates)) / 8) & last];
        // The action's data may be on the next cache line, which is on its way while the key is compared.
        __builtin_prefetch(head->key() + words<kWords>() + 2);
        if (agree<kWords>(*head, key)) return head;
      }
      if (empty != 0) return nullptr;
    }
  }

  void add(TableEntry* entry);
  void remove(TableEntry* entry);

  const std::vector<uint64_t>& mask() const { return mask_; }
  bool empty() const { return priorities_.empty(); }
  int32_t highest_priority() const { return priorities_.rbegin()->first; }
  int32_t lowest_priority() const { return priorities_.begin()->first; }
  // Of different keys.
  size_t key_count() const { return used_; }

  // Calls visit(TableEntry&) for every entry; visit may destroy it.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (TableEntry* head : heads_)
      while (head != nullptr) {
        TableEntry* next = head->next;
        visit(*head);
        head = next;
      }
  }

  // Calls visit(TableEntry&) for the first entry of each key.
  template <typename Visit>
  void for_each_head(Visit&& visit) const {
    for (TableEntry* head : heads_)
      if (head != nullptr) visit(*head);
  }

  // Entries with other masks than the tuple's are in it, so those of a chain must be compared with theirs.
  bool shared = false;
  // It is the table's only tuple.
  bool likely_found = false;

 private:
  static constexpr uint8_t kEmpty = 0;
  static constexpr uint64_t kWindow = 8;
  static constexpr uint64_t kEveryByte = 0x0101010101010101ULL;

  static constexpr uint64_t kHashSeed = 0x9e3779b97f4a7c15ULL;
  static constexpr uint64_t kHashMultiplier = 0xd6e8feb86659fd93ULL;

  // 64x64 to 128 bit multiply, folded: the mixing step of wyhash.
  static uint64_t mix(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  template <size_t kWords>
  size_t words() const {
    return kWords != 0 ? kWords : mask_.size();
  }
  template <size_t kWords = 0>
  uint64_t hash(const uint64_t* key) const {
    uint64_t state = kHashSeed;
    for (size_t i = 0; i < words<kWords>(); ++i)
      state = mix((key[i] & mask_[i]) ^ state, kHashMultiplier ^ i);
    return state;
  }
  static uint8_t tag_of(uint64_t key_hash) {
    const auto tag = static_cast<uint8_t>(key_hash >> 56);
    return tag == kEmpty ? 1 : tag;
  }
  // The tags of kWindow slots from this one on, around the end; the first slot's in the lowest byte.
  uint64_t tags_at(uint64_t slot) const {
    uint64_t window = 0;
    std::memcpy(&window, tags_.data() + slot, sizeof window);
    return std::endian::native == std::endian::little ? window : __builtin_bswap64(window);
  }
  // The highest bit of each byte that is 0; of a byte above such a one perhaps wrongly.
  static uint64_t zero_bytes(uint64_t bytes) { return (bytes - kEveryByte) & ~bytes & kEveryByte << 7; }
  static uint64_t below_lowest(uint64_t bits) { return (bits & (0 - bits)) - 1; }
  void set_tag(uint64_t slot, uint8_t tag);
  template <size_t kWords = 0>
  bool agree(const TableEntry& entry, const uint64_t* key) const {
    uint64_t difference = 0;
    for (size_t i = 0; i < words<kWords>(); ++i) difference |= (entry.key()[i] ^ key[i]) & mask_[i];
    return difference == 0;
  }
  uint64_t slot_of(const uint64_t* key, uint64_t key_hash) const;
  void grow();
  void remove_slot(uint64_t slot);

  std::vector<uint64_t> mask_;
  // Open addressing, linear probing, at most half full. A byte of each key's hash stands apart from its
  // entry: nearly all lookups in a tuple without the key end there, and a byte a slot stays in the cache.
  std::vector<uint8_t> tags_;  // the first kWindow again behind the last
  std::vector<TableEntry*> heads_;
  uint64_t used_ = 0;
  std::map<int32_t, uint64_t> priorities_;  // how many entries have each
};

}  // namespace weft
