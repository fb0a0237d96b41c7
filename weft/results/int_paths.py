"""INT's view of a path: what switches stamped on packets, as a receiver echoed it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console

from weft.controller.planned_paths import PlannedPaths
from weft.quantities.plain_data import PlainData
from weft.quantities.readable import format_rate
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.results.report_parts import ReportPart
from weft.topologies import FabricSpec
from weft.traffic.host_stats import HostStats
from weft.traffic.int_stack import MOST_QUEUE_BYTES


@dataclass(frozen=True)
class IntHop:
    """One hop of a path as INT saw it."""

    hop: int
    """From 0, in the order in which the packet met them."""
    switch: str
    """Its name; `?` where `why_unknown` says why it has none."""
    rate_bps: int
    """Rate of the port; 0: unknown."""
    queue_bytes: int
    """In steps of 80."""
    timestamp_ns: int
    """Modulo 2²⁴."""
    tx_bytes: int
    """Modulo 2²⁷, in steps of 128."""


@dataclass(frozen=True)
class IntPath(PlainData):
    """INT's view of a path, from the stack that a receiver echoed.

    `coarse`: each switch has its own clock, in microseconds (BMv2), so times of two hops do not compare.
    """

    source: str
    """Source of the data."""
    destination: str
    """Destination of the data."""
    plane: int
    """Its number."""
    hops: tuple[IntHop, ...]
    """Those that were stamped."""
    coarse: bool = False
    """Each switch has its own clock, in microseconds (BMv2), so times of two hops do not compare."""
    why_unknown: str = ""
    """Why switches have no names: no path of the present routes, or more than one, has the id of the stack, the XOR of
    its switches' ids; empty where they have.
    """


def longest_int_path(
    fabric: FabricSpec,
    endpoint_stats: Sequence[HostStats],
    planned_paths: Callable[[int], PlannedPaths],
    coarse: bool = False,
) -> IntPath | None:
    """Return INT's view of a path with the most hops, preferring the deepest queue seen; None without any.

    `planned_paths` returns the paths of a plane by its number.
    """
    stacks = [
        (endpoint["rank"], connection, telemetry)
        for endpoint in endpoint_stats
        for connection in endpoint["connections"]
        if (telemetry := connection["telemetry"]) and telemetry["hops"]
    ]
    if not stacks:
        return None
    rank, connection, telemetry = max(
        stacks,
        key=lambda stack: (len(stack[2]["hops"]), max(hop["queue_bytes"] for hop in stack[2]["hops"])),
    )
    source, destination = fabric.hosts[rank], fabric.hosts[connection["peer"]]
    first, last = (host.nic(connection["plane"]) for host in (source, destination))
    count = None if telemetry["overflow"] else len(telemetry["hops"])
    path = planned_paths(first.plane).with_id(first.switch, last.switch, telemetry["path_id"], count)
    hops = tuple(
        IntHop(
            hop=number,
            switch=path.switches[number] if path.switches else "?",
            rate_bps=hop["rate_bps"],
            queue_bytes=hop["queue_bytes"],
            timestamp_ns=hop["timestamp_ns"],
            tx_bytes=hop["tx_bytes"],
        )
        for number, hop in enumerate(telemetry["hops"])
    )
    return IntPath(source.name, destination.name, connection["plane"], hops, coarse, path.why_unknown)


def more_telling(one: IntPath | None, other: IntPath | None) -> IntPath | None:
    """Return the view with more hops, of those with as many the one with the deeper queue; the first of equals."""
    views = [path for path in (one, other) if path is not None]
    return max(views, key=lambda path: (len(path.hops), max(hop.queue_bytes for hop in path.hops)), default=None)


_HOPS = ResultTable[IntHop](
    "INT",
    (
        Column("hop", "hop"),
        Column("switch", "switch"),
        Column("rate", "rate_bps", form=format_rate),
        Column(
            "queue",
            "queue_bytes",
            unit="B",
            terminal={"form": lambda depth: f"{'≥ ' if depth >= MOST_QUEUE_BYTES else ''}{depth}"},
        ),
        Column("timestamp\n", "timestamp_ns", unit="ns mod 2^24", page={"unit": "ns mod 2²⁴"}),
        Column("sent\n", "tx_bytes", unit="B mod 2^27", page={"unit": "B mod 2²⁷"}),
    ),
)


def _show(console: Console, paths: Sequence[IntPath]) -> None:
    for path in paths:
        label = " (coarse: each switch has its own clock, in microseconds)" if path.coarse else ""
        heading = f"[bold]INT[/bold] {path.source} → {path.destination}, plane {path.plane}{label}"
        _HOPS.print(console, path.hops, heading)
        if path.why_unknown:
            console.print(f"switches unknown: {path.why_unknown}")


def _report(paths: Sequence[IntPath], _: FabricSpec) -> Iterator[ReportPart]:
    for path in paths[:1]:
        note = "the newest acknowledgement's" + (f"; {path.why_unknown}" if path.why_unknown else "")
        title = f"{_HOPS.title} {path.source} → {path.destination}, plane {path.plane}"
        yield _HOPS.part(path.hops, note, title)


INT_PATHS = ResultKind(key="int_paths", model=IntPath, show=_show, report=_report)
