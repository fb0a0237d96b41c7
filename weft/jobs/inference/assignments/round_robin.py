"""Round robin: the instances in turn."""

from __future__ import annotations

from collections.abc import Sequence

from weft.jobs.inference.assignments.kind import Assignment


class RoundRobin(Assignment):
    """The instances in turn."""

    name = "round-robin"

    def choose(self, request: int, loads: Sequence[int]) -> int:
        """Return the next one."""
        return request % len(loads)
