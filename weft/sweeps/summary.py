"""Selects from a sweep's table: the axes that vary, what distinguishes the rows of a point, the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weft.quantities.units import PS_PER_US, parse_rate_bps, parse_size_bytes, parse_time_ps
from weft.results.columns import Column
from weft.results.drops import DROPS
from weft.results.kinds import result_kinds
from weft.results.planes import PLANES, PlaneResult
from weft.sweeps.axes import plain_text
from weft.sweeps.store import State
from weft.sweeps.table import Row, measured_name


def _labels() -> tuple[str, ...]:
    """Return the columns that say what a row is of, the most useful first."""
    kinds = result_kinds()
    names = [kind.name for kind in kinds if kind.name]
    further = [label for kind in kinds for label in kind.labels]
    return tuple(dict.fromkeys([*names, *further, "data", "measured"]))


@dataclass(frozen=True)
class Measure:
    """A result that points are compared by; `of` returns it from a row, None where the row has none.

    `of_run`: it is the whole run's, and the same in all rows of a point. `more_is_better`: as of its column.
    """

    name: str
    unit: str
    digits: int
    of: Callable[[Row], float | None]
    of_run: bool = False
    more_is_better: bool = False

    @property
    def heading(self) -> str:
        """Name and unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def text(self, row: Row) -> str:
        """Return the result as text, "" where there is none."""
        value = self.of(row)
        return "" if value is None else f"{value:.{self.digits}f}"


def _scaled(column: str, scale: float = 1.0) -> Callable[[Row], float | None]:
    def value(row: Row) -> float | None:
        found = row.get(column)
        return None if not isinstance(found, int | float) else found / scale

    return value


def _of_kind(key: str, value: Callable[[Row], float | None]) -> Callable[[Row], float | None]:
    """Return a figure of one kind of result; others may have a key of the same name."""
    measured = measured_name(key)
    return lambda row: value(row) if row.get("measured", measured) == measured else None


def _over(
    choose: Callable[[list[float]], float], prefix: str, suffix: str, scale: float = 1.0
) -> Callable[[Row], float | None]:
    """Return the largest, or the sum, of the columns with such names."""

    def value(row: Row) -> float | None:
        found = [
            each
            for column, each in row.items()
            if column.startswith(prefix) and column.endswith(suffix) and isinstance(each, int | float)
        ]
        return choose(found) / scale if found else None

    return value


def _drops(row: Row) -> float | None:
    """Return what a run dropped, of all causes: 0 if it names none and its switches count."""
    causes = _over(sum, "run.drops.", "")(row)
    return 0.0 if causes is None and _over(sum, "run.plane", ".tail_drops")(row) is not None else causes


def _of_planes(column: Column[PlaneResult]) -> Measure:
    value = _over(column.over, "run.plane", f".{column.value}", column.scale)
    return Measure(column.name, column.unit, column.digits or 0, value, of_run=True)


def measures() -> tuple[Measure, ...]:
    """Return all results that points are compared by: those that several kinds have, and each kind's own."""
    own = [
        Measure(
            each.name,
            each.unit,
            each.digits or 0,
            _of_kind(kind.key, _scaled(str(each.value), each.scale)),
            more_is_better=each.more_is_better,
        )
        for kind in result_kinds()
        for each in kind.compared()
    ]
    of_planes = [*PLANES.compared()]
    largest, sums = (
        [_of_planes(each) for each in of_planes if (each.over is max) == is_largest] for is_largest in (True, False)
    )
    return (
        Measure("time", "µs", 1, _scaled("time_ps", PS_PER_US)),
        *own,
        *largest,
        Measure("retransmitted packets", "", 0, _scaled("retransmissions")),
        *sums,
        Measure("CNPs", "", 0, _scaled("cnps")),
        *(Measure(each.name, each.unit, each.digits or 0, _drops, of_run=True) for each in DROPS.compared()),
        Measure("wrong", "", 0, _scaled("wrong")),
    )


@dataclass(frozen=True)
class Summary:
    """A table's rows that have results, and which of its columns to look at.

    `axes` are the parameters that vary, `labels` what distinguishes the rows of one point, `measures` the results that
    are not 0 everywhere.
    """

    rows: list[Row]
    axes: list[str]
    labels: list[str]
    measures: list[Measure]

    @property
    def note(self) -> str:
        """Say which results are of whole runs, where rows are of parts of them."""
        names = [measure.name for measure in self.measures if measure.of_run]
        return f"{', '.join(names)}: of the whole run" if names and self.labels else ""

    def headings(self) -> list[str]:
        """Return the headings of a table."""
        return [*self.axes, *self.labels, *(measure.heading for measure in self.measures)]

    def cells(self, row: Row) -> list[str]:
        """Return a row of it."""
        return [
            *(shown(row.get(column)) for column in (*self.axes, *self.labels)),
            *(measure.text(row) for measure in self.measures),
        ]


def summarise(rows: Sequence[Row], parameters: Sequence[str]) -> Summary:
    """Return the summary of a sweep's rows; `parameters` are those that its axes set."""
    finished = [row for row in rows if row.get("state") == State.FINISHED.value]
    axes = [key for key in parameters if len({shown(row.get(key)) for row in rows}) > 1]
    labels: list[str] = []
    for label in _labels():
        if not _follows_from(finished, [*axes, *labels], label):
            labels.append(label)
    labels += _of_bare_rows(finished, labels)
    compared = [measure for measure in measures() if any(measure.of(row) for row in finished)]
    return Summary(finished, axes, labels, compared)


def _of_bare_rows(rows: Sequence[Row], labels: Sequence[str]) -> list[str]:
    """Return the labels to add so that rows without any of `labels` have a name, too.

    An incast among collectives is distinct by its missing algorithm, but a reader looks for its name.
    """
    bare = [row for row in rows if not any(shown(row.get(label)) for label in labels)] if labels else []
    needed = {next((label for label in _labels() if shown(row.get(label))), "measured") for row in bare}
    return [label for label in _labels() if label in needed]


def names_of_rows(summary: Summary) -> list[str]:
    """Return each row's subject, so that its rows have the same name at all points.

    Where all points have as many rows, rows in the same place have the same subject. Some of its labels may change with
    an axis (the number of buckets does, with their size); its name consists of the labels that do not change.
    """
    places, counts = _places(summary.rows)
    if len(set(counts.values())) > 1:
        return [joined_labels(summary.labels, row) for row in summary.rows]
    names: dict[int, str] = {}
    for place in sorted(set(places)):
        rows = [row for row, at in zip(summary.rows, places, strict=True) if at == place]
        steady = [label for label in summary.labels if len({shown(row.get(label)) for row in rows}) == 1]
        name = joined_labels(steady, rows[0])
        names[place] = f"{name} (no. {place + 1})".lstrip() if name in names.values() else name
    return [names[place] for place in places]


def _places(rows: Sequence[Row]) -> tuple[list[int], dict[str, int]]:
    """Return each row's place within its point, and how many rows each point has."""
    counts: dict[str, int] = {}
    places = []
    for row in rows:
        places.append(counts.get(row["point"], 0))
        counts[row["point"]] = places[-1] + 1
    return places, counts


def joined_labels(labels: Sequence[str], row: Row) -> str:
    """Return a row's labels in one text; a number is preceded by its label's name, or followed by its unit."""
    texts = [(label, shown(row.get(label))) for label in labels if row.get(label) is not None]
    return ", ".join(_with_meaning(label, text) if _is_number(text) else text for label, text in texts)


def _with_meaning(label: str, number: str) -> str:
    return f"{number} B" if label.endswith("_bytes") else f"{label.replace('_', ' ')} {number}"


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _follows_from(rows: Sequence[Row], columns: Sequence[str], label: str) -> bool:
    """Whether rows that are alike in these columns have the same label, which then adds nothing."""
    seen: dict[tuple[str, ...], str] = {}
    for row in rows:
        text = shown(row.get(label))
        if seen.setdefault(tuple(shown(row.get(column)) for column in columns), text) != text:
            return False
    return True


def shown(value: Any) -> str:
    """Return a value as people read it: a list of one value as that value."""
    if isinstance(value, list) and len(value) == 1:
        return shown(value[0])
    return plain_text(value)


def as_numbers(values: Sequence[Any]) -> tuple[list[float], str] | None:
    """Return an axis' values on a scale, and their unit; None where they are no numbers."""
    texts = [shown(value) for value in values]
    for parse, unit, scale in (
        (float, "", 1.0),
        (parse_size_bytes, "B", 1.0),
        (parse_time_ps, "µs", PS_PER_US),
        (parse_rate_bps, "Gb/s", 1e9),
    ):
        try:
            return [parse(text) / scale for text in texts], unit
        except ValueError:
            continue
    return None
