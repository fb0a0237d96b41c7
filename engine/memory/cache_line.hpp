// Memory in whole cache lines: what one thread writes to is on no line that another one uses. What packets
// pass by lies there side by side in huge pages, apart from all else: a packet touches a dozen objects on its
// way through a switch, and each on a page of its own would be looked up in the page tables by itself, which
// takes longer than fetching it does.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

namespace weft {

constexpr size_t kCacheLineBytes = 64;
// What one thread writes to all the time is so far from what another one does: processors fetch neighbours of
// a cache line, too.
constexpr size_t kApartBytes = 2 * kCacheLineBytes;

// The memory of what has been given back serves again, for something of the same size; it stays the
// process's. Throws std::bad_alloc.
// alignment: a power of two, one cache line at least; the same for both.
void* take_cache_lines(size_t bytes, size_t alignment = kCacheLineBytes);
void give_back_cache_lines(void* memory, size_t bytes, size_t alignment = kCacheLineBytes) noexcept;

// Base of classes whose objects lie there when they are made by `new`, singly.
struct InCacheLines {
  static void* operator new(size_t bytes) { return take_cache_lines(bytes); }
  static void* operator new(size_t bytes, std::align_val_t alignment) {
    return take_cache_lines(bytes, at_least_a_line(alignment));
  }
  static void* operator new(size_t /*bytes*/, void* place) noexcept { return place; }
  static void operator delete(void* memory, size_t bytes) noexcept { give_back_cache_lines(memory, bytes); }
  static void operator delete(void* memory, size_t bytes, std::align_val_t alignment) noexcept {
    give_back_cache_lines(memory, bytes, at_least_a_line(alignment));
  }

 private:
  static size_t at_least_a_line(std::align_val_t alignment) {
    return std::max(static_cast<size_t>(alignment), kCacheLineBytes);
  }
};

template <class T>
struct CacheLineAllocator {
  static_assert(alignof(T) <= kCacheLineBytes);
  using value_type = T;

  CacheLineAllocator() = default;
  template <class Other>
  CacheLineAllocator(const CacheLineAllocator<Other>& /*other*/) {}

  T* allocate(size_t count) { return static_cast<T*>(take_cache_lines(count * sizeof(T))); }
  void deallocate(T* memory, size_t count) noexcept { give_back_cache_lines(memory, count * sizeof(T)); }
  bool operator==(const CacheLineAllocator& /*other*/) const { return true; }
};

template <class T>
using CacheLineVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace weft
