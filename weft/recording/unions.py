"""The union of intervals of time."""

from __future__ import annotations

import numpy as np

from weft.quantities.arrays import Integers


def unions(starts: Integers, ends: Integers, gap: int = 0) -> tuple[Integers, Integers]:
    """Return the union of intervals as starts and ends, merged across gaps up to `gap`; empty ones are left out."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    if not len(starts):
        return starts, ends
    reached = np.maximum.accumulate(ends)
    fresh = np.concatenate([[True], starts[1:] > reached[:-1] + gap])
    first = np.flatnonzero(fresh)
    covered = starts[first], np.append(reached[first[1:] - 1], reached[-1])
    lasting = covered[1] > covered[0]
    return covered[0][lasting], covered[1][lasting]
