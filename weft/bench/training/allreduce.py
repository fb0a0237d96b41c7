"""9.1 AllReduce Benchmark."""

from __future__ import annotations

from weft.bench.collective_sweeps import collective_sweep
from weft.bench.model import Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.trials import Procedure


class AllReduceBenchmark(BenchTest):
    """AllReduce by size, accelerators and way of balancing load."""

    section = "9.1"
    name = "allreduce"
    title = "AllReduce Benchmark"
    objective = "Bus bandwidth of AllReduce by size, accelerators and way of balancing load."
    compares_load_balancing = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        return (yield from collective_sweep(setup, "allreduce", "AllReduce BusBW"))
