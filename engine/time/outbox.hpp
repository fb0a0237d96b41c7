// What is on its way from one partition to another.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "memory/cache_line.hpp"
#include "packets/packet_chain.hpp"

namespace weft {

class DelayLine;
class Partition;

// What a link has sent in one window to a partition of another worker's: its sender fills one of two while
// the receiver empties the other.
struct alignas(kCacheLineBytes) OutboxBatch {
  PacketChain chain;
  bool sorted = true;               // none is due sooner than one before it
  DelayLine* delay_line = nullptr;  // where it goes
  uint32_t line = 0;                // the same, by number: see Partitions::add_line()

  void push(Packet* packet, TimePs due_ps) {
    sorted = chain.empty() || (sorted && chain.last_due_ps() <= due_ps);
    chain.push(packet, due_ps);
  }
};

// Where a link's packets go. Where one worker serves both ends, that is the delay line at once.
struct Outbox {
  DelayLine* delay_line = nullptr;
  Partition* sender = nullptr;
  Partition* target =
      nullptr;  // whose delay line it is; null: the sender's own, and nothing goes through this
  std::unique_ptr<std::array<OutboxBatch, 2>> batches;  // by the window's parity
  uint32_t assignment = 0;  // of partitions to workers, for which `near` is known; 0: for none
  bool near = false;        // one worker serves both ends
};

}  // namespace weft
