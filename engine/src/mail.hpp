// What is on its way from one partition to another.
#pragma once

#include <array>

#include "cache_line.hpp"
#include "time.hpp"

namespace weft {

class DelayLine;
class Packet;
class Partition;

struct Parcel {
  TimePs due_ps;
  Packet* packet;
};

// Of one link: the partition that sends fills one of the two while the one that receives empties the other.
struct alignas(kCacheLineBytes) Outbox {
  DelayLine* line = nullptr;    // where the parcels go
  Partition* target = nullptr;  // whose line that is; null: the sender's own, and nothing goes through this
  std::array<CacheLineVector<Parcel>, 2> parcels;  // by the window's parity
};

}  // namespace weft
