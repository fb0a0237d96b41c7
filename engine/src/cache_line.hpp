// Memory in whole cache lines: what one thread writes to is on no line that another one uses. What packets
// pass by lies there side by side in huge pages, apart from all else: a packet touches a dozen objects on its
// way through a switch, and each on a page of its own would be looked up in the page tables by itself, which
// takes longer than fetching it does.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace weft {

constexpr size_t kCacheLineBytes = 64;

// The memory of what has been given back serves again, for something of the same size; it stays the
// process's. Throws std::bad_alloc.
void* take_cache_lines(size_t bytes);
void give_back_cache_lines(void* memory, size_t bytes) noexcept;

// Base of classes whose objects lie there when they are made by `new`, alone.
struct InCacheLines {
  static void* operator new(size_t bytes) { return take_cache_lines(bytes); }
  static void* operator new(size_t bytes, std::align_val_t /*alignment*/) { return take_cache_lines(bytes); }
  static void* operator new(size_t /*bytes*/, void* place) noexcept { return place; }
  static void operator delete(void* memory, size_t bytes) noexcept { give_back_cache_lines(memory, bytes); }
  static void operator delete(void* memory, size_t bytes, std::align_val_t /*alignment*/) noexcept {
    give_back_cache_lines(memory, bytes);
  }
};

template <class T>
struct CacheLineAllocator {
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
