"""Parts of a step of a job: computing, and what no computation hides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StepParts:
    """Parts of a step's time, on average over ranks. `total_ps` is their sum.

    Attributes:
        compute_ps: computing.
        exposed_ps: communication that no computation hid.
        bubble_ps: waiting for messages that had not been sent, and for the end.
        stall_ps: waiting for ranks that had not begun a collective.
    """

    compute_ps: float
    exposed_ps: float
    bubble_ps: float = 0
    stall_ps: float = 0

    @property
    def total_ps(self) -> float:
        """Return the step's time."""
        return self.compute_ps + self.exposed_ps + self.bubble_ps + self.stall_ps

    @property
    def computing_share(self) -> float:
        """Return the share of the time in which ranks computed; 0 where no time passed."""
        return self.compute_ps / self.total_ps if self.total_ps else 0.0

    @classmethod
    def of_ranks(
        cls, compute_ps: Sequence[int], exposed_ps: Sequence[int], bubble_ps: Sequence[int], stall_ps: Sequence[int]
    ) -> StepParts:
        """Return the means over ranks, given each rank's parts."""
        return cls(*(sum(each) / max(1, len(each)) for each in (compute_ps, exposed_ps, bubble_ps, stall_ps)))

    @classmethod
    def sum_of(cls, steps: Sequence[StepParts]) -> StepParts:
        """Return the parts of several steps together."""
        return cls(
            sum(each.compute_ps for each in steps),
            sum(each.exposed_ps for each in steps),
            sum(each.bubble_ps for each in steps),
            sum(each.stall_ps for each in steps),
        )
