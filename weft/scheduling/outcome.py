"""Policies on the same jobs, over several seeds: means and their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

import numpy as np

from weft.errors import BadInputError
from weft.quantities.arrays import Floats
from weft.scenario.schedule import ScheduleSection
from weft.scheduling.cluster import Cluster
from weft.scheduling.policies import POLICIES
from weft.scheduling.records import State
from weft.scheduling.simulation import Run, simulate
from weft.scheduling.spread import Slowdowns
from weft.scheduling.workload import Workload, workload_of

_BUCKETS = 200
"""Means over time of which a timeline is drawn."""
_CHOICES = 9
"""Stream of random numbers for the choices of policies; those before are the jobs'."""
_STUDENT_T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.179, 2.131, 2.086, 2.042)
_DEGREES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30)
"""Degrees of freedom of these, each for itself and up to the next."""


@dataclass(frozen=True)
class Interval:
    """A mean over seeds, and half of its 95 % confidence interval (Student's t); infinite with one seed."""

    mean: float
    half: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Interval:
        """Return the interval of seeds' values."""
        if len(values) < 2:
            return cls(values[0], math.inf)
        degrees = max(place for place, own in enumerate(_DEGREES) if own <= len(values) - 1)
        return cls(mean(values), _STUDENT_T_95[degrees] * stdev(values) / math.sqrt(len(values)))


@dataclass(frozen=True)
class Timeline:
    """Means over equal times until the last arrival: accelerators in use as a share, and jobs that wait."""

    at_s: Floats
    utilisation: Floats
    waiting: Floats


@dataclass(frozen=True)
class Outcome:
    """Results of a policy: figures by the names of `FIGURES`, and the timeline of the first seed."""

    policy: str
    summary: str
    figures: Mapping[str, Interval]
    timeline: Timeline


@dataclass(frozen=True)
class Comparison:
    """Outcomes of policies on the same jobs.

    Attributes:
        load: what jobs asked of the cluster until the last arrived, a mean over seeds.
    """

    cluster: Cluster
    jobs: int
    load: float
    seeds: int
    outcomes: Sequence[Outcome]


def _shares(run: Run) -> Mapping[str, float]:
    """Return integrals over time from the first arrival to the last, as means of accelerators or jobs."""
    columns = _columns(run)
    lengths_s = np.diff(np.clip(columns.pop("at_s"), None, run.records[-1].job.arrival_s))
    span_s = float(lengths_s.sum()) or 1.0
    return {name: float(lengths_s @ column[:-1]) / span_s for name, column in columns.items()}


def _columns(run: Run) -> dict[str, Floats]:
    return dict(zip(State._fields, np.array(run.states, dtype=np.float64).T, strict=True))


def _figures(run: Run, cluster: Cluster) -> dict[str, float]:
    """Return a run's figures by the names of `FIGURES`."""
    waited_s = np.array([record.waited_s for record in run.records])
    slowdowns = np.array([record.slowdown for record in run.records])
    shares = _shares(run)
    free = cluster.accelerators - shares["used"]
    several = [r for r in run.records if r.job.accelerators > cluster.accelerators_per_host]
    excess = [r.spread.leaves / cluster.fewest_leaves(r.job.accelerators) for r in several]
    return {
        "utilisation": shares["used"] / cluster.accelerators,
        "wait_mean_s": float(waited_s.mean()),
        "wait_p50_s": float(np.percentile(waited_s, 50)),
        "wait_p95_s": float(np.percentile(waited_s, 95)),
        "slowdown_mean": float(slowdowns.mean()),
        "slowdown_p95": float(np.percentile(slowdowns, 95)),
        "leaves_over_needed": float(np.mean(excess)) if excess else 1.0,
        "idle_while_waiting": shares["idle"] / cluster.accelerators,
        "fragmentation": shares["unusable"] / free if free else 0.0,
        "queue_mean": shares["waiting"],
        "preemptions": float(sum(record.preemptions for record in run.records)),
        "migrations": float(sum(record.migrations for record in run.records)),
    }


FIGURES: Mapping[str, str] = {
    "utilisation": "accelerators in use, as a share, from the first arrival to the last",
    "wait_mean_s": "mean time in the queue",
    "wait_p50_s": "its median",
    "wait_p95_s": "its 95th percentile",
    "slowdown_mean": "time on accelerators over the run time of a packed job, a mean",
    "slowdown_p95": "its 95th percentile",
    "leaves_over_needed": "leaves of jobs of several hosts, over the fewest that could hold them",
    "idle_while_waiting": "accelerators that are free while a job waits, as a share of all",
    "fragmentation": "share of free accelerators that no waiting job could use",
    "queue_mean": "jobs that wait, a mean over time",
    "preemptions": "jobs that were preempted, each time counted",
    "migrations": "jobs that moved, each time counted",
}
"""Figures of a run, and what they are."""


def compare(
    cluster: Cluster,
    settings: ScheduleSection,
    slowdowns: Slowdowns,
    seed: int,
    seeds: int,
) -> Comparison:
    """Run each policy on the same jobs, with `seeds` draws of them; a trace's jobs are always the same.

    Raises:
        BadInputError: as `workload_of`; or the cluster has no such level.
    """
    cluster.level_number(settings.level)
    names: Sequence[str] = settings.policies or list(POLICIES)
    for number, name in enumerate(names):
        if name in names[:number]:
            raise BadInputError(f"{name} is listed twice", place=f"schedule.policies[{number}]")
    workloads = [workload_of(settings, cluster, (seed, number)) for number in range(seeds)]
    outcomes = []
    for name in names:
        policy = POLICIES.named(name)
        runs = [
            simulate(cluster, workload.jobs, policy, settings, slowdowns, (seed, number, _CHOICES))
            for number, workload in enumerate(workloads)
        ]
        found = [_figures(run, cluster) for run in runs]
        figures = {figure: Interval.of([each[figure] for each in found]) for figure in FIGURES}
        outcomes.append(Outcome(name, policy.summary, figures, _timeline(runs[0], workloads[0], cluster)))
    loads = [workload.load for workload in workloads]
    return Comparison(cluster, len(workloads[0].jobs), mean(loads), seeds, outcomes)


def _timeline(run: Run, workload: Workload, cluster: Cluster) -> Timeline:
    begin_s, end_s = workload.jobs[0].arrival_s, workload.jobs[-1].arrival_s
    edges_s = np.linspace(begin_s, end_s, _BUCKETS + 1)
    columns = _columns(run)
    at_s = columns["at_s"]

    def means(values: Floats) -> Floats:
        # The integral up to each edge, of values that hold until the next one.
        integral = np.concatenate([[0.0], np.cumsum(np.diff(at_s) * values[:-1])])
        found: Floats = np.diff(np.interp(edges_s, at_s, integral)) / max((end_s - begin_s) / _BUCKETS, 1e-12)
        return found

    return Timeline(edges_s[:-1], means(columns["used"]) / cluster.accelerators, means(columns["waiting"]))
