"""All tables of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.report import network_tables, traffic_tables
from weft.report.run_directory import RunDirectory
from weft.results.kinds import result_kinds
from weft.results.report_table import ReportTable

OF_KINDS = "kind-"
"""What names of tables that kinds of results make begin with."""
_MAKERS: Mapping[str, Callable[[RunDirectory], ReportTable | None]] = {
    "phases": traffic_tables.phases,
    "collectives": traffic_tables.collectives,
    "training": traffic_tables.training_steps,
    "patterns": traffic_tables.flows_by_pattern,
    "slowest": traffic_tables.slowest_messages,
    "links": network_tables.link_events,
    "planes": network_tables.planes,
    "memory": network_tables.memory,
    "pauses": network_tables.pauses,
    "credits": network_tables.credits,
    "faults": network_tables.link_faults,
    "drops": network_tables.drops,
    "ports": network_tables.ports,
    "int": network_tables.int_path,
    "counters": network_tables.program_counters,
    "registers": network_tables.program_registers,
    "conservation": network_tables.conservation,
}


def all_tables(run: RunDirectory) -> dict[str, ReportTable]:
    """Return the tables that the run has something for, by name; of workloads and patterns
    one each, `workload-0`, `pattern-0` and so on."""
    made = {name: make(run) for name, make in _MAKERS.items()}
    made |= {f"workload-{number}": table for number, table in enumerate(traffic_tables.workloads(run))}
    made |= {f"pattern-{number}": table for number, table in traffic_tables.flows_of_patterns(run)}
    for kind in result_kinds():
        made |= {
            f"{OF_KINDS}{kind.key}-{number}": table
            for number, table in enumerate(kind.report_tables(run.results.of(kind)))
        }
    return {name: table for name, table in made.items() if table is not None and table.rows}
