"""What happened in the switches' shared memory and to flow control, from the counters of switches and hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from weft.results.figure_tables import print_figures
from weft.topologies import FabricSpec
from weft.topologies.describe import format_time


@dataclass(frozen=True)
class MemoryResult:
    """Of one plane, over the whole run. Counts of pauses are frames, refreshed ones included.

    `longest_pause_ps` is the time that one class of one port was held, all its pauses together; `longest_pause_port`
    is that port, by its switch or host.
    """

    plane: int
    largest_buffer_bytes: int
    largest_buffer_switch: str
    threshold_drops: int
    headroom_drops: int
    largest_headroom_bytes: int
    pauses_sent: int
    resumes_sent: int
    paused_ps: int
    longest_pause_ps: int
    longest_pause_port: str


def memory_results(
    fabric: FabricSpec, switch_stats: Mapping[str, Any] | None, endpoint_stats: Sequence[Mapping[str, Any]]
) -> list[MemoryResult]:
    """Return every plane's; none where switches have no shared memory."""
    if switch_stats is None or not any(each.get("buffer") for each in switch_stats["switches"].values()):
        return []
    return [_plane(fabric, plane, switch_stats, endpoint_stats) for plane in range(fabric.planes)]


def _plane(
    fabric: FabricSpec,
    plane: int,
    switch_stats: Mapping[str, Any],
    endpoint_stats: Sequence[Mapping[str, Any]],
) -> MemoryResult:
    switches = {
        switch.name: switch_stats["switches"][switch.name] for switch in fabric.switches_of_plane(plane)
    }
    fullest = max(switches, key=lambda name: switches[name]["buffer"]["max_used_bytes"])
    ports = [port for switch in switches.values() for port in switch["ports"].values()]
    ingress = [
        group
        for switch in switches.values()
        for port in switch["buffer"]["ports"].values()
        for group in port["ingress"]
    ]
    pauses = list(_pauses(plane, switches, endpoint_stats))
    longest_ps, port_name = max(
        ((each["paused_ps"], name) for name, each in pauses), key=lambda pause: pause[0], default=(0, "")
    )
    return MemoryResult(
        plane=plane,
        largest_buffer_bytes=switches[fullest]["buffer"]["max_used_bytes"],
        largest_buffer_switch=fullest,
        threshold_drops=sum(port["transmit"]["tail_dropped"]["packets"] for port in ports),
        headroom_drops=sum(port["transmit"]["headroom_dropped"]["packets"] for port in ports),
        largest_headroom_bytes=max(group["max_own_used_bytes"] for group in ingress),
        pauses_sent=sum(each["pauses_sent"] for _, each in pauses),
        resumes_sent=sum(each["resumes_sent"] for _, each in pauses),
        paused_ps=sum(each["paused_ps"] for _, each in pauses),
        longest_pause_ps=longest_ps,
        longest_pause_port=port_name if longest_ps else "",
    )


def _pauses(
    plane: int, switches: Mapping[str, Any], endpoint_stats: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every class of every port with PFC, and the port's name."""
    for name, switch in switches.items():
        for number, port in switch["ports"].items():
            for each in (port.get("mac") or {}).get("pfc") or ():
                yield f"{name}:{number}", each
    for endpoint in endpoint_stats:
        for each in (endpoint["planes"][plane].get("mac") or {}).get("pfc") or ():
            yield f"{endpoint['name']}", each


def print_memory(console: Console, results: Sequence[MemoryResult]) -> None:
    """Print a table, if there is anything to show."""
    columns = (
        "plane", "largest\nbuffer (B)", "at", "threshold\ndrops", "headroom\ndrops", "largest\nheadroom (B)",
        "pauses", "resumes", "paused\nin all", "longest", "at port",
    )  # fmt: skip
    rows = [
        (
            str(each.plane),
            str(each.largest_buffer_bytes),
            each.largest_buffer_switch,
            str(each.threshold_drops),
            str(each.headroom_drops),
            str(each.largest_headroom_bytes),
            str(each.pauses_sent),
            str(each.resumes_sent),
            format_time(each.paused_ps),
            format_time(each.longest_pause_ps),
            each.longest_pause_port,
        )
        for each in results
    ]
    print_figures(console, "[bold]switch memory and flow control[/bold]", columns, rows)
