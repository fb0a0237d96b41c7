"""When the operations of a rank were ready, started and were done."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.quantities.arrays import Integers
from weft.traffic.jobs.operations import Operations

NEVER_PS = np.iinfo(np.int64).max
"""Stands for the time of what has not happened."""


@dataclass(frozen=True, eq=False)
class RankTimes:
    """When each operation of a rank started and was done, in ps, in order of the operations."""

    started_ps: NDArray[np.int64]
    finished_ps: NDArray[np.int64]

    def after(self, start_ps: int) -> RankTimes:
        """Return the times since one of them, of a run that has ended."""
        return RankTimes(self.started_ps - start_ps, self.finished_ps - start_ps)


def ready_ps(operations: Operations, times: RankTimes) -> Integers:
    """Return when each operation's dependencies were met, in ps: ended, or started where that suffices; 0 for none.

    After that an operation waits only for others of its stream.
    """
    found = np.zeros(len(operations), np.int64)
    let_ps = np.where(operations.after_start, times.started_ps[operations.after], times.finished_ps[operations.after])
    rows = np.repeat(np.arange(len(operations)), np.diff(operations.after_offsets))
    np.maximum.at(found, rows, let_ps)
    return found
