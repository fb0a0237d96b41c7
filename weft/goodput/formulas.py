"""Published formulas of the time that failures, checkpoints and restarts leave to a job.

Rates are of failures that end the job, in all its parts together, per second.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_GOLDEN = (math.sqrt(5) - 1) / 2


def efficiency(interval_s: float, cost_s: float, restart_s: float, rate: float) -> float:
    """Return the share of time that is kept work, with failures at random at any time, also while the job starts.

    Source: Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation
    Computer Systems 22 (2006), equation 13: the mean time of `interval_s` of work and its checkpoint.
    """
    if rate == 0:
        return interval_s / (interval_s + cost_s)
    try:
        mean_s = math.exp(restart_s * rate) * math.expm1((interval_s + cost_s) * rate) / rate
    except OverflowError:
        return 0.0
    return interval_s / mean_s


def effective_training_time_ratio(interval_s: float, restart_s: float, rate: float) -> float:
    """Return the expected share of kept work of a long job that never queues, without the cost of checkpoints.

    A failure costs half an interval and a restart, to first order. Source: Kokolis et al., "Revisiting Reliability in
    Large-Scale Machine Learning Research Clusters", HPCA 2025 (arXiv 2410.21680), section on the effective training
    time ratio.
    """
    return max(0.0, 1 - rate * (restart_s + interval_s / 2))


def young_interval_s(cost_s: float, rate: float) -> float:
    """Return the interval that loses least, to first order: Young, Communications of the ACM 17 (1974)."""
    return math.inf if rate == 0 else math.sqrt(2 * cost_s / rate)


def best_interval_s(cost_s: float, rate: float) -> float:
    """Return the interval with the largest `efficiency`, and infinity without failures; 0 if checkpoints cost nothing.

    The time of a restart only scales all of the time, and does not count.
    """
    if rate == 0:
        return math.inf
    if cost_s == 0:
        return 0.0
    young_s = young_interval_s(cost_s, rate)
    return _maximum(lambda interval_s: efficiency(interval_s, cost_s, 0.0, rate), young_s / 100, young_s * 100)


def _maximum(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one hump is largest, by golden sections of the logarithm."""
    a, b = math.log(low), math.log(high)
    while b - a > 1e-6:
        left, right = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
        if function(math.exp(left)) < function(math.exp(right)):
            a = left
        else:
            b = right
    return math.exp((a + b) / 2)
