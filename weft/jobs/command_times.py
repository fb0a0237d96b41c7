"""When operations of a job could start, computed for all at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.traffic.jobs import Operations, RankTimes

Integers = NDArray[np.int64]


def ready_ps(operations: Operations, times: RankTimes) -> Integers:
    """Return when each operation's dependencies were met, in ps: ended, or started where that suffices; 0 for none.

    After that an operation waits only for others of its stream.
    """
    found = np.zeros(len(operations), np.int64)
    let_ps = np.where(
        operations.after_start, times.started_ps[operations.after], times.finished_ps[operations.after]
    )
    rows = np.repeat(np.arange(len(operations)), np.diff(operations.after_offsets))
    np.maximum.at(found, rows, let_ps)
    return found
