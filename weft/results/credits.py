"""How flow control by credits held senders back, from the counters of switches and hosts."""

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
    from weft.engine._core import CreditLaneStats, CreditStats, PortMacStats


@dataclass(frozen=True)
class CreditResult(PlainData):
    """Credits of one plane, over the whole run: lanes are classes of ports.

    A lane is stalled while it has too little credit for a largest frame, whether or not one waits; `longest_stall_ps`
    sums all stalls of the lane of a switch's or host's port that stalled longest. `largest_buffer_bytes`: most bytes
    held in the memory of one lane of a switch.
    """

    plane: int
    """Its number."""
    updates_sent: int
    """Frames that renew credits."""
    stalls: int
    """How often a lane, which is a class of a port, had too little credit for a largest frame, whether or not one
    waited.
    """
    stalled_ps: int
    """How long, of all lanes together."""
    longest_stall_ps: int
    """Stall time of one lane, all its stalls together."""
    longest_stall_port: str
    """The port of that lane, by its switch or host."""
    largest_buffer_bytes: int
    """Most that was held in the memory of one lane of a switch."""


def credit_results(
    fabric: FabricSpec, switch_stats: SwitchesStats | None, endpoint_stats: Sequence[HostStats]
) -> list[CreditResult]:
    """Return every plane's; none where no port has credits."""
    if switch_stats is None:
        return []
    results = []
    for plane in range(fabric.planes):
        switches = {switch.name: switch_stats["switches"][switch.name] for switch in fabric.switches_of_plane(plane)}
        ports = list(_ports(plane, switches, endpoint_stats))
        if ports:
            results.append(_plane(plane, ports, switches))
    return results


def _plane(plane: int, ports: Sequence[tuple[str, CreditStats]], switches: Mapping[str, SwitchStats]) -> CreditResult:
    lanes = [(lane["stalled_ps"], name, lane["stalls"]) for name, port in ports for lane in port["lanes"]]
    longest_ps, where, _ = max(lanes, key=lambda lane: lane[0])
    held = [
        buffer["ports"][int(number)]["ingress"][lane["priority_class"]]["max_own_used_bytes"]
        for switch in switches.values()
        if (buffer := switch["buffer"])
        for number, port in switch["ports"].items()
        for lane in _lanes(_credits(port.get("mac")))
    ]
    return CreditResult(
        plane=plane,
        updates_sent=sum(port["updates_sent"] for _, port in ports),
        stalls=sum(stalls for _, _, stalls in lanes),
        stalled_ps=sum(stalled_ps for stalled_ps, _, _ in lanes),
        longest_stall_ps=longest_ps,
        longest_stall_port=where if longest_ps else "",
        largest_buffer_bytes=max(held, default=0),
    )


def _ports(
    plane: int, switches: Mapping[str, SwitchStats], endpoint_stats: Sequence[HostStats]
) -> Iterator[tuple[str, CreditStats]]:
    """Every port with credits, by its name."""
    for name, switch in switches.items():
        for number, port in switch["ports"].items():
            if credits := _credits(port.get("mac")):
                yield f"{name}:{number}", credits
    for endpoint in endpoint_stats:
        if credits := _credits(endpoint["planes"][plane]["mac"]):
            yield f"{endpoint['name']}:{plane}", credits


def _credits(mac: PortMacStats | None) -> CreditStats | None:
    """Return the credits of a port, None where no lane has any."""
    credits = mac["credits"] if mac else None
    return credits if credits and credits["lanes"] else None


def _lanes(credits: CreditStats | None) -> Sequence[CreditLaneStats]:
    return credits["lanes"] if credits else ()


_TABLE = ResultTable[CreditResult](
    "Credits",
    (
        Column("plane", "plane"),
        Column("updates", "updates_sent"),
        Column("stalls", "stalls"),
        Column("stalled\nin all", "stalled_ps", form=format_time),
        Column("longest", "longest_stall_ps", form=format_time, page={"title": "longest of a lane"}),
        Column("at port", "longest_stall_port", page={"title": "at"}),
        Column("largest\nbuffer", "largest_buffer_bytes", unit="B"),
    ),
    "[bold]credits[/bold]",
)
CREDITS = ResultKind(key="credits", model=CreditResult, tables=(_TABLE,))
