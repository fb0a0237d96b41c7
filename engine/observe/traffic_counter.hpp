// Packets and their bytes on the wire, counted together.
#pragma once

#include <cstdint>

namespace weft {

struct TrafficCounter {
  uint64_t packets = 0;
  uint64_t bytes = 0;
  void add(uint64_t size_bytes) {
    ++packets;
    bytes += size_bytes;
  }
  void add(const TrafficCounter& other) {
    packets += other.packets;
    bytes += other.bytes;
  }
  // No further than 0: some of the other's may have been counted before a reset.
  void take_away(const TrafficCounter& other) {
    packets -= packets < other.packets ? packets : other.packets;
    bytes -= bytes < other.bytes ? bytes : other.bytes;
  }
};

}  // namespace weft
