"""How well two simulators agree on the same flows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.quantities.arrays import Integers
from weft.results.workloads import PERCENTILES

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Agreement:
    """Correlations of flows' completion times, and how far apart they are.

    Attributes:
        pearson: correlation of the logarithms of completion times.
        spearman: rank correlation of completion times; equal times share the mean of their ranks.
        pearson_of_slowdowns: correlation of the logarithms of slowdowns, in which sizes and distances play no part.
        median_ratio: median of ours over theirs, flow by flow.
        within_tenth: share of flows with a ratio of 0.9 to 1.1.

    A correlation is nan where all values of a side are equal.
    """

    pearson: float
    spearman: float
    pearson_of_slowdowns: float
    median_ratio: float
    within_tenth: float


def slowdowns(completion_ps: Integers, ideal_ps: Integers) -> tuple[float, ...]:
    """Return the mean of completion times over ideal ones, then their percentiles (PERCENTILES of workloads)."""
    ratios = completion_ps / ideal_ps
    return (float(ratios.mean()), *(float(each) for each in np.percentile(ratios, PERCENTILES)))


def agreement(ours_ps: Integers, theirs_ps: Integers, ideal_ps: Integers) -> Agreement:
    """Compare completion times of the same flows, in the same order."""
    ratios = ours_ps / theirs_ps
    return Agreement(
        pearson=_correlation(np.log(ours_ps), np.log(theirs_ps)),
        spearman=_correlation(_ranks(ours_ps), _ranks(theirs_ps)),
        pearson_of_slowdowns=_correlation(np.log(ours_ps / ideal_ps), np.log(theirs_ps / ideal_ps)),
        median_ratio=float(np.median(ratios)),
        within_tenth=float(np.mean(np.abs(ratios - 1) <= 0.1)),
    )


def _correlation(a: Floats, b: Floats) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else float("nan")


def _ranks(values: Integers) -> Floats:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2)[place], dtype=np.float64)
