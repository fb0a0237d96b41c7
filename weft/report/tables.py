"""All tables of a page, and the parts of kinds of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.report import network_tables, traffic_tables
from weft.report.run_directory import RunDirectory
from weft.results.report_parts import ReportPart, ReportTable

_MAKERS: Mapping[str, Callable[[RunDirectory], ReportTable | None]] = {
    "phases": traffic_tables.phases,
    "slowest": traffic_tables.slowest_messages,
    "links": network_tables.link_events,
    "controller": network_tables.controller_events,
    "planes": network_tables.planes,
    "memory": network_tables.memory,
    "pauses": network_tables.pauses,
    "credits": network_tables.credits,
    "faults": network_tables.link_faults,
    "drops": network_tables.drops,
    "loads": network_tables.loads,
    "busiest": network_tables.busiest,
    "ports": network_tables.ports,
    "int": network_tables.int_path,
    "counters": network_tables.program_counters,
    "registers": network_tables.program_registers,
    "conservation": network_tables.conservation,
}


def all_tables(run: RunDirectory) -> dict[str, ReportTable]:
    """Return the tables that the run has data for, by name, except the tables of kinds of results."""
    made = {name: make(run) for name, make in _MAKERS.items()}
    return {name: table for name, table in made.items() if table is not None and table.rows}


def parts_of_traffic(run: RunDirectory) -> dict[str, ReportPart]:
    """Return the parts of a page that kinds of results make, from top to bottom, by names that are theirs alone."""
    return {
        f"{kind.key}-{number}": part
        for kind, results in run.traffic
        if results
        for number, part in enumerate(kind.parts(results, run.fabric))
        if not part.is_empty
    }
