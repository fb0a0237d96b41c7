"""Latencies of reads of remote memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from rich.console import Console

from weft.quantities.readable import counted, format_size, format_time
from weft.quantities.units import PS_PER_NS, PS_PER_S
from weft.recording import tables
from weft.results.columns import Column, ResultTable
from weft.results.figure_tables import Layout
from weft.results.kinds import ItemResult, ResultKind
from weft.results.latencies import Latencies, latency_columns, problems_of_service
from weft.results.operation_files import OperationFile

_GB = 1e9


@dataclass(frozen=True)
class RemoteMemoryResult(ItemResult):
    """Reads of memory by RDMA READ, from the start to the end of the last one.

    `records` has a row per operation; it is written to a separate table, not to the results file.
    """

    derived: ClassVar[Mapping[str, str]] = {"bytes_per_s": "bytes_per_s", "reads_per_s": "reads_per_s"}

    name: str
    """Name of what the clients read, and how."""
    clients: int
    """How many."""
    memory_ranks: int
    """How many have the memory."""
    reads: int
    """Reads of all clients."""
    size_bytes: int
    """Size of a read."""
    time_ps: int
    """Duration of all reads."""
    latency_ps: Latencies
    """Latencies of reads, each from when it could begin."""
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
    def bytes_per_s(self) -> float:
        """Return bytes read per second of emulated time."""
        return self.reads * self.size_bytes * PS_PER_S / self.time_ps

    @property
    def reads_per_s(self) -> float:
        """Return reads per second of emulated time."""
        return self.reads * PS_PER_S / self.time_ps


_LATENCIES = ResultTable[RemoteMemoryResult](
    "",
    (
        Column("latency (ns)", lambda _: "of a read", is_name=True),
        *latency_columns(lambda each: each.latency_ps, scale=PS_PER_NS, form="{:,.1f}".format),
    ),
    layout=Layout(is_narrow=True),
)
_LOADS = ResultTable[RemoteMemoryResult](
    "Reads of remote memory",
    (
        Column("load", "name", is_numbered=True),
        Column("clients", "clients"),
        Column("memory ranks", "memory_ranks"),
        Column("reads", "reads"),
        Column("size", "size_bytes", unit="B"),
        Column(
            "GB/s",
            "bytes_per_s",
            scale=_GB,
            digits=3,
            sweep={"title": "throughput", "unit": "GB/s", "more_is_better": True},
        ),
        Column("alone", "unloaded_ps", unit="ns", scale=PS_PER_NS, digits=1),
        *latency_columns(lambda each: each.latency_ps, unit="ns", scale=PS_PER_NS, digits=1),
        Column("retransmitted packets", "retransmissions"),
    ),
    note="percentiles of reads' latencies",
)


def print_remote_memory(console: Console, results: Sequence[RemoteMemoryResult]) -> None:
    """Print each load: throughput and its bounds, and latencies compared with a single read's."""
    for result in results:
        console.print(f"\n[bold]remote memory: {result.name}[/bold] (time is emulated)")
        console.print(
            f"{counted(result.reads, 'read')} of {format_size(result.size_bytes)} by "
            f"{counted(result.clients, 'client')} from {counted(result.memory_ranks, 'rank')} in "
            f"{format_time(result.time_ps)}: {result.bytes_per_s / _GB:.3f} GB/s"
        )
        bounds = [f"{name} {bound / _GB:.3f}" for name, bound in result.bounds_bytes_per_s.items()]
        if bounds:
            console.print(f"at most, in GB/s, by {', '.join(bounds)}")
        _LATENCIES.print(console, [result])
        expected = result.expected_mean_ps
        mean = "" if expected is None else f"; on average by M/D/1: {expected / PS_PER_NS:,.1f} ns"
        if result.unloaded_ps is not None:
            console.print(f"of a read alone: {result.unloaded_ps / PS_PER_NS:,.1f} ns{mean}")


REMOTE_MEMORY = ResultKind(
    key="remote_memory",
    meaning="One for each load of reads of remote memory.",
    model=RemoteMemoryResult,
    tables=(_LOADS,),
    show=print_remote_memory,
    order=8,
    flow_file=OperationFile("remote-memory"),
    problems=lambda each: problems_of_service(each.latency_ps, each.time_ps),
    name="name",
    labels=("name",),
)
