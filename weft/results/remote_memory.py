"""What reads of remote memory took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from rich.console import Console
from rich.table import Table

from weft.quantities.readable import counted, format_size, format_time
from weft.recording import tables
from weft.results.kinds import MeasuredColumn, ResultKind
from weft.results.latencies import COLUMNS, Latencies, problems_of_service
from weft.results.operation_files import OperationFile
from weft.results.report_parts import Cell, ReportPart, ReportTable
from weft.topologies import FabricSpec

_PS_PER_S = 10**12
_PS_PER_NS = 1e3
_GB = 1e9


@dataclass(frozen=True)
class RemoteMemoryResult:
    """Reads of memory by RDMA READ, from the start to the end of the last one.

    `records` has a row per operation; it is no part of the results file, but of a table beside it.
    """

    derived: ClassVar[Mapping[str, str]] = {"bytes_per_s": "bytes_per_s", "reads_per_s": "reads_per_s"}

    name: str
    """What is read, and how."""
    clients: int
    """How many."""
    memory_ranks: int
    """How many have the memory."""
    reads: int
    """Of all clients."""
    size_bytes: int
    """Of a read."""
    time_ps: int
    """What all of it took."""
    latency_ps: Latencies
    """Of reads, each from when it could begin."""
    unloaded_ps: int | None
    """The latency of a read alone, in closed form, on average over pairs of a client and a memory; none with
    cut-through switching."""
    expected_mean_ps: float | None
    """The mean latency by an M/D/1 queue, of reads of one memory that begin at random times, take longer on the link
    than their requests with acknowledgements, fit a packet, have one plane without slower links between switches,
    and do not come near as many as may be under way between two ranks (`transport.max_outstanding_reads`)."""
    bounds_bytes_per_s: dict[str, float]
    """The throughput that reads under way, and links, allow, in closed form; of links alone with cut-through switching.
    """
    retransmissions: int
    """Packets sent again by all hosts meanwhile."""
    records: tables.Table = field(default_factory=dict, compare=False, repr=False)

    @property
    def ok(self) -> bool:
        """Return True: reads have no data to check."""
        return True

    @property
    def bytes_per_s(self) -> float:
        """Return bytes read per second of emulated time."""
        return self.reads * self.size_bytes * _PS_PER_S / self.time_ps

    @property
    def reads_per_s(self) -> float:
        """Return reads per second of emulated time."""
        return self.reads * _PS_PER_S / self.time_ps

    def as_dict(self) -> dict[str, Any]:
        """Return plain data with derived figures, without the records."""
        plain = {name: value for name, value in vars(self).items() if name != "records"}
        plain["latency_ps"] = asdict(self.latency_ps)
        return {**plain, **{key: getattr(self, name) for key, name in self.derived.items()}}


def print_remote_memory(console: Console, results: Sequence[RemoteMemoryResult]) -> None:
    """Print each load: throughput and its bounds, and latencies beside those of a read alone."""
    for result in results:
        console.print(f"\n[bold]remote memory: {result.name}[/bold] (time is emulated)")
        console.print(
            f"{counted(result.reads, 'read')} of {format_size(result.size_bytes)} by "
            f"{counted(result.clients, 'client')} from {counted(result.memory_ranks, 'rank')} in "
            f"{format_time(result.time_ps)}: {result.bytes_per_s / _GB:.3f} GB/s"
        )
        bounds = [f"{name} {bound / _GB:.3f}" for name, bound in result.bounds_bytes_per_s.items()]
        console.print(f"at most, in GB/s, by {', '.join(bounds)}")
        table = Table(box=None, pad_edge=False, collapse_padding=True)
        for column in ("latency (ns)", *COLUMNS):
            table.add_column(column, justify="left" if column == "latency (ns)" else "right")
        table.add_row("of a read", *(f"{each / _PS_PER_NS:,.1f}" for each in result.latency_ps.in_columns()))
        console.print(table)
        expected = result.expected_mean_ps
        mean = "" if expected is None else f"; on average by M/D/1: {expected / _PS_PER_NS:,.1f} ns"
        if result.unloaded_ps is not None:
            console.print(f"of a read alone: {result.unloaded_ps / _PS_PER_NS:,.1f} ns{mean}")


def report_remote_memory(results: Sequence[RemoteMemoryResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Return a table with a row for each load."""
    rows: list[list[Cell]] = [
        [
            f"{number} {each.name}",
            each.clients,
            each.memory_ranks,
            each.reads,
            each.size_bytes,
            round(each.bytes_per_s / _GB, 3),
            "" if each.unloaded_ps is None else round(each.unloaded_ps / _PS_PER_NS, 1),
            *(round(value / _PS_PER_NS, 1) for value in each.latency_ps.in_columns()),
            each.retransmissions,
        ]
        for number, each in enumerate(results, 1)
    ]
    columns = [
        "load",
        "clients",
        "memory ranks",
        "reads",
        "size (B)",
        "GB/s",
        "alone (ns)",
        *(f"{each} (ns)" for each in COLUMNS),
        "retransmitted packets",
    ]
    yield ReportTable("Reads of remote memory", columns, rows, "percentiles of reads' latencies")


REMOTE_MEMORY = ResultKind(
    key="remote_memory",
    meaning="Of each load of reads of remote memory.",
    model=RemoteMemoryResult,
    show=print_remote_memory,
    order=8,
    report=report_remote_memory,
    flow_file=OperationFile("remote-memory"),
    problems=lambda each: problems_of_service(each.latency_ps, each.time_ps),
    name="name",
    labels=("name",),
    measured=(MeasuredColumn("throughput", "GB/s", 3, "bytes_per_s", _GB),),
)
