"""Which of several runs is the best by one figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weft.errors import BadInputError
from weft.hints import did_you_mean
from weft.report.compared_runs import TRAFFIC_RAN, ComparedRun
from weft.report.matching import Match
from weft.results.report_parts import Cell, ReportTable
from weft.sweeps.summary import Measure, measures
from weft.sweeps.table import Row

NOTHING = "–"
_MAIN = ("step", "time")
"""Measures that rank runs unless readers choose another: the first that all runs have."""
TRAFFIC_TIME = Measure("traffic ran for", "µs", 1, lambda row: row.get(TRAFFIC_RAN), of_run=True)


@dataclass(frozen=True)
class Ranking:
    """Runs by a figure, the best first.

    Attributes:
        measure: the figure.
        results: how many results it is of. A run's score is its value if there is one, and otherwise the geometric mean
            of its ratios to the run `base`.
        ranked: runs and their scores.
        unranked: runs without a score, and why.
    """

    measure: Measure
    results: int
    base: str
    ranked: list[tuple[ComparedRun, float]]
    unranked: list[tuple[ComparedRun, str]]

    @property
    def heading(self) -> str:
        """Heading of the score."""
        if self.results == 1:
            return self.measure.heading
        return f"{self.measure.name}, over {self.base}'s"

    def places(self) -> list[tuple[int, ComparedRun, float]]:
        """Return the place, run and score of each ranked run; runs with equal scores share a place."""
        scores = [score for _, score in self.ranked]
        return [(scores.index(score) + 1, each, score) for each, score in self.ranked]

    def table(self) -> ReportTable:
        """Return the table; without rows where fewer than two runs can be ranked."""
        rows: list[list[Cell]] = []
        if len(self.ranked) > 1:
            best = self.ranked[0][1]
            digits = self.measure.digits if self.results == 1 else 3
            for place, each, score in self.places():
                over = round(score / best, 3) if best else NOTHING
                rows.append([f"{place}", each.name, _rounded(score, digits), over])
            rows += [[NOTHING, each.name, why, NOTHING] for each, why in self.unranked]
        order = "the largest first" if self.measure.more_is_better else "the smallest first"
        if len({score for _, score in self.ranked}) == 1:
            order = "all are equal"
        of = "" if self.results == 1 else f"; geometric mean over {self.results} results"
        return ReportTable(
            f"Ranking by {self.measure.name}", ["rank", "run", self.heading, "over the best"], rows, order + of
        )


def ranking(runs: Sequence[ComparedRun], matched: Sequence[Match], by: str | None) -> Ranking:
    """Return the ranking by a measure, a figure of whole runs, or a column of a sweep's table.

    Without `by`, by the step time, the completion time or the time of all traffic: the first of these that all have.

    Raises:
        BadInputError: no run has such a figure.
    """
    if by is not None:
        found = [_ranked(runs, matched, each) for each in _named(runs, by)]
        if not (some := [each for each in found if each.ranked]):
            raise BadInputError(
                f"'{by}' is no figure that two of the runs have; {did_you_mean(by, _names(runs, matched))}",
                place="--by",
            )
        return max(some, key=lambda each: len(each.ranked))
    for name in _MAIN:
        for measure in (each for each in measures() if each.name == name):
            found_one = _ranked(runs, matched, measure)
            if len(found_one.ranked) == len([each for each in runs if not each.problem]) > 0:
                return found_one
    return _ranked(runs, matched, TRAFFIC_TIME)


def _named(runs: Sequence[ComparedRun], name: str) -> Iterable[Measure]:
    """Yield the measures with a name or heading, and the column of that name."""
    wanted = name.strip().casefold()
    for measure in (*measures(), TRAFFIC_TIME):
        if wanted in (measure.name.casefold(), measure.heading.casefold()):
            yield measure
    if any(name in row for each in runs for row in each.rows):
        yield Measure(name, "", 3, lambda row: _number(row, name), of_run=name.startswith("run."))


def _names(runs: Sequence[ComparedRun], matched: Sequence[Match]) -> list[str]:
    """Return the names that can be ranked by."""
    return list(
        dict.fromkeys(each.name for each in (*measures(), TRAFFIC_TIME) if len(_ranked(runs, matched, each).ranked) > 1)
    )


def _number(row: Row, column: str) -> float | None:
    value = row.get(column)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _ranked(runs: Sequence[ComparedRun], matched: Sequence[Match], measure: Measure) -> Ranking:
    if measure.of_run:
        values = [[measure.of(each.rows[0])] for each in runs]
    else:
        of_results = [[None if row is None else measure.of(row) for row in each.rows] for each in matched]
        # A result that a run lacks says nothing about the others' order.
        sound = [number for number, each in enumerate(runs) if not each.problem]
        whole = [each for each in of_results if all(each[number] is not None for number in sound)]
        values = [[each[number] for each in whole] for number in range(len(runs))]
    count = len(values[0])
    base = next((number for number, each in enumerate(runs) if not each.problem), 0)
    unranked = [(each, each.problem) for each in runs if each.problem]
    scores: list[tuple[ComparedRun, float]] = []
    for each, own in zip(runs, values, strict=True):
        if each.problem:
            continue
        score = own[0] if count == 1 else _geometric_mean(own, values[base])
        if score is None or not math.isfinite(score):
            unranked.append((each, f"has no {measure.name}"))
        else:
            scores.append((each, score))
    scores.sort(key=lambda found: -found[1] if measure.more_is_better else found[1])
    return Ranking(measure, count, runs[base].name, scores, unranked)


def _geometric_mean(own: Sequence[float | None], first: Sequence[float | None]) -> float | None:
    """Return the mean ratio of values to the first run's; None if there is none, or one is not positive."""
    ratios = [
        math.log(mine / theirs)
        for mine, theirs in zip(own, first, strict=True)
        if mine and theirs and mine / theirs > 0
    ]
    return math.exp(math.fsum(ratios) / len(ratios)) if ratios and len(ratios) == len(own) else None


def _rounded(value: float, digits: int) -> Cell:
    return round(value, digits) if digits else round(value)
