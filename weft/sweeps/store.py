"""The directory of a sweep: one directory for each run, found again by the run's identity, and the table."""

from __future__ import annotations

import contextlib
import enum
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from weft.errors import BadInputError
from weft.quantities.yaml_files import yaml_text
from weft.results.json_files import read_object, validated, write_object
from weft.results.results_file import read_results
from weft.sweeps.plan import Point
from weft.system.writing import written_whole

SCENARIO = "scenario.yaml"
RESULTS = "results.json"
OUTPUT = "output.txt"
LOG = "log.txt"
_OUTCOME = "outcome.json"
_RUNNING = ".running"


class State(enum.StrEnum):
    """State of a point."""

    FINISHED = "finished"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Outcome:
    """Outcome of a point, with the reason if it failed."""

    state: State
    error: str = ""


_ADAPTER = TypeAdapter(Outcome)


def checked_results(folder: Path) -> dict[str, Any]:
    """Return the results.json in a point's directory as plain data; BadInputError: it is not what `weft run` writes."""
    read_results(folder / RESULTS)
    return read_object(folder / RESULTS)


class SweepStore:
    """A sweep's directory. A run writes to `points/IDENTITY.running`, which gets its final name once it has ended."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self._points = self.directory / "points"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Reserve the directory for this sweep, and remove what interrupted sweeps have left.

        Raises:
            BadInputError: another sweep is using it.
        """
        self._points.mkdir(parents=True, exist_ok=True)
        with (self.directory / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BadInputError("another sweep is writing there", place=self.directory) from None
            # Directories without their final name are of runs that were cut off.
            self._remove_unfinished()
            try:
                yield
            finally:
                self._remove_unfinished()

    def directory_of(self, point: Point) -> Path:
        """Where an ended run's files are."""
        return self._points / point.identity

    def outcome(self, point: Point) -> Outcome:
        """Outcome of a point, in this sweep or an earlier one. A damaged outcome means that the point runs again."""
        path = self.directory_of(point) / _OUTCOME
        try:
            return validated(_ADAPTER, path, read_object(path))
        except BadInputError:
            return Outcome(State.NOT_RUN)

    def results(self, point: Point) -> dict[str, Any]:
        """A finished run's results.json; BadInputError: it is damaged."""
        return checked_results(self.directory_of(point))

    def prepare(self, point: Point) -> Path:
        """Make the directory that a run writes to, with its scenario if the point has one."""
        running = self._points / f"{point.identity}{_RUNNING}"
        running.mkdir()
        if point.arguments:
            return running
        with written_whole(running / SCENARIO) as partial:
            partial.write_text(yaml_text(point.tree), encoding="utf-8")
        return running

    def keep(self, point: Point, outcome: Outcome) -> None:
        """Store a run's files in place of an earlier run's."""
        running = self._points / f"{point.identity}{_RUNNING}"
        write_object(_ADAPTER, running / _OUTCOME, outcome)
        final = self.directory_of(point)
        if final.exists():
            shutil.rmtree(final)
        # Atomic: whoever looks sees a whole run or none.
        os.replace(running, final)

    def forget(self, points: Iterable[Point]) -> None:
        """Remove what earlier runs of these points have left."""
        for point in points:
            if self.directory_of(point).exists():
                shutil.rmtree(self.directory_of(point))

    def _remove_unfinished(self) -> None:
        for left in self._points.glob(f"*{_RUNNING}"):
            shutil.rmtree(left)
