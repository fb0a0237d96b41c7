"""One HTML page of a sweep: what varies, results against the axes, every point with a link to its own page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.errors import BadInputError
from weft.report.html import Section, html_page, write_page
from weft.report.page import write_report
from weft.report.series import MOST_CURVES
from weft.results.report_parts import Axis, Cell, Curve, CurveFigure, ReportTable
from weft.sweeps.index import INDEX, SweepIndex
from weft.sweeps.store import Outcome, State, checked_results
from weft.sweeps.summary import Measure, Summary, as_numbers, names_of_rows, shown, summarise
from weft.sweeps.table import Row, table_rows

_PAGE = "report.html"
_MOST_ROWS = 1000
_MEASURES_DRAWN = 4
_WIDE = 20.0
"""Ratio of the largest to the smallest value from which a scale is logarithmic."""


def is_sweep(directory: Path) -> bool:
    """Return whether a directory is a sweep's."""
    return (directory / INDEX).exists()


def write_sweep_report(directory: Path, target: Path) -> Path:
    """Write the page of a sweep's directory, and one next to each point's results; returns the path of the first.

    The page says which points have damaged results, and shows the others.

    Raises:
        BadInputError: sweep.json is not what a sweep writes.
        EnvironmentLacksError: plotly is missing, or a page cannot be written.
    """
    index = SweepIndex.read(directory)
    outcomes, results = [], []
    for point in index.points:
        outcome, found = _point(directory / "points" / point.identity, point.outcome)
        outcomes.append(outcome)
        results.append(found)
    rows = table_rows(zip(index.points, outcomes, results, strict=True), index.parameters)
    folder = Path("points")
    if target.parent.resolve() != directory.resolve():
        folder = directory.resolve() / "points"
    return write_page(sweep_page(index, rows, outcomes, folder), target)


def _point(folder: Path, outcome: Outcome) -> tuple[Outcome, dict[str, Any]]:
    """Write a finished point's page; returns its results, or why there are none."""
    if outcome.state is not State.FINISHED:
        return outcome, {}
    try:
        write_report(folder, folder / _PAGE)
    except BadInputError as error:
        return Outcome(State.FAILED, str(error)), {}
    return outcome, checked_results(folder)


def sweep_page(index: SweepIndex, rows: Sequence[Row], outcomes: Sequence[Outcome], folder: Path) -> str:
    """Return the page as HTML; pages of points are in `folder`, each in a directory named by its identity."""
    summary = summarise(rows, index.parameters)
    figures = sweep_figures(summary)
    drawn = {name: figure.data() for name, figure in figures.items()}
    finished = sum(outcome.state is State.FINISHED for outcome in outcomes)
    count = len(outcomes)
    verdict = f'<span class="{"good" if finished == count else "bad"}">{finished} of {count} points finished</span>'
    varying = f"{len(summary.axes)} parameter{'s' if len(summary.axes) != 1 else ''} varied"
    sections = [
        *(Section.table(table) for table in (_axes(rows, summary), _failed(index, outcomes)) if table.rows),
        *(Section.part(name, figure) for name, figure in figures.items()),
        _points(index, summary, folder),
    ]
    return html_page(f"sweep of {index.scenario}", verdict, varying, sections, {"figures": drawn})


def _axes(rows: Sequence[Row], summary: Summary) -> ReportTable:
    of_axes: list[list[Cell]] = []
    for axis in summary.axes:
        values = list(dict.fromkeys(shown(row.get(axis)) or "–" for row in rows))
        of_axes.append([axis, len(values), ", ".join(values[:16]) + (" …" if len(values) > 16 else "")])
    return ReportTable("What varies", ["parameter", "values", ""], of_axes)


def _failed(index: SweepIndex, outcomes: Sequence[Outcome]) -> ReportTable:
    rows: list[list[Cell]] = [
        [
            ", ".join(f"{key}={shown(value)}" for key, value in point.parameters.items()) or point.identity,
            outcome.state.value,
            outcome.error,
        ]
        for point, outcome in zip(index.points, outcomes, strict=True)
        if outcome.state is not State.FINISHED
    ]
    return ReportTable("Points without results", ["point", "state", "why"], rows)


def _points(index: SweepIndex, summary: Summary, folder: Path) -> str:
    numbers = {point.identity: str(number) for number, point in reversed([*enumerate(index.points, 1)])}
    rows: list[list[Cell]] = []
    for row in summary.rows[:_MOST_ROWS]:
        axes: list[Cell] = [_cell(row.get(column)) for column in (*summary.axes, *summary.labels)]
        rows.append([numbers[row["point"]], *axes, *(_measured(measure, row) for measure in summary.measures)])
    if not rows:
        return ""
    links = {number: f"{folder}/{identity}/{_PAGE}" for identity, number in numbers.items()}
    count = len(summary.rows)
    more = f"the first {len(rows)} of {count} rows; table.csv has all" if count > len(rows) else ""
    note = "; ".join(each for each in (more, summary.note) if each)
    return Section.table(ReportTable("Points", ["point", *summary.headings()], rows, note), links)


def _cell(value: Any) -> Cell:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else shown(value)


def _measured(measure: Measure, row: Row) -> Cell:
    value = measure.of(row)
    if value is None:
        return ""
    return round(value) if measure.digits == 0 else round(value, measure.digits)


def sweep_figures(summary: Summary) -> dict[str, CurveFigure]:
    """Return charts of results against the axis of the most values, and of the first result against the other axes."""
    axes = sorted(summary.axes, key=lambda axis: -len({shown(row.get(axis)) for row in summary.rows}))
    if not axes:
        return {}
    chosen = [(axes[0], measure) for measure in summary.measures[:_MEASURES_DRAWN]]
    chosen += [(axis, measure) for axis in axes[1:] for measure in summary.measures[:1]]
    charts = [_chart(summary, axis, measure) for axis, measure in chosen]
    return {f"axis-{number}": chart for number, chart in enumerate(charts)}


def _chart(summary: Summary, axis: str, measure: Measure) -> CurveFigure:
    others = [column for column in summary.axes if column != axis]
    items = [""] * len(summary.rows) if measure.of_run else names_of_rows(summary)
    numbers = as_numbers([row.get(axis) for row in summary.rows])
    places = numbers[0] if numbers else [shown(row.get(axis)) for row in summary.rows]
    curves: dict[str, dict[Any, float]] = {}
    for row, place, item in zip(summary.rows, places, items, strict=True):
        value = measure.of(row)
        if value is not None:
            names = [f"{column.rpartition('.')[2]} {shown(row.get(column)) or '–'}" for column in others]
            name = ", ".join(each for each in (*names, item) if each) or measure.name
            # Repetitions of the same traffic: any of them will do, so take the last.
            curves.setdefault(name, {})[place] = round(value, 6)
    drawn = list(curves.items())[:MOST_CURVES]
    values = [value for _, curve in drawn for value in curve.values()]
    ordered = [(name, sorted(curve.items()) if numbers else list(curve.items())) for name, curve in drawn]
    return CurveFigure(
        f"{measure.name[0].upper()}{measure.name[1:]} against {axis}",
        Axis(
            f"{axis} ({numbers[1]})" if numbers and numbers[1] else axis,
            numbers[1] if numbers else "",
            ("log" if _is_wide(places) else "linear") if numbers else "category",
        ),
        Axis(measure.heading, measure.unit, "log" if _is_wide(values) else "linear"),
        [Curve(name, [x for x, _ in curve], [y for _, y in curve]) for name, curve in ordered],
        text="Over the whole run." if measure.of_run and summary.labels else "",
        note=f"{len(drawn)} of {len(curves)} curves are drawn" if len(curves) > len(drawn) else "",
    )


def _is_wide(values: Sequence[Any]) -> bool:
    numbers = [value for value in values if isinstance(value, int | float)]
    if not numbers or min(numbers) <= 0 or not all(math.isfinite(value) for value in numbers):
        return False
    return bool(max(numbers) / min(numbers) > _WIDE)
