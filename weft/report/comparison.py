"""Several runs side by side: what made them differ, how their results do, and which is the best."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weft.quantities.units import PS_PER_US
from weft.recording.places import Places
from weft.report.compared_runs import ComparedRun
from weft.report.html import IN_FORCE, flat
from weft.report.matching import Match, matches
from weft.report.ranking import NOTHING, TRAFFIC_TIME, Ranking, ranking
from weft.report.series import (
    MOST_CURVES,
    PortSeries,
    port_series,
    rate_slots,
    rates_bps,
    sampling_interval_ps,
    thinned,
)
from weft.results.report_parts import (
    MOST_ROWS,
    Axis,
    Cell,
    Curve,
    CurveFigure,
    ReportPart,
    ReportTable,
    TimeCurve,
    TimeFigure,
    shown_of,
)
from weft.sweeps.axes import SEED, plain_text
from weft.sweeps.summary import Measure, measures
from weft.sweeps.table import Row

SAME = "="
_PORTS_DRAWN = 4
"""Ports with curves over time, of each run: the same in all runs."""
_LEAST_DIFFERENCE = 0.001
"""Least difference of two loads that is listed, as a share of the link's rate."""
_PROGRAMS = ("p4", "p4_hash", "programs", "entries", "commands", "compiler", "extensions")
_MACHINE = ("clock", "target", "links", "dilation", "workers")
_ABSENT = object()
_HASH = re.compile("[0-9a-f]{64}")
_HASH_DIGITS = 12
"""Digits of a SHA-256 that tables show: enough to tell programs apart, and columns stay narrow."""


@dataclass(frozen=True)
class Figure:
    """A parameter or figure of the runs: a value of each, None for one that has none."""

    result: str
    name: str
    values: tuple[Any, ...]
    digits: int | None = None
    """Decimals of numbers; None for parameters."""

    @property
    def is_same(self) -> bool:
        """Whether all runs have the same value."""
        return all(each == self.values[0] for each in self.values)

    @property
    def ratios(self) -> list[float | None]:
        """The values of the second run and those that follow, over the first one's; None where there is none."""
        one, *others = self.values
        return [
            None if one is None or other is None or not one or not math.isfinite(other / one) else other / one
            for other in others
        ]

    def ratio_cells(self) -> list[Cell]:
        """Return the ratios as tables show them."""
        one, *others = self.values
        return [
            SAME if one is not None and one == other else NOTHING if ratio is None else round(ratio, 3)
            for other, ratio in zip(others, self.ratios, strict=True)
        ]

    def cells(self) -> list[Cell]:
        """Return the values as tables show them."""
        if self.digits is None:
            return [NOTHING if value is None else _parameter_text(value) for value in self.values]
        return [
            NOTHING if each is None else round(each, self.digits) if self.digits else round(each)
            for each in self.values
        ]


def _parameter_text(value: Any) -> str:
    text = plain_text(value) or '""'
    return text[:_HASH_DIGITS] if _HASH.fullmatch(text) else text


@dataclass(frozen=True)
class Comparison:
    """All that a comparison of runs shows.

    Attributes:
        runs: in the order in which they were given.
        parameters: those given that differ: the scenario's, then programs, the machine's and the seed.
        derived: parameters in force that differ and follow from others.
        results: figures of results that belong together, those that are the same in all runs, too.
        whole: figures of whole runs.
        counters: all numbers of results by their columns in a sweep's table, where they differ.
        ranking: the runs by one figure.
    """

    runs: Sequence[ComparedRun]
    parameters: list[Figure]
    derived: list[Figure]
    results: list[Figure]
    whole: list[Figure]
    counters: list[Figure]
    ranking: Ranking
    matched: list[Match] = field(repr=False)

    @property
    def names(self) -> list[str]:
        """The runs' names."""
        return [each.name for each in self.runs]

    def tables(self, whole: bool = False, ports: int = MOST_ROWS) -> dict[str, ReportTable]:
        """Return the tables by their keys, from top to bottom, those without rows left out.

        `whole`: also what is the same in all runs, derived parameters and counters. `ports`: the most of which loads
        are listed.
        """
        results = [each for each in self.results if whole or not each.is_same]
        of_runs = [each for each in self.whole if whole or not each.is_same]
        found = {
            "differences": self._parameters("What differs", self.parameters),
            "compared-results": self._figures("Results", results, len(self.results)),
            "whole-runs": self._figures("Whole runs", of_runs, len(self.whole)),
            "ranking": self.ranking.table(),
            "loads": _loads(self.runs, ports),
        }
        if whole:
            found |= self.internals()
        return {key: table for key, table in found.items() if not table.is_empty or (table.note and key != "ranking")}

    def internals(self) -> dict[str, ReportTable]:
        """Return the tables of what few readers ask for."""
        return {
            "in-force": self._parameters("Parameters in force that differ", self.derived),
            "counters": self._figures("Counters that differ", self.counters, len(self.counters)),
        }

    def _parameters(self, title: str, found: Sequence[Figure]) -> ReportTable:
        rows: list[list[Cell]] = [[each.name, *each.cells()] for each in found[:MOST_ROWS]]
        return ReportTable(title, ["parameter", *self.names], rows, shown_of(len(rows), len(found), "the first"))

    def _figures(self, title: str, found: Sequence[Figure], of: int) -> ReportTable:
        most = found[: 10 * MOST_ROWS]
        is_of_results = any(each.result for each in most)
        rows: list[list[Cell]] = [
            [*([each.result] if is_of_results else []), each.name, *each.cells(), *each.ratio_cells()] for each in most
        ]
        names = self.names
        ratios = ["ratio"] if len(names) == 2 else [f"{name} ratio" for name in names[1:]]
        same = ""
        if of > len(found):
            equal = f"{of - len(found)} of {of} figures are equal in all runs and left out"
            same = equal if found else f"all {of} figures are equal in all runs"
        notes = (shown_of(len(most), len(found), "the first"), same)
        columns = [*(["result"] if is_of_results else []), "figure", *names, *ratios]
        return ReportTable(title, columns, rows, "; ".join(filter(None, notes)))

    def figures(self) -> dict[str, ReportPart]:
        """Return the drawings by their keys, from top to bottom; those without curves are left out."""
        parts: dict[str, ReportPart] = {
            "compared-times": _chart(self),
            **_curves_over_time(self.runs),
            "load-shares": _load_shares(self.runs),
        }
        return {key: part for key, part in parts.items() if not part.is_empty}


def comparison(runs: Sequence[ComparedRun], by: str | None = None) -> Comparison:
    """Compare two or more runs; `by` names the figure that ranks them.

    Raises:
        BadInputError: as `ranking`.
    """
    given, derived = _differences(runs)
    matched = list(matches([each.rows for each in runs]))
    of_results = [
        found
        for match in matched
        for measure in measures()
        if not measure.of_run and (found := _figure(match.name, measure, match.rows)) is not None
    ]
    return Comparison(
        runs,
        given,
        derived,
        of_results,
        _whole_runs(runs),
        _counters(runs, matched),
        ranking(runs, matched, by),
        matched,
    )


def _differences(runs: Sequence[ComparedRun]) -> tuple[list[Figure], list[Figure]]:
    """Return the parameters that differ: those given in the order in which readers ask, and those that follow."""
    sides = [flat(each.results["made_by"]) for each in runs]
    if all(each.traffic for each in runs):
        sides = [{**side, **each.traffic} for side, each in zip(sides, runs, strict=True)]
    keys = dict.fromkeys(key for side in sides for key in side)
    found = [
        Figure("", key, tuple(side.get(key) for side in sides))
        for key in keys
        if any(side.get(key, _ABSENT) != sides[0].get(key, _ABSENT) for side in sides)
    ]
    given = [each for each in found if not each.name.startswith(f"{IN_FORCE}.")]
    derived = [each for each in found if each.name.startswith(f"{IN_FORCE}.") and not _is_repeated(sides, each.name)]
    return sorted(given, key=lambda each: _order(each.name)), derived


def _order(key: str) -> int:
    """Return the place of a parameter: the scenario's, programs, the machine's, the seed."""
    first = key.split(".")[0].split("[")[0]
    if first in (SEED, "hash_seed"):
        return 3
    return 1 if first in _PROGRAMS else 2 if first in _MACHINE else 0


def _is_repeated(sides: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Return whether a parameter in force is what was given, which stands in a row of its own."""
    given = key.removeprefix(f"{IN_FORCE}.")
    return all(side.get(given, NOTHING) == side.get(key, NOTHING) for side in sides)


def _figure(result: str, measure: Measure, rows: Sequence[Row | None]) -> Figure | None:
    """Return a measure of the rows; None if it is 0 or missing in all."""
    values = tuple(None if row is None else measure.of(row) for row in rows)
    return Figure(result, measure.heading, values, measure.digits) if any(values) else None


def _whole_runs(runs: Sequence[ComparedRun]) -> list[Figure]:
    rows = [each.rows[0] for each in runs]
    retransmitted = Measure("retransmitted packets", "", 0, lambda row: row.get("run.retransmissions"))
    notified = Measure("CNPs", "", 0, lambda row: row.get("run.cnps"))
    of_run = [measure for measure in measures() if measure.of_run]
    found = (_figure("", measure, rows) for measure in (TRAFFIC_TIME, *of_run, retransmitted, notified))
    return [each for each in found if each is not None]


def _counters(runs: Sequence[ComparedRun], matched: Sequence[Match]) -> list[Figure]:
    """Return all numbers that differ, as a sweep's table names them."""
    of_runs = Match(
        "", tuple({key: row[key] for key in row if key.startswith("run.")} for row in (each.rows[0] for each in runs))
    )
    found = []
    for match in (*matched, of_runs):
        columns = dict.fromkeys(column for row in match.rows if row is not None for column in row)
        for column in columns:
            if match is not of_runs and column.startswith("run."):
                continue
            values = tuple(None if row is None else row.get(column) for row in match.rows)
            if all(isinstance(value, int | float | None) and not isinstance(value, bool) for value in values):
                figure = Figure(match.name or "whole run", column, values, _digits_of(values))
                if not figure.is_same and column != TRAFFIC_TIME.name:
                    found.append(figure)
    return found


def _digits_of(values: Iterable[float | None]) -> int:
    return 4 if any(isinstance(value, float) for value in values) else 0


def _chart(compared: Comparison) -> CurveFigure:
    """Draw the times of results that all runs have, where there are several."""
    time = next(measure for measure in measures() if measure.name == "time")
    found = [
        (match.name, values)
        for match in compared.matched
        if None not in (values := [None if row is None else time.of(row) for row in match.rows])
    ]
    curves = [
        Curve(name, [result for result, _ in found], [values[side] or 0.0 for _, values in found])
        for side, name in enumerate(compared.names)
    ]
    return CurveFigure(
        "Times",
        Axis("", scale="category"),
        Axis("time (µs)", "µs", "log"),
        curves if len(found) > 1 else [],
        drawn=MOST_CURVES,
    )


def _curves_over_time(runs: Sequence[ComparedRun]) -> dict[str, ReportPart]:
    """Draw queues and rates of the same ports in all runs that have sampled them, over one time."""
    sampled = [(number, each, port_series(each.run)) for number, each in enumerate(runs) if each.run.rows("queues")]
    by_run = [(number, each, {one.name: one for one in series}) for number, each, series in sampled]
    queues = _most([found for _, _, found in by_run], lambda each: int(each.queue_bytes.max()))
    busiest = _most([found for _, _, found in by_run], lambda each: int(each.transmitted_bytes[-1]))
    of_queues, of_rates = [], []
    for style, port in enumerate(queues):
        for number, each, found in by_run:
            if (series := found.get(port)) is not None:
                x, y = thinned(series.time_ps, series.queue_bytes / 1e3)
                of_queues.append(_time_curve(f"{each.name}: {port}", x, y, number, style))
    for style, port in enumerate(busiest):
        for number, each, found in by_run:
            if (series := found.get(port)) is not None:
                edges = rate_slots([*found.values()], sampling_interval_ps(each.run))
                line_bps = Places(each.run.fabric).link(series.port).rate_bps
                y = rates_bps(series, edges, line_bps) / 1e9
                of_rates.append(_time_curve(f"{each.name}: {port}", edges[1:], y, number, style))
    lacking = [each.name for each in runs if not each.run.rows("queues")]
    note = f"without samples (observe.queues): {', '.join(lacking)}" if lacking else ""
    text = "The line is at the same time in all figures over time; values at it are in the buttons."
    return {
        "compared-queues": TimeFigure("Queues over time", Axis("waiting (kB)", "kB"), "before", of_queues, text, note),
        "compared-rates": TimeFigure("Rates over time", Axis("rate (Gb/s)", "Gb/s"), "after", of_rates, text, note),
    }


def _most(runs: Sequence[Mapping[str, PortSeries]], size: Any) -> list[str]:
    """Return the ports and classes with the largest values in any run, the largest first; none that is 0."""
    largest: dict[str, int] = {}
    for found in runs:
        for name, series in found.items():
            largest[name] = max(largest.get(name, 0), size(series))
    ordered = sorted((name for name in largest if largest[name]), key=lambda name: (-largest[name], name))
    return ordered[:_PORTS_DRAWN]


def _time_curve(name: str, times_ps: Any, values: Any, colour: int, style: int) -> TimeCurve:
    return TimeCurve(name, (times_ps / PS_PER_US).tolist(), np.round(values, 6).tolist(), colour, style)


def _loads(runs: Sequence[ComparedRun], ports: int) -> ReportTable:
    """List the ports with the largest differences of load that all fabrics have."""
    found = [each.run.utilisation for each in runs]
    spread = {
        port: max(loads[port] for loads in found) - min(loads[port] for loads in found)
        for port in found[0]
        if all(port in loads for loads in found)
    }
    differing = sorted((port for port in spread if spread[port] > _LEAST_DIFFERENCE), key=lambda port: -spread[port])
    return ReportTable(
        "Loads that differ",
        ["port", *(f"{each.name} (%)" for each in runs), "difference (points)"],
        [
            [
                port,
                *(round(100 * loads[port], 1) for loads in found),
                round(100 * (found[1][port] - found[0][port] if len(runs) == 2 else spread[port]), 1),
            ]
            for port in differing[:ports]
        ],
        shown_of(min(len(differing), ports), len(differing), "those that differ most"),
    )


def _load_shares(runs: Sequence[ComparedRun]) -> CurveFigure:
    curves = [Curve(each.name, *_distribution(each.run.utilisation.values())) for each in runs if each.run.utilisation]
    return CurveFigure(
        "Loads of all ports",
        Axis("share of the time in which a port sent (%)", "%"),
        Axis("ports with at most so much (%)", "%"),
        curves,
        text="Even load is a steep curve; a long tail to the right is where a few ports carry the most.",
        drawn=MOST_CURVES,
    )


def _distribution(shares: Iterable[float]) -> tuple[list[float], list[float]]:
    ordered = sorted(shares)
    thinned = range(0, len(ordered), max(1, len(ordered) // 500))
    places = sorted({*thinned, len(ordered) - 1})
    return (
        [round(100 * ordered[place], 3) for place in places],
        [round(100 * (place + 1) / len(ordered), 3) for place in places],
    )
