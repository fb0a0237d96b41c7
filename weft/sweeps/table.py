"""One table of a sweep: parameters and figures as columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from weft.results.kinds import result_kinds
from weft.sweeps.axes import plain_text
from weft.sweeps.store import Outcome, State
from weft.system.writing import written_whole

Row = dict[str, Any]


class MeasuredPoint(Protocol):
    """A point, as a table needs it."""

    @property
    def identity(self) -> str:
        """Hash that identifies it."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Its parameters."""


# Keys of results.json that say nothing about the run.
_LEFT_OUT = ("made_by", "int_paths")


def table_rows(
    ended: Iterable[tuple[MeasuredPoint, Outcome, Mapping[str, Any]]], parameters: Sequence[str]
) -> list[Row]:
    """Return the rows: one for each result of an item of a point's traffic, in order of their kinds.

    Figures of the whole run (drops, marks, largest queues) are called `run.…` and stand in each of its rows. A point
    that ran none, or has not finished, has one row.
    """
    rows = []
    for point, outcome, results in ended:
        head: Row = {"point": point.identity, **{key: point.parameters.get(key) for key in parameters}}
        head |= {"state": outcome.state.value, "error": outcome.error or None}
        tail = _of_the_run(results) if outcome.state is State.FINISHED else {}
        measured = [
            {"measured": measured_name(kind.key), **_flat(item), **kind.flattened(item)}
            for kind in result_kinds()
            for item in results.get(kind.key, [])
        ]
        rows += [{**head, **each, **tail} for each in measured or [{}]]
    return rows


def measured_name(key: str) -> str:
    """Return what rows call a kind of result, given its key."""
    return key.removesuffix("s")


def columns_of(rows: Sequence[Row]) -> list[str]:
    """Return the columns that hold anything, in order of appearance."""
    columns = dict.fromkeys(column for row in rows for column in row)
    return [column for column in columns if any(row.get(column) is not None for row in rows)]


def csv_text(rows: Sequence[Row]) -> str:
    """Return the rows as CSV with a header; an empty field is a figure that a row does not have."""
    columns = columns_of(rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([[plain_text(row.get(column)) for column in columns] for row in rows])
    return text.getvalue()


def write_table(rows: Sequence[Row], directory: Path) -> Path:
    """Write table.csv, whole or not at all, and return its path."""
    path = directory / "table.csv"
    with written_whole(path) as partial:
        partial.write_text(csv_text(rows), encoding="utf-8")
    return path


def _of_the_run(results: Mapping[str, Any]) -> Row:
    measured = {kind.key for kind in result_kinds()}
    whole: dict[str, Any] = {}
    for key, value in results.items():
        if key == "planes":
            whole |= {
                f"plane{plane['plane']}": {name: figure for name, figure in plane.items() if name != "plane"}
                for plane in value
            }
        elif key not in measured and key not in _LEFT_OUT:
            whole[key] = value
    return _flat(whole, "run.")


def _flat(item: Mapping[str, Any], prefix: str = "") -> Row:
    """Return scalars by dotted name; lists are left to the point's own files."""
    row: Row = {}
    for key, value in item.items():
        if isinstance(value, Mapping):
            row |= _flat(value, f"{prefix}{key}.")
        elif not isinstance(value, list | tuple):
            row[prefix + key] = value
    return row
