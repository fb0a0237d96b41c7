// Memory in whole cache lines: what one thread writes to is on no line that another one uses.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace weft {

constexpr size_t kCacheLineBytes = 64;

template <class T>
struct CacheLineAllocator {
  using value_type = T;

  CacheLineAllocator() = default;
  template <class Other>
  CacheLineAllocator(const CacheLineAllocator<Other>& /*other*/) {}

  T* allocate(size_t count) {
    const size_t bytes = (count * sizeof(T) + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
    return static_cast<T*>(::operator new(bytes, std::align_val_t{kCacheLineBytes}));
  }
  void deallocate(T* memory, size_t /*count*/) noexcept {
    ::operator delete(memory, std::align_val_t{kCacheLineBytes});
  }
  bool operator==(const CacheLineAllocator& /*other*/) const { return true; }
};

template <class T>
using CacheLineVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace weft
