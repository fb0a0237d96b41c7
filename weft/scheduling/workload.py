"""Jobs of a cluster: drawn at random, or read from a trace."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft.cache import UnreadableFileError, read_text
from weft.errors import BadInputError
from weft.quantities.arrays import Floats
from weft.quantities.units import S_PER_DAY, shown
from weft.scenario.schedule import MOST_JOBS, RunTimeSection, ScheduleSection
from weft.scheduling.cluster import Cluster

_MOST_BYTES = 64 << 20
_LONGEST_S = 3650.0 * S_PER_DAY
_SHORTEST_S = 1e-3


@dataclass(frozen=True)
class Job:
    """A job: when it arrives, how many accelerators it needs at once, and how long it runs where it is packed."""

    number: int
    arrival_s: float
    accelerators: int
    run_time_s: float
    is_urgent: bool = False


@dataclass(frozen=True)
class Workload:
    """Jobs in order of their arrival; `load` is what they ask of the cluster until the last arrives, as a share."""

    jobs: tuple[Job, ...]
    load: float


_COLUMNS: Mapping[str, tuple[float, float, bool]] = {
    "arrival_s": (0.0, _LONGEST_S, True),
    "accelerators": (1, 1 << 20, True),
    "run_time_s": (_SHORTEST_S, _LONGEST_S, True),
    "urgent": (0, 1, False),
}
"""Columns of a trace: the least and the largest value, and whether a trace needs it."""
_WHOLE = ("accelerators", "urgent")


def workload_of(settings: ScheduleSection, cluster: Cluster, seed: Sequence[int]) -> Workload:
    """Return the jobs of a scenario, from its trace or drawn by `seed`.

    Raises:
        BadInputError: there are no sizes, a job is larger than the cluster can hold, or the trace is not valid.
    """
    if settings.trace is not None:
        jobs = read_trace(settings.trace)
    elif settings.sizes:
        jobs = _drawn(settings, cluster, seed)
    else:
        raise BadInputError(
            "the scenario says of no job how large it is",
            place="schedule.sizes",
            valid="a list, such as [{accelerators: 8}], or a trace",
        )
    for job in jobs:
        if job.accelerators > cluster.largest_job:
            raise BadInputError(
                f"a job of {job.accelerators:,} accelerators never starts",
                place=f"{settings.trace}" if settings.trace is not None else "schedule.sizes",
                valid=f"up to {cluster.largest_job:,}, which the cluster joins",
            )
    asked_s = sum(job.accelerators * job.run_time_s for job in jobs)
    return Workload(
        tuple(jobs), asked_s / (jobs[-1].arrival_s * cluster.accelerators) if jobs[-1].arrival_s else math.inf
    )


def _drawn(settings: ScheduleSection, cluster: Cluster, seed: Sequence[int]) -> list[Job]:
    """Return jobs that arrive at random; each draw has a stream of its own.

    Times of arrival are scaled so that the jobs drawn make the load exactly: run times vary so much that the load would
    follow from the few longest.
    """
    arrivals, sizes, times, urgent = (np.random.default_rng((*seed, stream)) for stream in range(4))
    count = settings.jobs
    shares = np.array([each.share for each in settings.sizes])
    kinds = sizes.choice(len(shares), count, p=shares / shares.sum())
    accelerators = np.array([each.accelerators for each in settings.sizes])[kinds]
    run_times = [each.run_time or settings.run_time for each in settings.sizes]
    durations_s = _run_times_s(times.standard_normal(count), [run_times[kind] for kind in kinds])
    at = np.cumsum(arrivals.exponential(1.0, count))
    span_s = float(accelerators @ durations_s) / (settings.load * cluster.accelerators)
    columns = (at * (span_s / at[-1]), accelerators, durations_s, urgent.random(count) < settings.urgent)
    return [
        Job(number, *values) for number, values in enumerate(zip(*(column.tolist() for column in columns), strict=True))
    ]


def _run_times_s(normal: Floats, sections: Sequence[RunTimeSection]) -> Floats:
    """Return log-normal times: a mean is exp(sigma² / 2) times its median."""
    medians_s = np.array([section.median or section.mean for section in sections])
    sigmas = np.array(
        [math.sqrt(2 * math.log(section.mean / (section.median or section.mean))) for section in sections]
    )
    found: Floats = np.clip(medians_s * np.exp(sigmas * normal), _SHORTEST_S, _LONGEST_S)
    return found


def read_trace(path: Path) -> list[Job]:
    """Return the jobs of a CSV file in order of their arrival. Raises BadInputError with the line and the column."""
    try:
        rows = csv.reader(io.StringIO(read_text(path, _MOST_BYTES)))
        header = [name.strip() for name in next(rows, [])]
        _check_header(path, header)
        found: list[Job] = []
        for cells in rows:
            if not cells:
                continue
            place = f"{path}:{rows.line_num}"
            if len(cells) != len(header):
                raise BadInputError(f"{len(cells)} cells", place=place, valid=f"{len(header)}, as in line 1")
            if len(found) == MOST_JOBS:
                raise BadInputError("too many jobs", place=place, valid=f"up to {MOST_JOBS:,}")
            values = {name: _value(name, cell, place) for name, cell in zip(header, cells, strict=True)}
            found.append(_job(len(found), values))
    except UnreadableFileError as error:
        raise BadInputError(error) from None
    except OSError as error:
        raise BadInputError(f"cannot be read: {error.strerror}", place=path) from None
    except UnicodeDecodeError:
        raise BadInputError("is not UTF-8 text", place=path) from None
    except csv.Error as error:
        raise BadInputError(f"is not CSV: {error}", place=path) from None
    if not found:
        raise BadInputError("has no jobs", place=path, valid="a line for each, after that with the columns")
    in_order = sorted(found, key=lambda job: job.arrival_s)
    return [Job(number, *_rest(job)) for number, job in enumerate(in_order)]


def _job(number: int, values: Mapping[str, float]) -> Job:
    return Job(
        number,
        values["arrival_s"],
        int(values["accelerators"]),
        values["run_time_s"],
        bool(values.get("urgent", 0)),
    )


def _rest(job: Job) -> tuple[float, int, float, bool]:
    return job.arrival_s, job.accelerators, job.run_time_s, job.is_urgent


def _check_header(path: Path, header: Sequence[str]) -> None:
    place = f"{path}:1"
    for name in header:
        if name not in _COLUMNS:
            raise BadInputError(f"unknown column {shown(name)}", place=place, valid=_COLUMNS)
        if header.count(name) > 1:
            raise BadInputError(f"column {name} is there twice", place=place)
    missing = [name for name, (_, _, needed) in _COLUMNS.items() if needed and name not in header]
    if missing:
        raise BadInputError(f"column {missing[0]} is missing", place=place, valid=_COLUMNS)


def _value(name: str, cell: str, place: str) -> float:
    least, most, _ = _COLUMNS[name]
    kind: Callable[[str], float] = int if name in _WHOLE else float
    try:
        # Longer numbers take long to read, and none is valid.
        value = kind(cell.strip()[:40])
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        numbers = "whole numbers" if name in _WHOLE else "numbers"
        raise BadInputError(shown(cell), place=f"{place}: {name}", valid=f"{numbers} from {least:g} to {most:,.0f}")
    return value
