// What a worker has the processor fetch before it serves a partition. While all others of a large fabric had
// their turn, what this one works with has left the caches; asked for one piece at a time, as packets happen
// to need it, each piece would take a whole access to memory.
#pragma once

namespace weft {

// An object that packets pass. `fetch` prefetches what lies `step` pointers away from it, and may read what
// the steps before have fetched; step 0 reads nothing. It changes nothing that anybody could see.
struct Visited {
  static constexpr int kSteps = 7;

  const void* object = nullptr;
  void (*fetch)(const void* object, int step) = nullptr;
};

}  // namespace weft
