// Hints to the processor what is going to be used, so that it comes into its caches meanwhile.
#pragma once

#include <cstddef>

#include "memory/cache_line.hpp"
#include "packets/packet.hpp"

namespace weft {

// How near it comes: what is used next goes to the first level, what waits for others before it to the
// second.
enum class CacheLevel : int { kSecond = 2, kFirst = 3 };

// To be written to.
template <CacheLevel kLevel = CacheLevel::kFirst>
inline void prefetch(const void* start, size_t bytes) {
  for (size_t offset = 0; offset < bytes; offset += kCacheLineBytes)
    __builtin_prefetch(static_cast<const char*>(start) + offset, 1, static_cast<int>(kLevel));
  // To GCC a function that does nothing but prefetch has no effect, and it leaves calls of such functions
  // out.
  asm volatile("");
}

// The headers that usually stand at a packet's front, where they usually are: the packet is not looked at.
template <CacheLevel kLevel = CacheLevel::kFirst>
inline void prefetch_headers(const Packet& packet) {
  constexpr size_t kUsualBytes = 128;
  prefetch<kLevel>(reinterpret_cast<const char*>(&packet + 1) + Packet::kHeadroomBytes, kUsualBytes);
}

// A packet and its headers; nothing for null.
template <CacheLevel kLevel = CacheLevel::kFirst>
inline void prefetch_packet(const Packet* packet) {
  if (packet == nullptr) return;
  prefetch<kLevel>(packet, sizeof(Packet));
  prefetch_headers<kLevel>(*packet);
}

}  // namespace weft
