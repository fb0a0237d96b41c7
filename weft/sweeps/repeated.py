"""`weft run --repeat`: one scenario with several seeds, each run in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weft.sweeps.axes import SEED, Axis
from weft.sweeps.execution import run_points
from weft.sweeps.plan import Point
from weft.sweeps.store import SweepStore
from weft.sweeps.sweep import SweepProgress, SweepResult, collected, write_index


def run_repeated(
    name: str, axis: Axis, arguments: Sequence[str], out: Path, workers: int, progress: SweepProgress
) -> SweepResult:
    """Run `weft run` once for each seed of an axis, and write the files of a sweep over the seed to a directory.

    Args:
        name: the scenario's name.
        axis: the seeds.
        arguments: of `weft run`, without the seed and the directory.
        out: the directory; the run with seed 3 writes to points/seed-3 below it, in place of an earlier run's files.
        workers: runs at a time.
        progress: called as runs end.

    Raises:
        BadInputError: the directory is in use.
    """
    points = [
        Point(f"seed-{each[SEED]}", each, {}, (*arguments, "--seed", str(each[SEED]))) for each in axis.assignments
    ]
    store = SweepStore(out)
    with store.locked():
        store.forget(points)
        progress.begin(len(points), len(points))
        write_index(name, [SEED], points, store)
        try:
            run_points(points, store, workers, None, progress.done)
        finally:
            found = collected(name, [SEED], points, store)
    return found
