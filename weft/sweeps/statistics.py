"""Mean, spread and confidence interval of a figure over repetitions of a run."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
"""Share of such intervals that contain the true mean."""


@dataclass(frozen=True)
class Statistics:
    """Statistics of one figure over runs that differ only in their seed, in the figure's unit.

    Attributes:
        count: runs that have the figure.
        mean: arithmetic mean.
        standard_deviation: of a sample, with count - 1 in the denominator; None for one run.
        half_width: half the width of the 95 % confidence interval of the mean, by Student's t; None for one run.
        minimum: smallest value.
        maximum: largest value.
    """

    count: int
    mean: float
    standard_deviation: float | None
    half_width: float | None
    minimum: float
    maximum: float

    @property
    def low(self) -> float | None:
        """Lower end of the confidence interval; None for one run."""
        return None if self.half_width is None else self.mean - self.half_width

    @property
    def high(self) -> float | None:
        """Upper end of the confidence interval; None for one run."""
        return None if self.half_width is None else self.mean + self.half_width


@dataclass(frozen=True)
class StatisticColumn:
    """A statistic, with its column in statistics.csv and its heading in tables; `extra_digits` beyond the figure's."""

    key: str
    heading: str
    of: Callable[[Statistics], float | None]
    extra_digits: int = 0
    in_tables: bool = True


STATISTIC_COLUMNS = (
    StatisticColumn("mean", "mean", lambda each: each.mean, 1),
    # Tables have one of the two forms of the interval.
    StatisticColumn("half_width", "± 95 %", lambda each: each.half_width, 1),
    StatisticColumn("ci95_low", "95 % from", lambda each: each.low, 1, in_tables=False),
    StatisticColumn("ci95_high", "to", lambda each: each.high, 1, in_tables=False),
    StatisticColumn("standard_deviation", "std. dev.", lambda each: each.standard_deviation, 1),
    StatisticColumn("minimum", "min", lambda each: each.minimum),
    StatisticColumn("maximum", "max", lambda each: each.maximum),
)
"""All statistics but the count, in the order of every table and file."""


def statistics_of(values: Sequence[float]) -> Statistics:
    """Return the statistics of one or more finite values, which do not depend on their order."""
    count = len(values)
    smallest, largest = min(values), max(values)
    # Rounding must not give equal values a spread.
    mean = float(smallest) if smallest == largest else math.fsum(values) / count
    if count == 1:
        return Statistics(count, mean, None, None, smallest, largest)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half_width = t_quantile(count - 1) * deviation / math.sqrt(count)
    return Statistics(count, mean, deviation, half_width, smallest, largest)


@functools.cache
def t_quantile(freedom: int) -> float:
    """Return the t that a variable of Student's distribution exceeds in absolute value with 5 % probability.

    Args:
        freedom: degrees of freedom, 1 or more.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4, inverted by bisection.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if _probability_within(middle, freedom) < CONFIDENCE:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def _probability_within(angle: float, freedom: int) -> float:
    """Return the probability of |T| <= t, where tan(angle) = t / sqrt(freedom)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2 == 1
    if freedom == 1:
        return 2 * angle / math.pi
    # Terms cos^k with k = 1, 3, … up to freedom - 2 for odd degrees of freedom, with k = 0, 2, … for even ones.
    power = 1 if is_odd else 0
    term = cosine if is_odd else 1.0
    total = term
    while power < freedom - 2:
        power += 2
        term *= cosine * cosine * (power - 1) / power
        total += term
        if term < 1e-18:
            break
    return (2 / math.pi) * (angle + sine * total) if is_odd else sine * total
