// Tells the processor what is going to be used, so that it comes into its caches meanwhile.
#pragma once

#include <cstddef>

namespace weft {

// Into the first-level cache, to be written to.
inline void prefetch(const void* start, size_t bytes) {
  constexpr size_t kLineBytes = 64;
  for (size_t offset = 0; offset < bytes; offset += kLineBytes)
    __builtin_prefetch(static_cast<const char*>(start) + offset, 1);
}

}  // namespace weft
