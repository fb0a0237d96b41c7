// How a NIC's classes of data take turns: by strict priority, the highest number first; after them those that
// have a quantum, by surplus round robin.
#pragma once

#include <bit>
#include <cstdint>

#include "links/deficit_round_robin.hpp"

namespace weft {

class ClassTurns {
 public:
  explicit ClassTurns(const DeficitRoundRobin::Quanta& quantum_bytes) : weighted_(quantum_bytes) {}

  // The class that goes next of those that are ready, a bit for each, at least one.
  int next(uint32_t ready) {
    const uint32_t strict = ready & ~weighted_.members();
    if (strict != 0) [[likely]]
      return static_cast<int>(std::bit_width(strict)) - 1;
    return weighted_.next(ready);
  }
  // It has sent a packet, and has more or not.
  void sent(int priority_class, uint64_t bytes, bool has_more) {
    if ((weighted_.members() >> priority_class & 1u) == 0) [[likely]]
      return;
    weighted_.spend(priority_class, bytes);
    if (!has_more) weighted_.emptied(priority_class);
  }

 private:
  DeficitRoundRobin weighted_;
};

}  // namespace weft
