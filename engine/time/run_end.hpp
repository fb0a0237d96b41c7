// A run that ends within its window.
#pragma once

namespace weft {

class Engine;

// For an event of a run's only partition: the run ends with it, and whoever drives the run goes on at its
// time. Of several partitions others may have gone ahead; throws std::logic_error then, and without
// partitions.
void end_run_here(Engine& engine);

}  // namespace weft
