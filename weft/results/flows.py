"""Results of a pattern of flows: completion times of each, and of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.markup import escape

from weft.quantities.readable import counted, format_time
from weft.quantities.units import PS_PER_US
from weft.recording.schema import TableSchema
from weft.results.columns import Column, ResultTable
from weft.results.figure_tables import Layout
from weft.results.flow_tables import FLOW_COLUMNS, FlowFile, FlowTable, flow_table
from weft.results.kinds import ItemResult, ResultKind
from weft.results.report_parts import ReportTable, shown_of
from weft.topologies import FabricSpec
from weft.traffic.answers import EndedFlows
from weft.traffic.patterns import Flow

MOST_SHOWN = 16
"""Flows that a table has; of more, the slowest."""
FLOW_FILE = FlowFile("pattern", TableSchema(FLOW_COLUMNS))


@dataclass(frozen=True)
class FlowsResult(ItemResult):
    """A pattern of one-sided writes: bytes moved and the time until the last was acknowledged.

    Completion times are single flows', from a flow's own start to its last acknowledgement. `records` has a row per
    flow; it is written to a separate table, not to the results file.
    """

    pattern: str
    """The pattern: an incast and its receiver, a permutation, your class, or a file."""
    flows: int
    """How many."""
    bytes_delivered: int
    """Bytes of all flows."""
    time_ps: int
    """From the first flow's start to the last one's acknowledgement."""
    retransmissions: int
    """Packets sent again."""
    cnps: int = 0
    """Congestion notifications received."""
    least_completion_ps: int = 0
    """Quickest flow, from its own start to its last acknowledgement."""
    mean_completion_ps: int = 0
    """Mean of all flows."""
    largest_completion_ps: int = 0
    """Slowest flow."""
    host_names: Sequence[str] = field(default=(), compare=False, repr=False)
    records: FlowTable = field(default_factory=dict, compare=False, repr=False)


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


@dataclass(frozen=True)
class _Flow:
    """A row of a pattern's table."""

    name: str
    plane: int
    size_bytes: int
    start_ps: int
    completion_ps: int
    retransmitted_packets: int


def _in_us(title: str, value: str) -> Column[_Flow]:
    return Column(f"{title}\n", value, unit="µs", scale=PS_PER_US, digits=1, page={"digits": 3})


_FLOWS = ResultTable[_Flow](
    "Flows",
    (
        Column("flow", "name"),
        Column("plane", "plane"),
        Column("size\n", "size_bytes", unit="B"),
        _in_us("start", "start_ps"),
        _in_us("completion", "completion_ps"),
        Column("retransmitted\npackets", "retransmitted_packets"),
    ),
    layout=Layout(is_narrow=True, headings="bottom", whole=True),
)


def _flow_rows(records: FlowTable, shown: npt.NDArray[np.int64], hosts: Sequence[str]) -> list[_Flow]:
    columns = [records[each.name][shown].tolist() for each in fields(_Flow)[1:]]
    ends = (records[end][shown].tolist() for end in ("source", "destination"))
    names = [f"{hosts[source]} → {hosts[destination]}" for source, destination in zip(*ends, strict=True)]
    return list(map(_Flow, names, *columns))


def _slowest(records: FlowTable) -> npt.NDArray[np.int64]:
    return np.argsort(-records["completion_ps"], kind="stable")[:MOST_SHOWN]


def print_patterns(console: Console, results: Sequence[FlowsResult]) -> None:
    """Print every pattern."""
    for number, result in enumerate(results):
        print_flows(console, number, result)


def print_flows(console: Console, number: int, result: FlowsResult) -> None:
    """Print a pattern as a whole, and its flows; `number` names the file with all of them."""
    console.print(
        f"\n[bold]{escape(result.pattern)}[/bold]: {counted(result.flows, 'flow')}, {result.bytes_delivered} B in "
        f"{format_time(result.time_ps)}, {counted(result.retransmissions, 'packet')} retransmitted"
    )
    if not result.records:
        return
    shown = _slowest(result.records) if result.flows > MOST_SHOWN else np.arange(result.flows)
    _FLOWS.print(console, _flow_rows(result.records, shown, result.host_names))
    times_ps = (result.least_completion_ps, result.mean_completion_ps, result.largest_completion_ps)
    least, mean, largest = (f"{time_ps / PS_PER_US:.1f}" for time_ps in times_ps)
    more = f"; the {len(shown)} slowest of {result.flows}, all are in {FLOW_FILE.of(number)}"
    console.print(
        f"completion (µs): least {least}, mean {mean}, largest {largest}" + (more if len(shown) < result.flows else "")
    )


def _time(title: str, value: str) -> Column[FlowsResult]:
    return Column(title, value, unit="µs", scale=PS_PER_US, digits=3)


_PATTERNS = ResultTable[FlowsResult](
    "Patterns",
    (
        Column("pattern", "pattern"),
        Column("flows", "flows"),
        Column("delivered", "bytes_delivered", unit="B"),
        _time("time", "time_ps"),
        _time("least flow", "least_completion_ps"),
        _time("mean flow", "mean_completion_ps"),
        _time("largest flow", "largest_completion_ps"),
        Column("retransmitted packets", "retransmissions"),
        Column("CNPs", "cnps"),
    ),
)


def report_patterns(results: Sequence[FlowsResult], fabric: FabricSpec) -> Iterator[ReportTable]:
    """Patterns as a whole and how long single flows took; then the slowest flows of each."""
    yield _PATTERNS.part(results)
    hosts = [host.name for host in fabric.hosts]
    for number, each in enumerate(results):
        if each.records:
            rows = _flow_rows(each.records, _slowest(each.records), hosts)
            note = shown_of(len(rows), len(each.records["flow"]), f"the slowest; {FLOW_FILE.of(number)} has all")
            yield _FLOWS.part(rows, note, f"Flows: {each.pattern}")


FLOWS = ResultKind(
    key="flows",
    meaning="One for each incast, permutation and pattern; its place N in the list names `pattern-N-flows.csv`.",
    is_always_written=True,
    model=FlowsResult,
    tables=(_PATTERNS,),
    show=print_patterns,
    order=2,
    report=report_patterns,
    flow_file=FLOW_FILE,
    name="pattern",
)
