"""Slow-downs by spread, measured by packets: a collective of jobs that are spread so far, on the scenario's fabric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import BadInputError, WeftError
from weft.scenario import Change, anchor_paths, apply_changes, read_mapping
from weft.scenario.dotted import plain
from weft.scenario.schedule import SlowdownSection
from weft.scheduling.cluster import Cluster
from weft.scheduling.placement import Spread
from weft.scheduling.spread import MeasuredSlowdowns, power_of_two
from weft.trials import Procedure, Trial, TrialRunner

_ALGORITHMS = {"allreduce": "ring", "alltoall": "pairwise"}
_NOT_MEASURED = ("traffic", "events", "observe", "schedule", "cluster", "drill", "workers", "grpc")
"""Keys of a scenario that a measurement lacks."""


def measure(
    scenario: tuple[Path, Sequence[Change]],
    settings: SlowdownSection,
    fabric: Cluster,
    accelerators_per_host: int,
    job_hosts: Iterable[int],
    runner: TrialRunner,
) -> MeasuredSlowdowns:
    """Return slow-downs of jobs, measured on the fabric of a scenario with changes.

    Args:
        accelerators_per_host: of the hosts on which jobs are placed, which may be another cluster's.
        job_hosts: hosts that jobs need.

    Raises:
        BadInputError: the fabric has no two hosts.
        WeftError: a run has failed.
    """
    path, changes = scenario
    tree = read_mapping(path, "a scenario")
    anchor_paths(tree, path.parent)
    apply_changes(tree, changes)
    base = {key: value for key, value in plain(tree).items() if key not in _NOT_MEASURED} | {"clock": "virtual"}
    if len(fabric.hosts) < 2:
        raise BadInputError("is measured between hosts, and the fabric has one", place="schedule.slowdown")
    shapes = list(shapes_of(fabric, settings.ranks, job_hosts))
    found = runner.run({"slow-downs": _procedure(base, settings, fabric, shapes)})
    (times_ps,) = found.values()
    if isinstance(times_ps, WeftError):
        raise times_ps
    return MeasuredSlowdowns(settings.communication, accelerators_per_host, times_ps)


def shapes_of(fabric: Cluster, most_ranks: int, job_hosts: Iterable[int]) -> Iterator[Spread]:
    """Yield the shapes of jobs of several hosts that the fabric can have, each number a power of two.

    None has more than `most_ranks` ranks, or a host if one has more.
    """
    most = max(2, _at_most(most_ranks // len(fabric.ranks[0])))
    for hosts in sorted({min(power_of_two(each), most, _at_most(len(fabric.hosts))) for each in job_hosts}):
        leaves = 1
        while leaves <= hosts and hosts > 1:
            groups = 1
            while groups <= leaves:
                if _leaves_for(fabric, Spread(hosts, leaves, groups)):
                    yield Spread(hosts, leaves, groups)
                groups *= 2
            leaves *= 2


def _at_most(number: int) -> int:
    """Return the largest power of two that is not larger."""
    return 1 << (max(number, 1).bit_length() - 1)


def _leaves_for(fabric: Cluster, shape: Spread) -> list[int]:
    """Return leaves for a shape, as many in each of its groups; [] if the fabric lacks them."""
    leaf, group = fabric.levels[0], fabric.levels[min(1, len(fabric.levels) - 1)]
    each = shape.hosts // shape.leaves
    of_group: dict[int, list[int]] = {}
    for number in np.flatnonzero(leaf.sizes >= each).tolist():
        of_group.setdefault(int(group.of_host[int(np.argmax(leaf.of_host == number))]), []).append(number)
    per_group, rest = divmod(shape.leaves, shape.groups)
    full = [numbers[:per_group] for numbers in of_group.values() if len(numbers) >= per_group]
    return (
        [] if rest or len(full) < shape.groups else [number for numbers in full[: shape.groups] for number in numbers]
    )


def jobs_of(fabric: Cluster, shape: Spread) -> list[list[int]]:
    """Return the ranks of jobs of one shape that fill its leaves, side by side: a job's neighbours are spread as far.

    A job's ranks are in order of their leaves.
    """
    leaf = fabric.levels[0]
    each = shape.hosts // shape.leaves
    hosts = [np.flatnonzero(leaf.of_host == number).tolist() for number in _leaves_for(fabric, shape)]
    jobs = min(len(of_leaf) // each for of_leaf in hosts)
    return [
        [rank for of_leaf in hosts for host in of_leaf[job * each : (job + 1) * each] for rank in fabric.ranks[host]]
        for job in range(jobs)
    ]


def _procedure(
    base: Mapping[str, Any], settings: SlowdownSection, fabric: Cluster, shapes: Sequence[Spread]
) -> Procedure[dict[Spread, int]]:
    runs = yield [_trial(base, settings, fabric, shape) for shape in shapes]
    return {
        shape: int(np.mean([each.time_ps for each in run.results_of("collectives")]))
        for shape, run in zip(shapes, runs, strict=True)
    }


def _trial(base: Mapping[str, Any], settings: SlowdownSection, fabric: Cluster, shape: Spread) -> Trial:
    items = [
        {
            "collective": settings.collective,
            "algorithms": [_ALGORITHMS[settings.collective]],
            "sizes": [f"{settings.size}B"],
            "data": "lengths",
            "ranks": ranks,
        }
        for ranks in jobs_of(fabric, shape)
    ]
    return Trial(f"{shape.words}, {len(items)} such jobs", {**base, "traffic": [{"together": items}]})
