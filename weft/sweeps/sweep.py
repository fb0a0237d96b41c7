"""A sweep from beginning to end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from weft.errors import BadInputError
from weft.scenario import Change
from weft.sweeps.axes import Axis, grid_axis, points_axis, zip_axis
from weft.sweeps.execution import run_points
from weft.sweeps.index import index_of
from weft.sweeps.plan import Point, SweepPlan
from weft.sweeps.repetitions import Repetitions, repetitions_of, write_statistics
from weft.sweeps.store import Outcome, State, SweepStore
from weft.sweeps.table import Row, table_rows, write_table


class SweepProgress(Protocol):
    """Shows the progress of a sweep."""

    def begin(self, points: int, left: int) -> None:
        """All points are checked; `left` of them are to be run."""

    def done(self, point: Point, outcome: Outcome) -> None:
        """A run has ended."""


class _Silent:
    def begin(self, points: int, left: int) -> None:
        pass

    def done(self, point: Point, outcome: Outcome) -> None:
        pass


@dataclass(frozen=True)
class SweepResult:
    """A sweep that has ended.

    `rows` are the table's, in order; `points` go with `outcomes`; `parameters` are what the axes set. `table` is the
    file, `directory` where everything is. `repetitions` has the statistics of points that differ only in their seed,
    `statistics` is their file; both are None if there are no such points.
    """

    directory: Path
    table: Path
    rows: list[Row]
    points: list[Point]
    outcomes: list[Outcome]
    parameters: list[str]
    repetitions: Repetitions | None
    statistics: Path | None
    _store: SweepStore = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether every point has finished."""
        return all(outcome.state is State.FINISHED for outcome in self.outcomes)

    def failed(self) -> list[tuple[Point, str]]:
        """The points that failed, with their errors."""
        return [
            (point, outcome.error)
            for point, outcome in zip(self.points, self.outcomes, strict=True)
            if outcome.state is State.FAILED
        ]

    def directory_of(self, point: Point) -> Path:
        """Where a point's scenario and results are."""
        return self._store.directory_of(point)


def sweep(
    file: str | Path,
    out: str | Path,
    *,
    grid: Mapping[str, Any] | None = None,
    zip: Mapping[str, Any] | None = None,
    points: Sequence[Mapping[str, Any]] | None = None,
    repeat: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    retry_failed: bool = False,
    progress: SweepProgress | None = None,
) -> SweepResult:
    """Run a scenario with every combination of some parameters, each in a process of its own, and make one table.

    Points that have already finished in `out` are not run again. The table is the same for any number of workers.

    Args:
        file: a scenario, or a sweep's file; the axes in the file come first.
        out: directory of table.csv and of points/.
        grid: values by dotted path of a parameter, as {"fabric.spines": [2, 4], "seed": "1..5"}.
        zip: values of parameters that change together.
        points: assignments as they are listed.
        repeat: run each point with so many seeds, from the scenario's on; as "repeat" in a sweep's file.
        workers: runs at a time on this machine; by default its processors.
        scheduler: address of a Dask cluster instead.
        retry_failed: run again what has failed before.
        progress: called as runs end.

    Raises:
        BadInputError: a parameter or value is not valid, or `out` is in use; nothing has been run.
        EnvironmentLacksError: the cluster or Dask is not available, or a scenario needs what the machine lacks.
    """
    axes = [zip_axis(zip, "zip")] if zip else []
    axes += [points_axis(points, "points")] if points is not None else []
    axes += [grid_axis(key, values, "grid") for key, values in (grid or {}).items()]
    return run_sweep(Path(file), axes, Path(out), workers, scheduler, retry_failed, progress, (), repeat)


def run_sweep(
    file: Path,
    axes: Sequence[Axis],
    out: Path,
    workers: int | None = None,
    scheduler: str | None = None,
    retry_failed: bool = False,
    progress: SweepProgress | None = None,
    changes: Sequence[Change] = (),
    repeat: int | None = None,
) -> SweepResult:
    """As `sweep`, with axes made before, and `changes` of the scenario."""
    if workers is not None and workers < 1:
        raise BadInputError(f"{workers} workers", valid="1 or more")
    if workers is not None and scheduler is not None:
        raise BadInputError(f"the cluster at {scheduler} has its own workers: leave their number out")
    progress = progress or _Silent()
    plan = SweepPlan.read(file, axes, changes, repeat)
    points = plan.points()
    parameters = list(dict.fromkeys(key for axis in plan.axes for key in axis.keys))
    store = SweepStore(out)
    ended_before = (State.FINISHED,) if retry_failed else (State.FINISHED, State.FAILED)
    with store.locked():
        # Two assignments may come to the same scenario; it is run once.
        distinct = {point.identity: point for point in points}.values()
        left = [point for point in distinct if store.outcome(point).state not in ended_before]
        progress.begin(len(points), len(left))
        write_index(str(plan.tree.get("name", "sweep")), parameters, points, store)
        try:
            run_points(left, store, workers or len(os.sched_getaffinity(0)), scheduler, progress.done)
        finally:
            found = collected(str(plan.tree.get("name", "sweep")), parameters, points, store)
    return found


def collected(name: str, parameters: Sequence[str], points: list[Point], store: SweepStore) -> SweepResult:
    """Write the table, the statistics and the index of points that have ended, and return what they are."""
    outcomes = [store.outcome(point) for point in points]
    rows = table_rows(
        [
            (point, outcome, store.results(point) if outcome.state is State.FINISHED else {})
            for point, outcome in zip(points, outcomes, strict=True)
        ],
        parameters,
    )
    table = write_table(rows, store.directory)
    repetitions = repetitions_of(rows, parameters)
    statistics = write_statistics(repetitions, store.directory)
    write_index(name, parameters, points, store)
    return SweepResult(store.directory, table, rows, points, outcomes, list(parameters), repetitions, statistics, store)


def write_index(name: str, parameters: Sequence[str], points: Sequence[Point], store: SweepStore) -> None:
    """Write the outcomes so far, so that a sweep that is still running, or was killed, also has a page."""
    ended = [(point.identity, point.parameters, store.outcome(point)) for point in points]
    index_of(name, parameters, ended).write(store.directory)
