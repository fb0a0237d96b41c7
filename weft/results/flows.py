"""What a pattern of flows found: the completion time of each, and of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weft.quantities.readable import counted, format_time
from weft.recording.schema import TableSchema
from weft.results.flow_tables import FLOW_COLUMNS, FlowFile, FlowTable, flow_table
from weft.results.kinds import ResultKind
from weft.results.report_parts import Cell, ReportTable, microseconds, shown_of
from weft.topologies import FabricSpec
from weft.traffic.answers import EndedFlows
from weft.traffic.patterns import Flow

MOST_SHOWN = 16
"""Flows that a table has; of more, the slowest."""
FLOW_FILE = FlowFile("pattern", TableSchema(FLOW_COLUMNS))


@dataclass(frozen=True)
class FlowsResult:
    """A pattern of one-sided writes: bytes moved and the time until the last was acknowledged.

    Completion times are those of the single flows, from a flow's own start to its last acknowledgement. `records` has a
    row per flow; it is no part of the results file, but of a table beside it.
    """

    derived: ClassVar[Mapping[str, str]] = {}

    pattern: str
    """What it was: an incast and its receiver, a permutation, your class, or a file."""
    flows: int
    """How many."""
    bytes_delivered: int
    """Of all flows."""
    time_ps: int
    """From the first flow's start to the last one's acknowledgement."""
    retransmissions: int
    """Packets sent again."""
    cnps: int = 0
    """Congestion notifications received."""
    least_completion_ps: int = 0
    """Of the single flows, each from its own start to its last acknowledgement."""
    mean_completion_ps: int = 0
    """Of the same."""
    largest_completion_ps: int = 0
    """Of the same."""
    host_names: Sequence[str] = field(default=(), compare=False, repr=False)
    records: FlowTable = field(default_factory=dict, compare=False, repr=False)

    @property
    def ok(self) -> bool:
        """Return True: what flows carry is not looked at."""
        return True

    def as_dict(self) -> dict[str, Any]:
        """Return plain data without the records."""
        return {name: value for name, value in vars(self).items() if name not in ("host_names", "records")}


def flows_result(
    pattern: str,
    fabric: FabricSpec,
    flows: Sequence[Flow],
    records: EndedFlows,
    time_ps: int,
    *,
    retransmissions: int,
    cnps: int,
) -> FlowsResult:
    """Return what a pattern found; `records` as `weft.results.flow_tables.flow_table` takes them."""
    table = flow_table(flows, records)
    completion_ps = table["completion_ps"]
    return FlowsResult(
        pattern=pattern,
        flows=len(flows),
        bytes_delivered=int(table["size_bytes"].sum()),
        time_ps=time_ps,
        retransmissions=retransmissions,
        cnps=cnps,
        least_completion_ps=int(completion_ps.min()),
        mean_completion_ps=round(float(completion_ps.mean())),
        largest_completion_ps=int(completion_ps.max()),
        host_names=[host.name for host in fabric.hosts],
        records=table,
    )


def print_patterns(console: Console, results: Sequence[FlowsResult]) -> None:
    """Print every pattern."""
    for number, result in enumerate(results):
        print_flows(console, number, result)


def print_flows(console: Console, number: int, result: FlowsResult) -> None:
    """Print a pattern as a whole, and its flows; `number` is that of the file with all of them."""
    console.print(
        f"\n[bold]{escape(result.pattern)}[/bold]: {counted(result.flows, 'flow')}, {result.bytes_delivered} B in "
        f"{format_time(result.time_ps)}, {counted(result.retransmissions, 'packet')} retransmitted"
    )
    if not result.records:
        return
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for column in ("flow", "plane", "size\n(B)", "start\n(µs)", "completion\n(µs)", "retransmitted\npackets"):
        table.add_column(column, justify="right", vertical="bottom", no_wrap="\n" not in column)
    records = result.records
    shown = np.arange(result.flows)
    if result.flows > MOST_SHOWN:
        shown = np.argsort(-records["completion_ps"], kind="stable")[:MOST_SHOWN]
    for row in shown.tolist():
        source, destination = (result.host_names[records[end][row]] for end in ("source", "destination"))
        table.add_row(
            f"{source} → {destination}",
            str(records["plane"][row]),
            str(records["size_bytes"][row]),
            f"{records['start_ps'][row] / 1e6:.1f}",
            f"{records['completion_ps'][row] / 1e6:.1f}",
            str(records["retransmitted_packets"][row]),
        )
    console.print(table)
    times_ps = (result.least_completion_ps, result.mean_completion_ps, result.largest_completion_ps)
    least, mean, largest = (f"{time_ps / 1e6:.1f}" for time_ps in times_ps)
    more = f"; the {len(shown)} slowest of {result.flows}, all are in {FLOW_FILE.of(number)}"
    console.print(
        f"completion (µs): least {least}, mean {mean}, largest {largest}"
        + (more if len(shown) < result.flows else "")
    )


def report_patterns(results: Sequence[FlowsResult], fabric: FabricSpec) -> Iterator[ReportTable]:
    """Patterns as a whole and how long single flows took; then the slowest flows of each."""
    rows: list[list[Cell]] = [
        [
            each.pattern,
            each.flows,
            each.bytes_delivered,
            microseconds(each.time_ps),
            microseconds(each.least_completion_ps),
            microseconds(each.mean_completion_ps),
            microseconds(each.largest_completion_ps),
            each.retransmissions,
            each.cnps,
        ]
        for each in results
    ]
    columns = [
        "pattern", "flows", "delivered (B)", "time (µs)", "least flow (µs)", "mean flow (µs)", "largest flow (µs)",
        "retransmitted packets", "CNPs",
    ]  # fmt: skip
    yield ReportTable("Patterns", columns, rows)
    for number, each in enumerate(results):
        if each.records:
            yield _flows_of(number, each, [host.name for host in fabric.hosts])


def _flows_of(number: int, result: FlowsResult, hosts: Sequence[str]) -> ReportTable:
    records = result.records
    slowest = np.argsort(-records["completion_ps"], kind="stable")[:MOST_SHOWN].tolist()
    values = {name: column[slowest].tolist() for name, column in records.items()}
    rows: list[list[Cell]] = [
        [
            f"{hosts[values['source'][row]]} → {hosts[values['destination'][row]]}",
            values["plane"][row],
            values["size_bytes"][row],
            microseconds(values["start_ps"][row]),
            microseconds(values["completion_ps"][row]),
            values["retransmitted_packets"][row],
        ]
        for row in range(len(slowest))
    ]
    columns = ["flow", "plane", "size (B)", "start (µs)", "completion (µs)", "retransmitted packets"]
    note = shown_of(len(rows), len(records["flow"]), f"the slowest; {FLOW_FILE.of(number)} has all")
    return ReportTable(f"Flows: {result.pattern}", columns, rows, note)


FLOWS = ResultKind(
    key="flows",
    meaning="Of each incast, permutation and pattern; its place N in the list names `pattern-N-flows.csv`.",
    is_always_written=True,
    model=FlowsResult,
    show=print_patterns,
    order=2,
    report=report_patterns,
    flow_file=FLOW_FILE,
    name="pattern",
)
