"""Round robin: the instances in turn."""

from __future__ import annotations

from weft.jobs.inference.assignments.kind import Assignment
from weft.quantities.arrays import Integers


class RoundRobin(Assignment):
    """Chooses the instances in turn."""

    name = "round-robin"

    def choose(self, request: int, loads: Integers, costs: Integers) -> int:
        """Return the next instance."""
        return request % len(loads)
