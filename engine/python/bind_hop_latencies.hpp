// Latencies of hops as Python makes them, for what counts there.
#pragma once

#include "observe/hop_latencies.hpp"
#include "time/engine.hpp"

namespace weft {

// Knows its engine, for the lock.
class PythonHopLatencies final : public HopLatencies {
 public:
  explicit PythonHopLatencies(Engine& engine) : engine_(engine) {}
  Engine& engine() { return engine_; }

 private:
  Engine& engine_;
};

}  // namespace weft
