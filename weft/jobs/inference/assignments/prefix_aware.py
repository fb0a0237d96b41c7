"""Prefix aware: the instance that is done with the request first, given the prefixes that instances hold."""

from __future__ import annotations

import numpy as np

from weft.jobs.inference.assignments.kind import Assignment
from weft.quantities.arrays import Integers


class PrefixAware(Assignment):
    """Chooses the instance where the load with the request is least (Qin et al. 2025, "Mooncake", algorithm 1).

    An instance that holds a request's prefix has less to do for it, unless more work waits there than that saves.
    """

    name = "prefix-aware"

    def choose(self, request: int, loads: Integers, costs: Integers) -> int:
        """Return the first instance with the least sum of load and cost."""
        return int(np.argmin(loads + costs))
