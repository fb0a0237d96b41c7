"""Least loaded: the instance with the least load."""

from __future__ import annotations

import numpy as np

from weft.jobs.inference.assignments.kind import Assignment
from weft.quantities.arrays import Integers


class LeastLoaded(Assignment):
    """Chooses the instance with the least load, the first among equals."""

    name = "least-loaded"

    def choose(self, request: int, loads: Integers, costs: Integers) -> int:
        """Return the first instance with the least load."""
        return int(np.argmin(loads))
