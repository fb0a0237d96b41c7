// What a worker has the processor fetch before it serves a partition. While all others of a large fabric had
// their turn, what this one works with has left the caches; asked for one piece at a time, as packets happen
// to need it, each piece would take a whole access to memory.
#pragma once

#include "memory/prefetch_step.hpp"

namespace weft {

// An object that packets pass, neither a link nor a port. `fetch` does one step.
struct Visited {
  const void* object = nullptr;
  void (*fetch)(const void* object, PrefetchStep step) = nullptr;
};

}  // namespace weft
