"""Rows of a table that differ only in their seed: what is counted, what is left out, and its statistics."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from weft.results.drops import DROPS
from weft.results.report_parts import Cell
from weft.sweeps.axes import SEED, describe, plain_text
from weft.sweeps.statistics import STATISTIC_COLUMNS, Statistics, statistics_of
from weft.sweeps.store import State
from weft.sweeps.summary import Measure, Summary, joined_labels, shown, summarise
from weft.sweeps.table import Row
from weft.system.writing import written_whole

_MOST_LEFT_OUT = 10
_WHOLE_RUN = "whole run"
_FIGURES = ("runs", *(each.heading for each in STATISTIC_COLUMNS if each.in_tables))
_TIMES_HOLD = "run.lateness.valid"
"""Column of a table: whether events were served in time, in runs of the real clock."""


@dataclass(frozen=True)
class LeftOut:
    """A run that is in no statistics, and why."""

    label: str
    reason: str


@dataclass(frozen=True)
class Repeated:
    """The rows of one result with each seed that is counted.

    `runs` is how many runs there are, counted or not; `is_last` tells whether it is the last result of its point.
    """

    rows: list[Row]
    runs: int
    is_last: bool

    @property
    def head(self) -> Row:
        """A row for the columns that all have alike."""
        return self.rows[0]

    def statistics(self, value: Callable[[Row], float | None]) -> Statistics | None:
        """Return the statistics of a figure; None if no run has it."""
        found = [number for row in self.rows if (number := value(row)) is not None and math.isfinite(number)]
        return statistics_of(found) if found else None

    def of(self, measure: Measure) -> Statistics | None:
        """Return the statistics of a measure; None if no run has it."""
        return self.statistics(measure.of)


@dataclass(frozen=True)
class Repetitions:
    """A table's rows, those that differ only in their seed together.

    Attributes:
        results: one item for each point and result.
        heads: the summary of their first rows: the axes but the seed, labels, measures.
        left_out: failed and invalid runs.
        seeds: how many there are.
    """

    results: list[Repeated]
    heads: Summary
    left_out: list[LeftOut]
    seeds: int

    @property
    def is_without_chance(self) -> bool:
        """Whether two or more runs of every point were counted, and no figure of any depends on the seed."""
        return bool(self.results) and all(len(each.rows) > 1 and _all_alike(each.rows) for each in self.results)

    @property
    def title(self) -> str:
        """Heading of tables."""
        return f"{_counted(len(self.results), 'result')}, each over {_counted(self.seeds, 'seed')}"

    @cached_property
    def shared(self) -> dict[str, str]:
        """Labels with one value in all results that have them, if the others name the results as well as all do."""
        found: dict[str, str] = {}
        distinct = len(set(self._names_by(self.heads.labels)))
        for label in self.heads.labels:
            values = {shown(each.head.get(label)) for each in self.results} - {""}
            names = set(self._names_by([other for other in self.heads.labels if other not in (*found, label)]))
            if len(values) == 1 and "" not in names and len(names) == distinct:
                found[label] = values.pop()
        return found

    def _names_by(self, labels: Sequence[str]) -> list[str]:
        return [joined_labels(labels, each.head) for each in self.results]

    @property
    def names(self) -> list[str]:
        """Headings of the columns on the left of the terminal's table."""
        return [*self.heads.axes, *(["result"] if self.heads.labels else []), "figure"]

    def headings(self) -> list[str]:
        """Headings of the terminal's table."""
        return [*self.names, *_FIGURES]

    def cells(self) -> Iterator[list[str]]:
        """Yield the rows of the terminal's table; axes and results are named in the first one of each result.

        A result has its labels in one cell, without those that are `shared`, because a column for each is too wide.
        """
        last: list[str] = []
        labels = [label for label in self.heads.labels if label not in self.shared]
        for each, measure, found in self._figures():
            names = [shown(each.head.get(axis)) for axis in self.heads.axes]
            if self.heads.labels:
                names.append(_WHOLE_RUN if measure.of_run else joined_labels(labels, each.head))
            shown_names = [""] * len(names) if names == last else names
            last = names
            yield [*shown_names, measure.heading, _count(each, found), *_texts(found, measure.digits)]

    def sortable_headings(self) -> list[str]:
        """Headings of tables that readers sort."""
        return [*self.heads.axes, *self.heads.labels, "figure", *_FIGURES]

    def sortable_cells(self) -> Iterator[list[Cell]]:
        """Yield the rows of tables that readers sort: a column for each label, and numbers as such."""
        axes, labels = self.heads.axes, self.heads.labels
        for each, measure, found in self._figures():
            names = [shown(each.head.get(column)) for column in (*axes, *labels)]
            if measure.of_run and labels:
                names[len(axes) :] = [_WHOLE_RUN, *[""] * (len(labels) - 1)]
            numbers = [column.of(found) for column in STATISTIC_COLUMNS if column.in_tables]
            rounded: list[Cell] = ["–" if each is None else round(each, measure.digits + 1) for each in numbers]
            yield [*names, measure.heading, _count(each, found), *rounded]

    def _figures(self) -> Iterator[tuple[Repeated, Measure, Statistics]]:
        """Yield what tables have a row for; figures of whole runs once for a point, below its results."""
        for each in self.results:
            for of_run in (False, True):
                for measure in self.heads.measures:
                    found = each.of(measure) if measure.of_run == of_run and (each.is_last or not of_run) else None
                    if found is not None and not found.minimum == found.maximum == 0:
                        yield each, measure, found

    def remarks(self) -> list[str]:
        """Return what readers of the statistics must know, a sentence each."""
        lines = []
        if self.is_without_chance:
            lines.append(
                "every seed gave identical figures: nothing in this scenario is left to chance, so repeating it adds "
                "nothing"
            )
        if self.left_out:
            named = [f"{each.label} ({each.reason})" for each in self.left_out[:_MOST_LEFT_OUT]]
            more = len(self.left_out) - len(named)
            text = "; ".join(named) + (f"; and {more} more" if more else "")
            lines.append(f"{_counted(len(self.left_out), 'run')} left out of the statistics: {text}")
        return lines + list(self._mixtures())

    def _mixtures(self) -> Iterator[str]:
        """Yield in which runs packets were lost or marked: a mean over some such runs is one over two kinds of runs."""
        lost = [column.name for column in DROPS.compared()]
        for measure in self.heads.measures:
            if measure.name not in (*lost, "ECN marks"):
                continue
            what = "dropped packets" if measure.name in lost else "marked packets (ECN)"
            seen = set()
            for each in self.results:
                having = [shown(row.get(SEED)) for row in each.rows if measure.of(row)]
                where = describe({axis: each.head.get(axis) for axis in self.heads.axes})
                if 0 < len(having) < len(each.rows) and (where, *having) not in seen:
                    seen.add((where, *having))
                    few = ", ".join(having[:_MOST_LEFT_OUT]) + (" …" if len(having) > _MOST_LEFT_OUT else "")
                    prefix = f"{where}: " if where else ""
                    yield f"{prefix}{len(having)} of {len(each.rows)} runs {what}: seed{'s'[: len(having) > 1]} {few}"

    def records(self) -> Iterator[Row]:
        """Yield the rows of statistics.csv: one for each result and numeric column of table.csv."""
        names = (*self.heads.axes, *self.heads.labels)
        for each in self.results:
            head = {column: each.head.get(column) for column in names}
            for column in dict.fromkeys(column for row in each.rows for column in row):
                found = each.statistics(_number_in(column)) if column not in (SEED, *names) else None
                if found is not None:
                    figures = {one.key: one.of(found) for one in STATISTIC_COLUMNS}
                    yield {**head, "figure": column, "runs": each.runs, "count": found.count, **figures}

    def as_dict(self) -> dict[str, Any]:
        """Return the statistics as plain data."""
        return {
            "statistics": list(self.records()),
            "left_out": [asdict(each) for each in self.left_out],
            "remarks": self.remarks(),
        }


def _number_in(column: str) -> Callable[[Row], float | None]:
    def value(row: Row) -> float | None:
        found = row.get(column)
        return found if isinstance(found, int | float) and not isinstance(found, bool) else None

    return value


def _count(each: Repeated, found: Statistics) -> str:
    return f"{found.count}" if found.count == each.runs else f"{found.count} of {each.runs}"


def _texts(found: Statistics, digits: int) -> list[str]:
    """Return the statistics that tables show; equal values need no digits beyond the figure's."""
    is_constant = found.minimum == found.maximum
    texts = []
    for column in STATISTIC_COLUMNS:
        value = column.of(found)
        if column.in_tables:
            places = digits + (0 if is_constant else column.extra_digits)
            texts.append("–" if value is None else f"{value:,.{places}f}")
    return texts


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def _all_alike(rows: Sequence[Row]) -> bool:
    own = ("point", SEED)
    first, *others = ({key: value for key, value in row.items() if key not in own} for row in rows)
    return all(each == first for each in others)


def repetitions_of(rows: Sequence[Row], parameters: Sequence[str]) -> Repetitions | None:
    """Return the repetitions in a sweep's table; `parameters` are those that its axes set.

    None if no two points differ in `seed` alone. Runs that failed or have not run, and runs of which the times do not
    hold because events were served late, are left out.
    """
    if SEED not in parameters:
        return None
    fixed = [key for key in parameters if key != SEED]
    points: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        # The same run may be a point twice, where two assignments come to the same scenario.
        by_run = points.setdefault(_text_of(row, fixed), {})
        by_run.setdefault(f"{row['point']} {shown(row.get(SEED))}", []).append(row)
    if max(map(len, points.values()), default=0) < 2:
        return None
    summary = summarise(rows, parameters)
    results: list[Repeated] = []
    left_out: list[LeftOut] = []
    for runs in points.values():
        counted = []
        for found in runs.values():
            reason = _why_not(found[0])
            if reason is None:
                counted.append(found)
            else:
                left_out.append(LeftOut(describe({key: found[0].get(key) for key in parameters}), reason))
        of_point = _of_results(counted, summary.labels)
        results += (Repeated(alike, len(runs), alike is of_point[-1]) for alike in of_point)
    labels = [
        label
        for label in summary.labels
        if all(len({shown(row.get(label)) for row in each.rows}) == 1 for each in results)
    ]
    axes = [key for key in summary.axes if key != SEED]
    compared = [measure for measure in summary.measures if any(each.of(measure) for each in results)]
    heads = replace(summary, rows=[each.head for each in results], axes=axes, labels=labels, measures=compared)
    seeds = len({shown(row.get(SEED)) for row in rows})
    return Repetitions(results, heads, left_out, seeds)


def _text_of(row: Row, columns: Iterable[str]) -> str:
    return json.dumps([row.get(column) for column in columns], sort_keys=True, default=str)


def _why_not(row: Row) -> str | None:
    """Return why a run is not counted, None if it is."""
    if row.get("state") != State.FINISHED.value:
        return str(row.get("state"))
    return None if has_valid_times(row) else "INVALID: events were served late"


def has_valid_times(row: Row) -> bool:
    """Return whether the times of a row's run hold, as far as they are known."""
    return row.get(_TIMES_HOLD) is not False


def _of_results(runs: Sequence[Sequence[Row]], labels: Sequence[str]) -> list[list[Row]]:
    """Return the rows of each result of a point, by run.

    Where all runs have as many results, those in the same place are the same; else those with the same labels are.
    """
    if len({len(rows) for rows in runs}) <= 1:
        return [list(rows) for rows in zip(*runs, strict=True)]
    found: dict[tuple[str, int], list[Row]] = {}
    for rows in runs:
        seen: dict[str, int] = {}
        for row in rows:
            name = _text_of(row, ["measured", *labels])
            seen[name] = seen.get(name, 0) + 1
            found.setdefault((name, seen[name]), []).append(row)
    return list(found.values())


def write_statistics(found: Repetitions | None, directory: Path) -> Path | None:
    """Write statistics.csv, whole or not at all, and return its path.

    Without repetitions an earlier sweep's is removed, and None is returned.
    """
    path = directory / "statistics.csv"
    if found is None:
        path.unlink(missing_ok=True)
        return None
    names = (*found.heads.axes, *found.heads.labels)
    columns = [*names, "figure", "runs", "count", *(each.key for each in STATISTIC_COLUMNS)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([[plain_text(row.get(column)) for column in columns] for row in found.records()])
    with written_whole(path) as partial:
        partial.write_text(text.getvalue(), encoding="utf-8")
    return path
