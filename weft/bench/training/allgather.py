"""9.3 AllGather Benchmark."""

from __future__ import annotations

from weft.bench.collective_sweeps import collective_sweep
from weft.bench.model import Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.trials import Procedure


class AllGatherBenchmark(BenchTest):
    """AllGather by size, accelerators and way of balancing load."""

    section = "9.3"
    name = "allgather"
    title = "AllGather Benchmark"
    objective = "Bus bandwidth of AllGather by size, accelerators and way of balancing load."
    compares_load_balancing = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        return (yield from collective_sweep(setup, "allgather", "AllGather BusBW"))
