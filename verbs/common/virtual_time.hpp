// What the provider tells the library for virtual time, where that is loaded.
#pragma once

namespace weft::verbs {

struct VirtualTimeCalls {
  // A completion queue was empty. Returns when that may have changed.
  void (*was_empty)(const void* queue);
  // Work was posted, or completions taken.
  void (*did_something)();
  // The program has opened its device: it measures times from now on.
  void (*began)();
};

// The library's function, by name: const VirtualTimeCalls* (), null outside a run.
constexpr const char* kVirtualTimeCalls = "weft_virtual_time_calls";

}  // namespace weft::verbs
