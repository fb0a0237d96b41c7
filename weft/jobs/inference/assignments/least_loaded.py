"""Least loaded: the instance with the least load."""

from __future__ import annotations

from collections.abc import Sequence

from weft.jobs.inference.assignments.kind import Assignment


class LeastLoaded(Assignment):
    """The instance with the least load, the first of several."""

    name = "least-loaded"

    def choose(self, request: int, loads: Sequence[int]) -> int:
        """Return the first of those with the least load."""
        return min(range(len(loads)), key=loads.__getitem__)
