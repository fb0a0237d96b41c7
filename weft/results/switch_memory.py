"""Shared memory of switches and flow control, from the counters of switches and hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.quantities.plain_data import PlainData
from weft.quantities.readable import format_time
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.switch.daemon.stats import SwitchesStats, SwitchStats
from weft.topologies import FabricSpec
from weft.traffic.host_stats import HostStats

if TYPE_CHECKING:
    from weft.engine._core import PfcClassStats, PortMacStats


@dataclass(frozen=True)
class MemoryResult(PlainData):
    """Memory and pauses of one plane, over the whole run. Pauses are counted in frames, including refreshes.

    `longest_pause_ps` is the time that one class of one port was held, all its pauses together; `longest_pause_port`
    is that port, by its switch or host.
    """

    plane: int
    """Its number."""
    largest_buffer_bytes: int
    """Most that was held in one switch's memory."""
    largest_buffer_switch: str
    """Which switch that was."""
    threshold_drops: int
    """Packets for which a queue had no memory."""
    headroom_drops: int
    """Packets beyond the headroom: more came than flow control allows for."""
    largest_headroom_bytes: int
    """Most that was held in the headroom of one port and class."""
    pauses_sent: int
    """PFC frames that pause, refreshed ones included."""
    resumes_sent: int
    """PFC frames that end a pause."""
    paused_ps: int
    """Time that classes of ports were held, of all together."""
    longest_pause_ps: int
    """Time that one class of one port was held, all its pauses together."""
    longest_pause_port: str
    """That port, by its switch or host."""


def memory_results(
    fabric: FabricSpec, switch_stats: SwitchesStats | None, endpoint_stats: Sequence[HostStats]
) -> list[MemoryResult]:
    """Return every plane's; none where switches have no shared memory."""
    if switch_stats is None or not any(each["buffer"] for each in switch_stats["switches"].values()):
        return []
    return [_plane(fabric, plane, switch_stats, endpoint_stats) for plane in range(fabric.planes)]


def _plane(
    fabric: FabricSpec,
    plane: int,
    switch_stats: SwitchesStats,
    endpoint_stats: Sequence[HostStats],
) -> MemoryResult:
    switches = {switch.name: switch_stats["switches"][switch.name] for switch in fabric.switches_of_plane(plane)}
    buffers = {name: buffer for name, switch in switches.items() if (buffer := switch["buffer"])}
    fullest = max(buffers, key=lambda name: buffers[name]["max_used_bytes"])
    ports = [port for switch in switches.values() for port in switch["ports"].values()]
    ingress = [group for buffer in buffers.values() for port in buffer["ports"].values() for group in port["ingress"]]
    pauses = list(_pauses(plane, switches, endpoint_stats))
    longest_ps, port_name = max(
        ((each["paused_ps"], name) for name, each in pauses), key=lambda pause: pause[0], default=(0, "")
    )
    return MemoryResult(
        plane=plane,
        largest_buffer_bytes=buffers[fullest]["max_used_bytes"],
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
    plane: int, switches: Mapping[str, SwitchStats], endpoint_stats: Sequence[HostStats]
) -> Iterator[tuple[str, PfcClassStats]]:
    """Every class of every port with PFC, and the port's name."""
    for name, switch in switches.items():
        for number, port in switch["ports"].items():
            for each in _pfc(port.get("mac")):
                yield f"{name}:{number}", each
    for endpoint in endpoint_stats:
        for each in _pfc(endpoint["planes"][plane]["mac"]):
            yield endpoint["name"], each


def _pfc(mac: PortMacStats | None) -> Sequence[PfcClassStats]:
    return (mac["pfc"] if mac else None) or ()


_TABLE = ResultTable[MemoryResult](
    "Switch memory and PFC",
    (
        Column("plane", "plane"),
        Column("largest\nbuffer", "largest_buffer_bytes", unit="B"),
        Column("at", "largest_buffer_switch"),
        Column("threshold\ndrops", "threshold_drops"),
        Column("headroom\ndrops", "headroom_drops"),
        Column("largest\nheadroom", "largest_headroom_bytes", unit="B"),
        Column("pauses", "pauses_sent", page={"title": "pause frames"}),
        Column("resumes", "resumes_sent", page={"title": "resume frames"}),
        Column("paused\nin all", "paused_ps", form=format_time),
        Column("longest", "longest_pause_ps", form=format_time, page={"title": "longest of a class"}),
        Column("at port", "longest_pause_port", page={"title": "at", "form": lambda port: port or "–"}),
    ),
    "[bold]switch memory and flow control[/bold]",
)
MEMORY = ResultKind(key="memory", model=MemoryResult, tables=(_TABLE,))
