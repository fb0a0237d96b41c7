// How many packets, and how many bytes they had on the wire.
#pragma once

#include <cstdint>

namespace weft {

struct TrafficCounter {
  uint64_t packets = 0;
  uint64_t bytes = 0;
  void add(uint64_t size) {
    ++packets;
    bytes += size;
  }
};

}  // namespace weft
