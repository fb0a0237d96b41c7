"""9.2 AlltoAll Benchmark."""

from __future__ import annotations

from weft.bench.collective_sweeps import collective_sweep
from weft.bench.model import Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.trials import Procedure


class AlltoAllBenchmark(BenchTest):
    """AlltoAll by size, accelerators and way of balancing load."""

    section = "9.2"
    name = "alltoall"
    title = "AlltoAll Benchmark"
    objective = "Time and bus bandwidth of AlltoAll, in which every accelerator sends to every other at the same time."
    compares_load_balancing = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        return (yield from collective_sweep(setup, "alltoall", "AlltoAll JCT", of_time=True))
