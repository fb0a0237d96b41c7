// Random numbers of choices of path: a stream by the seed that needs no state but its index.
#pragma once

#include <cstdint>

#include "paths/path_choice.hpp"

namespace weft {

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
inline uint64_t mixed(uint64_t seed, uint64_t index) {
  uint64_t bits = seed + index * 0x9E3779B97F4A7C15ull;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
  return bits ^ (bits >> 31);
}

// The entropy that stands for a path of the seed.
inline uint16_t entropy_of_path(uint64_t seed, uint64_t path) {
  constexpr uint64_t kPathStream = 1ull << 63;
  return static_cast<uint16_t>(mixed(seed, kPathStream + path) & kEntropyMask);
}

}  // namespace weft
