"""When the operations of a rank started and were done."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
