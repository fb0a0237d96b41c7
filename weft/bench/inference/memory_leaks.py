"""13.2 KV Cache Memory Leak Detection."""

from __future__ import annotations

from weft.bench.model import Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.trials import Procedure


class MemoryLeaks(BenchTest):
    """Memory of workers over time, which emulated accelerators do not have."""

    section = "13.2"
    name = "memory-leaks"
    title = "KV Cache Memory Leak Detection"
    objective = "Whether memory that holds or registers KV caches grows without end."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        raise NotApplicableError(
            "Weft's prefill and decode workers are times and traffic: they have no GPU memory, pinned memory or memory "
            "regions whose growth could be observed, and packets carry lengths in place of caches"
        )
