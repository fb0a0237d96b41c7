"""What clients of storage found: throughput, latencies of commands, and where their time went."""

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
from weft.results.operation_files import OperationFile, timelines
from weft.results.report_parts import Axis, BarFigure, Cell, ReportPart, ReportTable
from weft.topologies import FabricSpec

PS_PER_S = 10**12
_PS_PER_US = 1e6
_GB = 1e9


@dataclass(frozen=True)
class StorageResult:
    """Commands of clients to storage nodes, from the start to the end of the last command or step.

    A command's latency is the time from when its client could issue it to the response, with data and copy
    ([what it consists of](storage.md#results)). `records` has a row per operation; it is no part of the results file,
    but of a table beside it.
    """

    derived: ClassVar[Mapping[str, str]] = {
        "bytes_per_s": "bytes_per_s",
        "commands_per_s": "commands_per_s",
    }

    name: str
    """What clients did."""
    clients: int
    """How many."""
    storage_nodes: int
    """How many."""
    queue_depth: int
    """Commands of a client that could be under way at once."""
    commands: int
    """Of all clients."""
    read_bytes: int
    """By all clients."""
    written_bytes: int
    """By all clients."""
    time_ps: int
    """What all of it took."""
    latency_ps: Latencies
    """Of commands."""
    parts_ps: dict[str, int]
    """Latency of a command by what it went to, on average: `network`, `device queue`, `device`, `host copy`."""
    bounds_bytes_per_s: dict[str, float]
    """The throughput that each of the queues' depth, READs under way (of writes), links, devices and host copies allows
    in closed form; none where clients read and write. With cut-through switching those of queues and READs are left
    out, that of links where a client shares a host with a node."""
    compute_ps: int
    """Computation of a client, on average."""
    waiting_ps: int
    """Time for which a client's computation waited for its batch, on average."""
    retransmissions: int
    """Packets sent again by all hosts meanwhile."""
    records: tables.Table = field(default_factory=dict, compare=False, repr=False)

    @property
    def ok(self) -> bool:
        """Return True: commands have no data to check."""
        return True

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
        """What clients did, and with how many commands at once."""
        return f"{self.name}, queue depth {self.queue_depth}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data with derived figures, without the records."""
        plain = {name: value for name, value in vars(self).items() if name != "records"}
        plain["latency_ps"] = asdict(self.latency_ps)
        return {**plain, **{key: getattr(self, name) for key, name in self.derived.items()}}


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
        table = Table(box=None, pad_edge=False, collapse_padding=True)
        for column in ("latency (µs)", *COLUMNS):
            table.add_column(column, justify="left" if column == "latency (µs)" else "right")
        table.add_row(
            "of a command", *(f"{each / _PS_PER_US:,.3f}" for each in result.latency_ps.in_columns())
        )
        console.print(table)
        parts = {name: f"{each / _PS_PER_US:,.3f}" for name, each in result.parts_ps.items() if each}
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
        parts={name: [each.parts_ps.get(name, 0) / _PS_PER_US for each in results] for name in names},
        text="What a command's latency went to, on average.",
    )
    for label, result in zip(labels, results, strict=True):
        yield from timelines(f"storage {label}", result.records)
    rows: list[list[Cell]] = [
        [
            label,
            each.clients,
            each.storage_nodes,
            each.commands,
            round(each.bytes_per_s / _GB, 3),
            *(round(value / _PS_PER_US, 3) for value in each.latency_ps.in_columns()),
            each.retransmissions,
        ]
        for label, each in zip(labels, results, strict=True)
    ]
    columns = [
        "load",
        "clients",
        "nodes",
        "commands",
        "GB/s",
        *(f"{each} (µs)" for each in COLUMNS),
        "retransmitted packets",
    ]
    yield ReportTable("Commands to storage", columns, rows, "percentiles of commands' latencies")


STORAGE = ResultKind(
    key="storage",
    meaning="Of each load on storage.",
    model=StorageResult,
    show=print_storage,
    order=7,
    report=report_storage,
    flow_file=OperationFile("storage"),
    problems=lambda each: problems_of_service(each.latency_ps, each.time_ps),
    name="name",
    labels=("name",),
    measured=(
        MeasuredColumn("throughput", "GB/s", 3, "bytes_per_s", _GB),
        MeasuredColumn("waiting", "µs", 3, "waiting_ps", _PS_PER_US),
    ),
)
