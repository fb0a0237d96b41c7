"""Times of collectives in a trial's results."""

from __future__ import annotations

from collections.abc import Mapping

from weft.quantities.units import PS_PER_US
from weft.trials import TrialRun


def times_us(run: TrialRun) -> Mapping[tuple[str, int], float]:
    """Return the mean time of each collective, by algorithm and size; TrialFailedError: the run has none."""
    return {(each.algorithm, each.size_bytes): each.time_ps / PS_PER_US for each in run.results_of("collectives")}
