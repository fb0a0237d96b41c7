"""All tables of a page, and the parts of kinds of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.report import network_tables, traffic_tables
from weft.report.run_directory import RunDirectory
from weft.results.drops import DROPS, drops_by_place
from weft.results.kinds import ResultKind
from weft.results.model import OF_RUN
from weft.results.report_parts import ReportPart, ReportTable

_MAKERS: Mapping[str, Callable[[RunDirectory], ReportTable | None]] = {
    "phases": traffic_tables.phases,
    "slowest": traffic_tables.slowest_messages,
    "pauses": network_tables.pauses,
    "busiest": network_tables.busiest,
    "ports": network_tables.ports,
}


def all_tables(run: RunDirectory) -> dict[str, ReportTable]:
    """Return the tables that the run has data for, by name, except the tables of kinds of traffic."""
    of_run = {
        kind.key: part
        for kind in OF_RUN
        for part in kind.parts(_results_of(run, kind), run.fabric)
        if isinstance(part, ReportTable)
    }
    made = of_run | {name: make(run) for name, make in _MAKERS.items()}
    return {name: table for name, table in made.items() if table is not None and table.rows}


def _results_of(run: RunDirectory, kind: ResultKind[Any]) -> Sequence[Any]:
    """Return the results of a kind of the whole run, with what the run's tables add to them."""
    if kind is DROPS:
        return [*drops_by_place(run.results, network_tables.recorded_drops(run))]
    return run.results.of(kind)


def parts_of_traffic(run: RunDirectory) -> dict[str, ReportPart]:
    """Return the parts of a page that kinds of results make, from top to bottom, by names that are theirs alone."""
    return {
        f"{kind.key}-{number}": part
        for kind, results in run.traffic
        if results
        for number, part in enumerate(kind.parts(results, run.fabric))
        if not part.is_empty
    }
