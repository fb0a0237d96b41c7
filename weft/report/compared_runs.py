"""The runs that are compared: directories of runs and points of sweeps, each by a name of its own."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from weft.errors import BadInputError
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_US
from weft.report.html import flat
from weft.report.run_directory import RunDirectory
from weft.results.json_files import read_object
from weft.results.run_result import RESULTS_FILE
from weft.scenario import read_mapping
from weft.scenario.dotted import plain
from weft.sweeps.index import INDEX, SweepIndex
from weft.sweeps.store import SCENARIO, Outcome, State
from weft.sweeps.summary import shown
from weft.sweeps.table import Row, table_rows

MOST_RUNS = 64
"""Runs that are compared at most: a table has a column for each."""
TRAFFIC_RAN = "traffic_us"
"""Column of a run's first row: how long its traffic ran."""


@dataclass(frozen=True)
class ComparedRun:
    """A run, by the name that its columns have, and its results as plain data.

    `traffic`: keys of its scenario's traffic, where its directory has the scenario.
    """

    name: str
    run: RunDirectory
    results: Mapping[str, Any]
    traffic: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def rows(self) -> list[Row]:
        """Return a row for each result of an item of the traffic."""
        rows = table_rows([(_Whole(self.name), Outcome(State.FINISHED), self.results)], [])
        rows[0][TRAFFIC_RAN] = self.run.traffic_ps / PS_PER_US
        return rows

    @property
    def problem(self) -> str:
        """Why its figures are not to be ranked, "" if they are."""
        if not self.run.results.ok:
            return "a check failed"
        late = self.run.results.lateness
        return "late events, its times are INVALID" if late is not None and not late.valid else ""


@dataclass(frozen=True)
class _Whole:
    """A run as the only point of a sweep over nothing."""

    identity: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def read_runs(paths: Sequence[Path]) -> list[ComparedRun]:
    """Read directories of runs; one of a sweep, or of `weft run --repeat`, stands for all its finished points.

    Runs are called as the ends of their paths, points by the parameters that vary; A, B, … where two names would be the
    same.

    Raises:
        BadInputError: as `RunDirectory.read` and `SweepIndex.read`; or there are fewer than two runs, or too many.
    """
    found = []
    for number, path in enumerate(paths):
        found += _expanded(path, [*paths[:number], *paths[number + 1 :]])
    if not 2 <= len(found) <= MOST_RUNS:
        raise BadInputError(f"{counted(len(found), 'run')} to compare", valid=f"2 to {MOST_RUNS}")
    names = [name for name, _ in found]
    if len(set(names)) < len(names):
        names = list(_letters(len(names)))
    return [_read(name, path) for name, (_, path) in zip(names, found, strict=True)]


def _letters(count: int) -> Iterator[str]:
    """Yield A to Z, then AA, AB, …"""
    alphabet = string.ascii_uppercase
    for number in range(count):
        yield (alphabet[number // 26 - 1] if number >= 26 else "") + alphabet[number % 26]


def _expanded(path: Path, others: Sequence[Path]) -> list[tuple[str, Path]]:
    """Return the runs in a directory by their names, which differ from those in the others if paths do."""
    name = _distinct_end(path, others)
    if not (path / INDEX).exists():
        return [(name, path)]
    index = SweepIndex.read(path)
    varying = [key for key in index.parameters if len({shown(each.parameters.get(key)) for each in index.points}) > 1]
    finished = [each for each in index.points if each.state is State.FINISHED]
    if not finished:
        raise BadInputError("no point of this sweep has finished", place=path)
    prefix = f"{name} " if others else ""
    return [
        (
            prefix + ", ".join(_short(key, each.parameters.get(key)) for key in varying),
            path / "points" / each.identity,
        )
        for each in finished
    ]


def _short(key: str, value: Any) -> str:
    """Return a parameter of a point: a name says by itself what it is of, a number does not."""
    text = shown(value)
    return text if text and not text[0].isdigit() else f"{key.rpartition('.')[2]}={text}"


def _distinct_end(path: Path, others: Sequence[Path]) -> str:
    """Return the shortest end of a path that no other has; its last part if it is there twice."""
    parts = path.resolve().parts
    ends = [each.resolve().parts for each in others]
    for length in range(1, len(parts)):
        if all(each[-length:] != parts[-length:] for each in ends):
            return "/".join(parts[-length:])
    return parts[-1]


def _read(name: str, path: Path) -> ComparedRun:
    run = RunDirectory.read(path)
    traffic = {}
    if (path / SCENARIO).exists():
        tree = plain(read_mapping(path / SCENARIO, "a scenario"))
        traffic = flat({"traffic": tree.get("traffic", [])})
    return ComparedRun(name, run, read_object(path / RESULTS_FILE), traffic)
