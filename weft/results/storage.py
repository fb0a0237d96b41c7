"""Results of clients of storage: throughput, latencies of commands, and parts of their time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from rich.console import Console

from weft.quantities.readable import counted, format_size, format_time
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.recording import tables
from weft.results.columns import Column, ResultTable, grouped_thousandths
from weft.results.figure_tables import Layout
from weft.results.kinds import ItemResult, ResultKind
from weft.results.latencies import Latencies, latency_columns, problems_of_service
from weft.results.operation_files import OperationFile, timelines
from weft.results.report_parts import Axis, BarFigure, ReportPart
from weft.topologies import FabricSpec

_GB = 1e9


@dataclass(frozen=True)
class StorageResult(ItemResult):
    """Commands of clients to storage nodes, from the start to the end of the last command or step.

    A command's latency is the time from when its client could issue it to the response, with data and copy
    ([what it consists of](storage.md#results)). `records` has a row per operation; it is written to a separate table,
    not to the results file.
    """

    derived: ClassVar[Mapping[str, str]] = {
        "bytes_per_s": "bytes_per_s",
        "commands_per_s": "commands_per_s",
    }

    name: str
    """Activity of the clients."""
    clients: int
    """How many."""
    storage_nodes: int
    """How many."""
    queue_depth: int
    """Commands of a client that could be under way at once."""
    commands: int
    """Commands of all clients."""
    read_bytes: int
    """By all clients."""
    written_bytes: int
    """By all clients."""
    time_ps: int
    """Duration of all commands."""
    latency_ps: Latencies
    """Latencies of commands."""
    parts_ps: dict[str, int]
    """Latency of a command by what it went to, on average: `network`, `device queue`, `device`, `host copy`."""
    bounds_bytes_per_s: dict[str, float]
    """The throughput that each of the queues' depth, READs under way (of writes), links, devices and host copies allows
    in closed form; none where clients read and write. With cut-through switching queues and READs are left
    out; links are left out where a client shares a host with a node."""
    compute_ps: int
    """Computation of a client, on average."""
    waiting_ps: int
    """Time for which a client's computation waited for its batch, on average."""
    retransmissions: int
    """Packets sent again by all hosts meanwhile."""
    records: tables.Table = field(default_factory=dict, compare=False, repr=False)

    @property
    def bytes_per_s(self) -> float:
        """Return bytes read and written per second of emulated time."""
        return (self.read_bytes + self.written_bytes) * PS_PER_S / self.time_ps

    @property
    def commands_per_s(self) -> float:
        """Return commands per second of emulated time."""
        return self.commands * PS_PER_S / self.time_ps

    @property
    def label(self) -> str:
        """The clients' activity, and how many commands they had at once."""
        return f"{self.name}, queue depth {self.queue_depth}"


_LATENCIES = ResultTable[StorageResult](
    "",
    (
        Column("latency (µs)", lambda _: "of a command", is_name=True),
        *latency_columns(lambda each: each.latency_ps, scale=PS_PER_US, digits=3),
    ),
    layout=Layout(is_narrow=True),
    shown=grouped_thousandths,
)
_THROUGHPUT = Column[StorageResult](
    "GB/s", "bytes_per_s", scale=_GB, digits=3, sweep={"title": "throughput", "unit": "GB/s", "more_is_better": True}
)
_LOADS = ResultTable[StorageResult](
    "Commands to storage",
    (
        Column("load", "label", is_numbered=True),
        Column("clients", "clients"),
        Column("nodes", "storage_nodes"),
        Column("commands", "commands"),
        _THROUGHPUT,
        *latency_columns(lambda each: each.latency_ps, unit="µs", scale=PS_PER_US, digits=3),
        Column("retransmitted packets", "retransmissions"),
    ),
    note="percentiles of commands' latencies",
)


def print_storage(console: Console, results: Sequence[StorageResult]) -> None:
    """Print each load: throughput and its bounds, latencies, and where the time went."""
    for result in results:
        console.print(f"\n[bold]storage: {result.label}[/bold] (time is emulated)")
        moved = format_size(result.read_bytes + result.written_bytes)
        console.print(
            f"{counted(result.commands, 'command')} of {counted(result.clients, 'client')} to "
            f"{counted(result.storage_nodes, 'node')}: {moved} in {format_time(result.time_ps)}"
        )
        console.print(f"{result.bytes_per_s / _GB:.3f} GB/s, {result.commands_per_s:,.0f} commands/s")
        if result.bounds_bytes_per_s:
            bounds = {name: f"{bound / _GB:.3f}" for name, bound in result.bounds_bytes_per_s.items()}
            console.print(f"at most, in GB/s, by {_listed(bounds)}")
        _LATENCIES.print(console, [result])
        parts = {name: f"{each / PS_PER_US:,.3f}" for name, each in result.parts_ps.items() if each}
        console.print(f"of it, on average: {_listed(parts)}")
        if result.compute_ps:
            console.print(
                f"a client computed for {format_time(result.compute_ps)} and waited for batches for "
                f"{format_time(result.waiting_ps)}"
            )


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def report_storage(results: Sequence[StorageResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Bars of where commands' time went, timelines, and a table with a row for each load."""
    labels = [f"{number} {each.label}" for number, each in enumerate(results, 1)]
    names = dict.fromkeys(name for each in results for name in each.parts_ps)
    yield BarFigure(
        "Storage",
        Axis("latency (µs)", "µs"),
        rows=labels,
        parts={name: [each.parts_ps.get(name, 0) / PS_PER_US for each in results] for name in names},
        text="Parts of a command's latency, on average.",
    )
    for label, result in zip(labels, results, strict=True):
        yield from timelines(f"storage {label}", result.records)
    yield _LOADS.part(results)


STORAGE = ResultKind(
    key="storage",
    meaning="One for each load on storage.",
    model=StorageResult,
    show=print_storage,
    order=7,
    report=report_storage,
    flow_file=OperationFile("storage"),
    problems=lambda each: problems_of_service(each.latency_ps, each.time_ps),
    name="name",
    labels=("name",),
    tables=(_LOADS,),
    columns=(
        _THROUGHPUT,
        Column("waiting", "waiting_ps", unit="µs", scale=PS_PER_US, digits=3, sweep={}),
    ),
)
