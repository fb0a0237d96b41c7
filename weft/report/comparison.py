"""Two runs side by side: what made them differ, and how their results do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from weft.quantities.units import PS_PER_US
from weft.report.html import IN_FORCE, flat
from weft.report.run_directory import RunDirectory
from weft.results.json_files import read_object
from weft.results.kinds import result_kinds
from weft.results.report_parts import (
    MOST_ROWS,
    Axis,
    Cell,
    Curve,
    CurveFigure,
    ReportPart,
    ReportTable,
    shown_of,
)
from weft.results.run_result import RESULTS_FILE
from weft.sweeps.axes import plain_text
from weft.sweeps.store import Outcome, State
from weft.sweeps.summary import Measure, measures, shown
from weft.sweeps.table import Row, measured_name, table_rows

NOTHING = "–"
SAME = "="
_MOST_PORTS = 20
_LEAST_DIFFERENCE = 0.001
"""Least difference of two loads that is listed, as a share of the link's rate."""


@dataclass(frozen=True)
class ComparedRun:
    """A run, by the name that its columns have, and its results as plain data."""

    name: str
    run: RunDirectory
    results: Mapping[str, Any]

    @property
    def rows(self) -> list[Row]:
        """Return a row for each result of an item of the traffic."""
        return table_rows([(_Whole(self.name), Outcome(State.FINISHED), self.results)], [])


@dataclass(frozen=True)
class _Whole:
    """A run as the only point of a sweep over nothing."""

    identity: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def read_runs(first: Path, second: Path) -> tuple[ComparedRun, ComparedRun]:
    """Read two runs' directories; they are called as these, or A and B where the last parts of the paths are the same.

    Raises:
        BadInputError: as `RunDirectory.read`.
    """
    names = (first.resolve().name, second.resolve().name)
    if names[0] == names[1]:
        names = ("A", "B")
    found = [
        ComparedRun(name, RunDirectory.read(path), read_object(path / RESULTS_FILE))
        for name, path in zip(names, (first, second), strict=True)
    ]
    return found[0], found[1]


def comparison(first: ComparedRun, second: ComparedRun) -> dict[str, ReportPart]:
    """Return the parts by their keys, from top to bottom; those without content are left out."""
    parts: dict[str, ReportPart] = {
        "differences": _differences(first, second),
        "compared-results": _results(first, second),
        "compared-times": _chart(first, second),
        "whole-runs": _whole_runs(first, second),
        "loads": _loads(first, second),
        "load-shares": _load_shares(first, second),
    }
    return {key: part for key, part in parts.items() if not part.is_empty}


def _differences(first: ComparedRun, second: ComparedRun) -> ReportTable:
    """List parameters: those given and the fabric's first, then defaults in force that follow from them."""
    sides = [flat(each.results["made_by"]) for each in (first, second)]
    keys = dict.fromkeys(key for side in sides for key in side)
    ordered = sorted(keys, key=lambda key: key.startswith(f"{IN_FORCE}."))
    rows: list[list[Cell]] = [
        [key, *(_parameter(side, key) for side in sides)]
        for key in ordered
        if _differs(sides, key) and not _is_repeated(sides, key)
    ]
    return ReportTable(
        "What differs",
        ["parameter", first.name, second.name],
        rows[:MOST_ROWS],
        shown_of(min(len(rows), MOST_ROWS), len(rows), "the first"),
    )


def _differs(sides: Sequence[Mapping[str, Any]], key: str) -> bool:
    return bool(sides[0].get(key, NOTHING) != sides[1].get(key, NOTHING))


def _is_repeated(sides: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Return whether a parameter in force is what was given, which stands in a row of its own."""
    given = key.removeprefix(f"{IN_FORCE}.")
    return given != key and all(side.get(given, NOTHING) == side.get(key, NOTHING) for side in sides)


def _parameter(side: Mapping[str, Any], key: str) -> str:
    return NOTHING if side.get(key) is None else plain_text(side[key]) or '""'


@dataclass(frozen=True)
class _Pair:
    """A result of one run and its counterpart in the other; None where there is none."""

    name: str
    rows: tuple[Row | None, Row | None]


def _pairs(first: ComparedRun, second: ComparedRun) -> Iterator[_Pair]:
    """Pair results of a kind: with the same labels, first with first; then the rest in their order."""
    rows = [[row for row in each.rows if "measured" in row] for each in (first, second)]
    labels = {measured_name(kind.key): (kind.name, *kind.labels, "data") for kind in result_kinds()}
    for kind in dict.fromkeys(row["measured"] for side in rows for row in side):
        ours, theirs = ([row for row in side if row["measured"] == kind] for side in rows)
        telling = _telling([*ours, *theirs], labels[kind])
        rest = []
        for row in ours:
            same = next((each for each in theirs if _labels(each, labels[kind]) == _labels(row, labels[kind])), None)
            if same is None:
                rest.append(row)
                continue
            theirs.remove(same)
            yield _Pair(_named(kind, row, telling), (row, same))
        for one, other in zip_longest(rest, theirs):
            names = dict.fromkeys(_named(kind, row, telling) for row in (one, other) if row is not None)
            yield _Pair(" → ".join(names), (one, other))


def _telling(rows: Sequence[Row], labels: Sequence[str]) -> list[str]:
    """Return the first label, and those that distinguish rows."""
    return [*labels[:1], *(each for each in labels[1:] if len({shown(row.get(each)) for row in rows}) > 1)]


def _labels(row: Row, labels: Sequence[str]) -> list[str]:
    return [shown(row.get(label)) for label in labels]


def _named(kind: str, row: Row, labels: Sequence[str]) -> str:
    return ", ".join(each for each in _labels(row, labels) if each) or kind


def _results(first: ComparedRun, second: ComparedRun) -> ReportTable:
    rows: list[list[Cell]] = []
    for pair in _pairs(first, second):
        for measure in measures():
            if not measure.of_run and any(_value(measure, row) for row in pair.rows):
                rows.append([pair.name, measure.heading, *_figures(measure, *pair.rows)])
    return ReportTable(
        "Results",
        ["result", "figure", first.name, second.name, "ratio"],
        rows[: 10 * MOST_ROWS],
        shown_of(min(len(rows), 10 * MOST_ROWS), len(rows), "the first"),
    )


def _whole_runs(first: ComparedRun, second: ComparedRun) -> ReportTable:
    rows_of = [each.rows[0] for each in (first, second)]
    times = Measure("traffic ran for", "µs", 1, lambda row: row["traffic_us"])
    retransmitted = Measure("retransmitted packets", "", 0, lambda row: row.get("run.retransmissions"))
    notified = Measure("CNPs", "", 0, lambda row: row.get("run.cnps"))
    for row, each in zip(rows_of, (first, second), strict=True):
        row["traffic_us"] = each.run.traffic_ps / PS_PER_US
    of_run = [measure for measure in measures() if measure.of_run]
    return ReportTable(
        "Whole runs",
        ["figure", first.name, second.name, "ratio"],
        [
            [measure.heading, *_figures(measure, *rows_of)]
            for measure in (times, *of_run, retransmitted, notified)
            if any(_value(measure, row) for row in rows_of)
        ],
    )


def _value(measure: Measure, row: Row | None) -> float | None:
    return None if row is None else measure.of(row)


def _figures(measure: Measure, one: Row | None, other: Row | None) -> list[Cell]:
    """Return a figure of both, and the second over the first."""
    values = [_value(measure, row) for row in (one, other)]
    return [
        *(NOTHING if value is None else _rounded(value, measure.digits) for value in values),
        _ratio(*values),
    ]


def _rounded(value: float, digits: int) -> Cell:
    return round(value, digits) if digits else round(value)


def _ratio(one: float | None, other: float | None) -> Cell:
    if one is None or other is None:
        return NOTHING
    if one == other:
        return SAME
    return round(other / one, 3) if one and math.isfinite(other / one) else NOTHING


def _chart(first: ComparedRun, second: ComparedRun) -> CurveFigure:
    """Draw the times of results that both runs have, where there are several."""
    time = next(measure for measure in measures() if measure.name == "time")
    found = [
        (pair.name, values)
        for pair in _pairs(first, second)
        if None not in (values := [_value(time, row) for row in pair.rows])
    ]
    curves = [
        Curve(each.name, [name for name, _ in found], [values[side] or 0.0 for _, values in found])
        for side, each in enumerate((first, second))
    ]
    return CurveFigure(
        "Times", Axis("", scale="category"), Axis("time (µs)", "µs", "log"), curves if len(found) > 1 else []
    )


def _loads(first: ComparedRun, second: ComparedRun) -> ReportTable:
    """List the ports with the largest differences of load that both fabrics have."""
    ours, theirs = first.run.utilisation, second.run.utilisation
    both = [port for port in ours if port in theirs and abs(ours[port] - theirs[port]) > _LEAST_DIFFERENCE]
    both.sort(key=lambda port: -abs(ours[port] - theirs[port]))
    return ReportTable(
        "Loads that differ",
        ["port", f"{first.name} (%)", f"{second.name} (%)", "difference (points)"],
        [
            [
                port,
                round(100 * ours[port], 1),
                round(100 * theirs[port], 1),
                round(100 * (theirs[port] - ours[port]), 1),
            ]
            for port in both[:_MOST_PORTS]
        ],
        shown_of(min(len(both), _MOST_PORTS), len(both), "those that differ most"),
    )


def _load_shares(first: ComparedRun, second: ComparedRun) -> CurveFigure:
    curves = [
        Curve(each.name, *_distribution(each.run.utilisation.values()))
        for each in (first, second)
        if each.run.utilisation
    ]
    return CurveFigure(
        "Loads of all ports",
        Axis("share of the time in which a port sent (%)", "%"),
        Axis("ports with at most so much (%)", "%"),
        curves,
        text="Even load is a steep curve; a long tail to the right is where a few ports carry the most.",
    )


def _distribution(shares: Iterable[float]) -> tuple[list[float], list[float]]:
    ordered = sorted(shares)
    thinned = range(0, len(ordered), max(1, len(ordered) // 500))
    places = sorted({*thinned, len(ordered) - 1})
    return (
        [round(100 * ordered[place], 3) for place in places],
        [round(100 * (place + 1) / len(ordered), 3) for place in places],
    )
