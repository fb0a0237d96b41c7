"""One HTML page of a sweep: what varies, results against the axes, every point with a link to its own page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.errors import BadInputError
from weft.quantities.readable import format_size
from weft.report.html import Section, html_page, write_page
from weft.report.page import write_report
from weft.report.series import MOST_CURVES
from weft.results.report_parts import Axis, Cell, Curve, CurveFigure, ReportTable, shown_of
from weft.sweeps.axes import SEED
from weft.sweeps.index import INDEX, SweepIndex
from weft.sweeps.repetitions import Repetitions, repetitions_of
from weft.sweeps.statistics import Statistics
from weft.sweeps.store import Outcome, State, checked_results
from weft.sweeps.summary import Measure, Summary, as_numbers, joined_labels, names_of_rows, shown, summarise
from weft.sweeps.table import Row, table_rows

_PAGE = "report.html"
_MOST_ROWS = 1000
_MEASURES_DRAWN = 4
_MOST_PANELS = 12
_SHORT_TABLE = 16
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
    repetitions = repetitions_of(rows, index.parameters)
    charts = sweep_charts(summary, repetitions)
    drawn = {key: figure.data() for chart in charts for key, (_, figure) in chart.panels.items()}
    finished = sum(outcome.state is State.FINISHED for outcome in outcomes)
    count = len(outcomes)
    verdict = f'<span class="{"good" if finished == count else "bad"}">{finished} of {count} points finished</span>'
    varying = f"{len(summary.axes)} parameter{'s' if len(summary.axes) != 1 else ''} varied"
    sections = [
        *(Section.table(table) for table in (_axes(rows, summary), _failed(index, outcomes)) if table.rows),
        Section.sentences("About the repetitions", [] if repetitions is None else repetitions.remarks()),
        *_statistics_and([chart.section for chart in charts], repetitions),
        _points(index, summary, folder),
    ]
    return html_page(f"sweep of {index.scenario}", verdict, varying, sections, {"figures": drawn})


def _statistics_and(charts: list[str], repetitions: Repetitions | None) -> list[str]:
    """Return the sections of charts and the table of statistics, which comes first if readers see both at once."""
    rows = [] if repetitions is None else list(repetitions.sortable_cells())
    if repetitions is None or not rows:
        return charts
    note = shown_of(min(len(rows), _MOST_ROWS), len(rows), "the first; statistics.csv has all")
    table = Section.table(ReportTable(repetitions.title, repetitions.sortable_headings(), rows[:_MOST_ROWS], note))
    return [table, *charts] if len(rows) <= _SHORT_TABLE else [*charts, table]


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


@dataclass(frozen=True)
class SweepChart:
    """Results against an axis: a figure, or one for each value of another parameter, by its key and with a heading."""

    title: str
    panels: Mapping[str, tuple[str, CurveFigure]]
    text: str
    note: str

    @property
    def section(self) -> str:
        """Return the section as HTML."""
        if len(self.panels) > 1:
            headings = {key: heading for key, (heading, _) in self.panels.items()}
            return Section.panels(self.title, self.text, self.note, headings)
        return "".join(Section.figure(key, self.title, self.text, self.note) for key in self.panels)


@dataclass(frozen=True)
class _Drawn:
    """The rows that are drawn, and what of each: a value, and half the length of its error bar."""

    summary: Summary
    value: Callable[[int, Measure], tuple[float, float | None] | None]

    def part(self, rows: Sequence[int], left_out: str) -> _Drawn:
        """Return some of the rows, without a column that they have alike."""
        whole = self.summary
        part = replace(
            whole,
            rows=[whole.rows[row] for row in rows],
            axes=[each for each in whole.axes if each != left_out],
            labels=[each for each in whole.labels if each != left_out],
        )
        return _Drawn(part, lambda number, measure: self.value(rows[number], measure))


def charts_of_sweep(directory: Path) -> list[SweepChart]:
    """Return the charts of a sweep's directory, without writing anything.

    Raises:
        BadInputError: sweep.json, or the results of a finished point, are not what a sweep writes.
    """
    index = SweepIndex.read(directory)
    outcomes = [point.outcome for point in index.points]
    results = [
        checked_results(directory / "points" / point.identity) if point.outcome.state is State.FINISHED else {}
        for point in index.points
    ]
    rows = table_rows(zip(index.points, outcomes, results, strict=True), index.parameters)
    return sweep_charts(summarise(rows, index.parameters), repetitions_of(rows, index.parameters))


def sweep_charts(summary: Summary, repetitions: Repetitions | None = None) -> list[SweepChart]:
    """Return charts of results against the axis of the most values, and of the first result against the other axes.

    Those of repetitions are of means, with their confidence intervals. Where only seeds vary, they are drawn against
    the results' sizes, and without sizes each run is drawn against its seed.
    """
    each_run = _Drawn(summary, lambda number, measure: _alone(measure.of(summary.rows[number])))
    if repetitions is None:
        return _charts(each_run, _axes_by_values(summary), False)
    found = repetitions
    means = _Drawn(found.heads, lambda number, measure: _mean(found.results[number].of(measure)))
    axes = _axes_by_values(found.heads)
    axes = axes or [each for each in found.heads.labels if _is_size(each, [row.get(each) for row in found.heads.rows])]
    return _charts(means, axes, True) if axes else _charts(each_run, [SEED], False)


def _axes_by_values(summary: Summary) -> list[str]:
    """Return the axes, the one with the most values first."""
    return sorted(summary.axes, key=lambda axis: -len({shown(row.get(axis)) for row in summary.rows}))


def _charts(drawn: _Drawn, axes: Sequence[str], of_means: bool) -> list[SweepChart]:
    measures = drawn.summary.measures
    chosen = [(axis, measure) for axis in axes[:1] for measure in measures[:_MEASURES_DRAWN]]
    chosen += [(axis, measure) for axis in axes[1:] for measure in measures[:1]]
    return [_chart(f"axis-{number}", drawn, *each, of_means) for number, each in enumerate(chosen)]


def _mean(found: Statistics | None) -> tuple[float, float | None] | None:
    return None if found is None else (found.mean, found.half_width)


def _alone(value: float | None) -> tuple[float, float | None] | None:
    return None if value is None else (value, None)


def _is_size(column: str, values: Sequence[Any]) -> bool:
    """Return whether a column's values are sizes in bytes."""
    found = as_numbers(values)
    name = column.rpartition(".")[2]
    return found is not None and (found[1] == "B" or name.endswith(("bytes", "size", "sizes")))


def _split(drawn: _Drawn, axis: str, measure: Measure) -> str | None:
    """Return the column with a chart for each of its values: sizes, or one of several further axes; None: one chart."""
    rows = drawn.summary.rows
    labels = [] if measure.of_run else drawn.summary.labels
    others = [column for column in drawn.summary.axes if column != axis]
    counts = {column: len({shown(row.get(column)) for row in rows}) for column in (*labels, *others)}
    for column in (*labels, *others):
        if column != axis and counts[column] > 1 and _is_size(column, [row.get(column) for row in rows]):
            return column
    if len(others) < 2:
        return None
    named = [column for column in others if as_numbers([row.get(column) for row in rows]) is None]
    return named[0] if named else min(others, key=counts.__getitem__)


def _chart(key: str, drawn: _Drawn, axis: str, measure: Measure, of_means: bool) -> SweepChart:
    rows = drawn.summary.rows
    column = _split(drawn, axis, measure)
    parts = [("", drawn)]
    left_out = ""
    if column is not None:
        values = list(dict.fromkeys(shown(row.get(column)) for row in rows))
        numbers = as_numbers(values)
        if numbers is not None:
            values = [value for _, value in sorted(zip(numbers[0], values, strict=True))]
        left_out = shown_of(min(len(values), _MOST_PANELS), len(values), "the first")
        parts = [
            (
                f"{_short(column)} {_with_unit(column, value)}",
                drawn.part([number for number, row in enumerate(rows) if shown(row.get(column)) == value], column),
            )
            for value in values[:_MOST_PANELS]
        ]
    curves = [_curves(part, axis, measure) for _, part in parts]
    # The same curve has the same colour in all panels.
    names = list(dict.fromkeys(name for each in curves for name in each))
    panels = {
        f"{key}-{number}" if len(parts) > 1 else key: (heading, _figure(part, axis, measure, found, names, of_means))
        for number, ((heading, part), found) in enumerate(zip(parts, curves, strict=True))
    }
    many = f"{MOST_CURVES} of {len(names)} curves are drawn: choose others below" if len(names) > MOST_CURVES else ""
    whole = "Over the whole run." if measure.of_run and drawn.summary.labels else ""
    bars = "Means over the seeds; bars are 95 % confidence intervals of the mean." if of_means else ""
    title = f"{measure.name[0].upper()}{measure.name[1:]} against {axis}"
    return SweepChart(title, panels, " ".join(filter(None, (whole, bars))), "; ".join(filter(None, (left_out, many))))


def _short(column: str) -> str:
    return column.rpartition(".")[2].removesuffix("_bytes").replace("_", " ")


def _with_unit(column: str, value: str) -> str:
    return format_size(int(value)) if value.isdigit() and _is_size(column, [value]) else value or "–"


_Points = dict[Any, tuple[float, float | None]]


def _curves(drawn: _Drawn, axis: str, measure: Measure) -> dict[str, _Points]:
    """Return the points of each curve, by its name and by their places on the axis."""
    summary = drawn.summary
    others = [column for column in summary.axes if column != axis]
    labels = [label for label in summary.labels if label != axis]
    items = [""] * len(summary.rows) if measure.of_run else names_of_rows(replace(summary, labels=labels))
    if axis in summary.labels and not measure.of_run:
        items = [joined_labels(labels, row) for row in summary.rows]
    places = _places(summary.rows, axis)
    curves: dict[str, _Points] = {}
    for number, (row, place, item) in enumerate(zip(summary.rows, places, items, strict=True)):
        value = drawn.value(number, measure)
        if value is not None:
            names = [f"{column.rpartition('.')[2]} {shown(row.get(column)) or '–'}" for column in others]
            name = ", ".join(each for each in (*names, item) if each) or measure.name
            # Repetitions of the same traffic: any of them will do, so take the last.
            curves.setdefault(name, {})[place] = value
    return curves


def _scale(rows: Sequence[Row], axis: str) -> tuple[list[float], str] | None:
    """Return places on a scale, and its unit; None for names, such as seeds are: nothing lies between two of them."""
    return None if axis == SEED else as_numbers([row.get(axis) for row in rows])


def _places(rows: Sequence[Row], axis: str) -> list[Any]:
    numbers = _scale(rows, axis)
    return list(numbers[0]) if numbers else [shown(row.get(axis)) for row in rows]


def _figure(
    drawn: _Drawn, axis: str, measure: Measure, curves: Mapping[str, _Points], names: Sequence[str], of_means: bool
) -> CurveFigure:
    rows = drawn.summary.rows
    numbers = _scale(rows, axis)
    values = [value for curve in curves.values() for value, _ in curve.values()]
    ordered = [
        (name, sorted(curve.items()) if numbers else list(curve.items()))
        for name, curve in ((name, curves.get(name, {})) for name in names)
    ]
    return CurveFigure(
        "",
        Axis(
            f"{axis} ({numbers[1]})" if numbers and numbers[1] else axis,
            numbers[1] if numbers else "",
            ("log" if _is_wide(_places(rows, axis)) else "linear") if numbers else "category",
        ),
        Axis(
            f"mean {measure.heading}" if of_means else measure.heading,
            measure.unit,
            "log" if _is_wide(values) else "linear",
        ),
        [
            Curve(
                name,
                [x for x, _ in curve],
                [round(y, 6) for _, (y, _) in curve],
                [None if error is None else round(error, 6) for _, (_, error) in curve] if of_means else None,
            )
            for name, curve in ordered
        ],
        drawn=MOST_CURVES,
    )


def _is_wide(values: Sequence[Any]) -> bool:
    numbers = [value for value in values if isinstance(value, int | float)]
    if not numbers or min(numbers) <= 0 or not all(math.isfinite(value) for value in numbers):
        return False
    return bool(max(numbers) / min(numbers) > _WIDE)
