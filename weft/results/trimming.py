"""Packets that switches trimmed instead of dropping them, from the counters of their ports."""

from __future__ import annotations

from dataclasses import dataclass

from weft.quantities.plain_data import PlainData
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.switch.daemon.stats import SwitchesStats
from weft.topologies import FabricSpec


@dataclass(frozen=True)
class TrimmingResult(PlainData):
    """Trimmed packets of one plane, over the whole run."""

    plane: int
    """Its number."""
    trimmed_packets: int
    """Packets that found no room in a queue and were trimmed instead of dropped."""
    trimmed_bytes: int
    """Bytes cut off them."""
    trim_drops: int
    """Trimmed packets that found no room either; `drops` counts them, too."""
    most_trimmed_packets: int
    """Packets trimmed at one port, the one with most."""
    most_trimmed_port: str
    """That port, by its switch; the first of several."""


def trimming_results(fabric: FabricSpec, switch_stats: SwitchesStats | None) -> list[TrimmingResult]:
    """Return the result of every plane with trimmed packets."""
    results = []
    for plane in range(fabric.planes if switch_stats is not None else 0):
        assert switch_stats is not None
        ports = [
            (f"{switch.name}:{number}", port["transmit"])
            for switch in fabric.switches_of_plane(plane)
            for number, port in switch_stats["switches"][switch.name]["ports"].items()
        ]
        name, most = max(ports, key=lambda port: port[1]["trimmed"]["packets"])
        if most["trimmed"]["packets"] == 0:
            continue
        results.append(
            TrimmingResult(
                plane=plane,
                trimmed_packets=sum(port["trimmed"]["packets"] for _, port in ports),
                trimmed_bytes=sum(port["trimmed"]["bytes"] for _, port in ports),
                trim_drops=sum(port["trim_dropped"]["packets"] for _, port in ports),
                most_trimmed_packets=most["trimmed"]["packets"],
                most_trimmed_port=name,
            )
        )
    return results


_TABLE = ResultTable[TrimmingResult](
    "Trimming",
    (
        Column("plane", "plane"),
        Column("packets\ntrimmed", "trimmed_packets", sweep={}),
        Column("cut off", "trimmed_bytes", unit="B"),
        Column("trim\ndrops", "trim_drops"),
        Column("most", "most_trimmed_packets", page={"title": "most of a port"}),
        Column("at", "most_trimmed_port"),
    ),
    "[bold]packet trimming[/bold]",
)
TRIMMING = ResultKind(key="trimming", model=TrimmingResult, tables=(_TABLE,))
