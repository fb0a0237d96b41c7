// A hash table for few small entries that are looked up often.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft {

// From integers to values that are false where there is none (a null pointer, or a type with such a state).
// The entries lie in one array, with linear probing, so a lookup touches a cache line or two, which
// std::unordered_map's buckets and nodes do not allow. Adding and removing entries moves others.
template <typename Key, typename Value>
class FlatMap {
 public:
  // Null if there is none.
  Value* find(Key key) {
    const size_t place = place_of(key);
    return place == kNone ? nullptr : &entries_[place].value;
  }
  const Value* find(Key key) const { return const_cast<FlatMap*>(this)->find(key); }

  // Returns false, and adds nothing, if there is one with this key. The value is a true one.
  bool emplace(Key key, Value value) {
    if (place_of(key) != kNone) return false;
    if (4 * (size_ + 1) > 3 * entries_.size()) grow();
    insert({key, std::move(value)});
    ++size_;
    return true;
  }

  void erase(Key key) {
    size_t hole = place_of(key);
    if (hole == kNone) return;
    --size_;
    // What follows without a gap moves up, unless that were before its home.
    for (size_t place = next(hole); entries_[place].value; place = next(place)) {
      const size_t from_home = (place - home(entries_[place].key)) & mask();
      if (from_home < ((place - hole) & mask())) continue;
      entries_[hole] = std::move(entries_[place]);
      hole = place;
    }
    entries_[hole].value = Value();
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // Calls visit(key, value) for all, which must add and remove none.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Entry& entry : entries_) {
      if (entry.value) visit(entry.key, entry.value);
    }
  }

 private:
  struct Entry {
    Key key{};
    Value value{};
  };

  static constexpr size_t kFirstEntries = 4;
  static constexpr size_t kNone = SIZE_MAX;

  size_t mask() const { return entries_.size() - 1; }
  size_t next(size_t place) const { return (place + 1) & mask(); }
  // Fibonacci hashing: keys are numbers that follow each other.
  size_t home(Key key) const {
    const uint64_t mixed = static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(mixed >> 32) & mask();
  }
  size_t place_of(Key key) const {
    if (entries_.empty()) return kNone;
    for (size_t place = home(key); entries_[place].value; place = next(place)) {
      if (entries_[place].key == key) return place;
    }
    return kNone;
  }
  void insert(Entry entry) {
    size_t place = home(entry.key);
    while (entries_[place].value) place = next(place);
    entries_[place] = std::move(entry);
  }
  void grow() {
    std::vector<Entry> old(entries_.empty() ? kFirstEntries : 2 * entries_.size());
    old.swap(entries_);
    for (Entry& entry : old) {
      if (entry.value) insert(std::move(entry));
    }
  }

  std::vector<Entry> entries_;  // a power of two of them
  size_t size_ = 0;
};

}  // namespace weft
