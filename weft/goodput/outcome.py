"""Many histories of a cluster: means and spread, beside the formulas; and over checkpoint intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weft.goodput.cluster import Cluster
from weft.goodput.formulas import effective_training_time_ratio, efficiency, young_interval_s
from weft.goodput.history import History, Spent, live
from weft.quantities.units import S_PER_DAY

_SWEEP = (0.1, 0.18, 0.32, 0.56, 1.0, 1.8, 3.2, 5.6, 10.0)
"""Intervals that are compared, as shares of the one in force."""


@dataclass(frozen=True)
class Share:
    """A share of time over histories: its mean, and the 5th and 95th percentile."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Share:
        """Return the share of histories' values."""
        low, high = np.percentile(values, (5, 95))
        return cls(float(np.mean(values)), float(low), float(high))


@dataclass(frozen=True)
class Interval:
    """A checkpoint interval, the goodput that histories have with it, and the formula's."""

    interval_s: float
    goodput: Share
    formula: float


@dataclass(frozen=True)
class MeasuredFailure:
    """Effect of a part's failure on a job's traffic, measured with packets.

    Attributes:
        title: of the failures in the scenario.
        element: which one failed.
        speed: of the traffic without the part, as a share of that with it; 0 if it failed.
        stall_s: seconds that the failure itself cost.
        error: why the traffic failed; "" if it did not.
    """

    title: str
    element: str
    speed: float
    stall_s: float
    error: str = ""


@dataclass(frozen=True)
class MeasuredCheckpoint:
    """Times of a checkpoint, measured with packets and extended to the whole of it.

    Attributes:
        size_bytes: of a whole checkpoint as it is saved.
        saving_s: seconds that it takes to save it; None if that was not asked for.
        slowed_s: seconds that the traffic takes longer in the meantime.
        restoring_s: seconds that it takes to restore it; None if that was not asked for.
        share: of the checkpoint that was run, the smaller one of saving and restoring.
    """

    size_bytes: int
    saving_s: float | None
    slowed_s: float
    restoring_s: float | None
    share: float


@dataclass(frozen=True)
class Outcome:
    """Histories of a cluster.

    Attributes:
        spent: share of time by what it goes to.
        failures_per_day, interruptions: means; failures by kind.
        formula: share of kept work by Daly's formula, which knows of no waiting, stalls and slowness.
        first_order: by that of Kokolis et al., which does not know what checkpoints cost, either.
        intervals: goodput over checkpoint intervals; empty unless they were asked for.
        measured: failures whose effect was measured with packets.
        checkpoint: its times, if they were measured with packets.
    """

    cluster: Cluster
    histories: int
    spent: Mapping[Spent, Share]
    failures_per_day: Mapping[str, float]
    interruptions: Share
    formula: float
    first_order: float
    young_interval_s: float
    intervals: Sequence[Interval]
    measured: Sequence[MeasuredFailure] = ()
    checkpoint: MeasuredCheckpoint | None = None

    @property
    def goodput(self) -> Share:
        """The share of kept work: the effective training time ratio."""
        return self.spent[Spent.KEPT]

    @property
    def accelerator_hours_lost(self) -> float:
        """Hours of accelerators that were no kept work, a mean of histories."""
        return (1 - self.goodput.mean) * self.cluster.duration_s / 3600 * self.cluster.accelerators


def outcome_of(cluster: Cluster, seed: int, histories: int, with_intervals: bool = False) -> Outcome:
    """Live `histories` histories, which `seed` draws; `with_intervals` also with other checkpoint intervals.

    The same failures come at the same times with every interval.
    """
    lived = _lived(cluster, seed, histories)
    days = cluster.duration_s / S_PER_DAY
    intervals = []
    if with_intervals:
        for share in _SWEEP:
            interval_s = share * cluster.interval_s
            if cluster.checkpoint.saving > interval_s + cluster.checkpoint.cost:
                continue
            other = lived if share == 1 else _lived(replace(cluster, interval_s=interval_s), seed, histories)
            goodput = Share.of([each.goodput for each in other])
            intervals.append(Interval(interval_s, goodput, _formula(cluster, interval_s)))
    return Outcome(
        cluster,
        histories,
        {spent: Share.of([each.spent_s[spent] / each.duration_s for each in lived]) for spent in Spent},
        {kind.title: sum(each.failures[kind.title] for each in lived) / histories / days for kind in cluster.kinds},
        Share.of([float(each.interruptions) for each in lived]),
        _formula(cluster, cluster.interval_s),
        effective_training_time_ratio(cluster.interval_s, cluster.restart_s, cluster.interruption_rate),
        young_interval_s(cluster.checkpoint.cost, cluster.interruption_rate),
        intervals,
    )


def _lived(cluster: Cluster, seed: int, histories: int) -> list[History]:
    return [live(cluster, (seed, number)) for number in range(histories)]


def _formula(cluster: Cluster, interval_s: float) -> float:
    return efficiency(interval_s, cluster.checkpoint.cost, cluster.restart_s, cluster.interruption_rate)
