"""The table that the gate compares its counts with (gate.json), and how it compares them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from callgrind import DATA_MISSES, INSTRUCTION_MISSES

TABLE = Path(__file__).with_name("gate.json")
TOLERANCE = 0.02
TOLERANCES = {INSTRUCTION_MISSES: 0.2, DATA_MISSES: 0.05}
"""Tolerances of first-level misses. Two builds of the same sources place functions at other addresses, which moves
misses of instructions by 8.4 %; Python places the engine's objects, which moves misses of data by 2.1 %."""
ENGINE_COUNTS, PYTHON_COUNTS = "engine", "python"
"""Two kinds of counts: machine code of the engine and of P4 programs, and Python's work with it."""


class TableError(Exception):
    """The table lacks a count or is no table."""


@dataclass(frozen=True)
class Measured:
    """Counts of a run by name; with folders, instructions by source folder. All per packet-hop, where it has any."""

    kind: str
    counts: Mapping[str, float]
    folders: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A count and its value in the table; `compared`: False if the table holds for other compilers or versions."""

    run: str
    count: str
    now: float
    table: float
    compared: bool

    @property
    def ratio(self) -> float:
        """The present count divided by the table's."""
        return self.now / self.table if self.table else (1.0 if not self.now else float("inf"))

    @property
    def verdict(self) -> str:
        """ "worse" or "better" than the table by more than the tolerance, "same", or "not compared"."""
        if not self.compared:
            return "not compared"
        tolerance = TOLERANCES.get(self.count, TOLERANCE)
        if self.ratio > 1 + tolerance:
            return "worse"
        return "better" if self.ratio < 1 - tolerance else "same"


@dataclass(frozen=True)
class Table:
    """Counts by run, the reason for the latest change of them, and by kind of count the versions they hold for."""

    reason: str
    versions: Mapping[str, Mapping[str, str]]
    runs: Mapping[str, Measured]

    @classmethod
    def read(cls, path: Path) -> Table:
        """The table in a file. Raises TableError if there is none in it."""
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            runs = {name: Measured(**run) for name, run in raw["runs"].items()}
            return cls(raw["reason"], raw["versions"], runs)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise TableError(f"{path}: no table of counts ({error}); --update writes one") from error

    def write(self, path: Path) -> None:
        """Write it to a file."""
        rounded = {
            name: {
                "kind": run.kind,
                "counts": {count: _rounded(value) for count, value in run.counts.items()},
                "folders": {folder: _rounded(value) for folder, value in sorted(run.folders.items())},
            }
            for name, run in self.runs.items()
        }
        whole: dict[str, Any] = {**asdict(self), "runs": rounded}
        path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")

    def differences(self, versions: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
        """By kind of count, what here is another version than the table's."""
        return {
            kind: [
                f"{name} {found.get(name, 'missing')} (table: {expected.get(name, 'missing')})"
                for name in sorted({*found, *expected})
                if found.get(name) != expected.get(name)
            ]
            for kind, found in versions.items()
            for expected in [self.versions.get(kind, {})]
        }


def compare(table: Table, measured: Mapping[str, Measured], differences: Mapping[str, Sequence[str]]) -> list[Row]:
    """Return a row for each count. Raises TableError unless the table has the same runs and counts."""
    _require_same("run", table.runs, measured)
    rows = []
    for name, run in measured.items():
        _require_same(f"count of {name!r}", table.runs[name].counts, run.counts)
        rows += [
            Row(name, count, now, table.runs[name].counts[count], not differences.get(run.kind))
            for count, now in run.counts.items()
        ]
    return rows


def _require_same(what: str, table: Mapping[str, object], measured: Mapping[str, object]) -> None:
    for name in measured:
        if name not in table:
            raise TableError(f"the table has no {what} {name!r} (it has: {', '.join(table)}); --update adds it")
    for name in table:
        if name not in measured:
            raise TableError(f"the table's {what} {name!r} is not counted any more; --update drops it")


def grown_folders(table: Measured, now: Measured, most: int = 5) -> list[tuple[str, float]]:
    """Folders with the largest growth of instructions, and the growth."""
    growth = {
        folder: now.folders.get(folder, 0) - table.folders.get(folder, 0) for folder in {*now.folders, *table.folders}
    }
    return [each for each in sorted(growth.items(), key=lambda each: -each[1])[:most] if each[1] > 0]


def largest_difference(first: Mapping[str, Measured], second: Mapping[str, Measured]) -> float:
    """Return the largest difference between two measurements' counts, relative to the first."""
    return max(
        abs(second[name].counts[count] - value) / value
        for name, run in first.items()
        for count, value in run.counts.items()
        if value
    )


def _rounded(value: float) -> float:
    """To six digits: more than two counts of one program have in common."""
    return float(f"{value:.6g}")


def engine_compiler(engine_file: bytes) -> tuple[str, str]:
    """Return the compiler that an engine's file names, with its version, and whether link-time optimisation is on."""
    found = re.search(rb"GCC: \([^)]*\) ([\d.]+)|(clang version [\d.]+)", engine_file)
    name = "unknown" if found is None else (found[1] or found[2]).decode()
    # GCC's debug information names the compiler of link-time code so.
    return f"gcc {name}" if found is not None and found[1] else name, "on" if b"GNU GIMPLE" in engine_file else "off"
