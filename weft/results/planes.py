"""Figures of each plane of a run, summed over its switches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from weft.controller.counters import SwitchCounters
from weft.quantities.plain_data import PlainData
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.switch.daemon.stats import SwitchesStats
from weft.topologies import FabricSpec


@dataclass(frozen=True)
class PlaneResult(PlainData):
    """Figures of one plane, over the whole run; null where the target does not report one (BMv2)."""

    plane: int
    """Its number."""
    ecn_marked_packets: int
    """By all switches."""
    largest_queue_bytes: int | None
    """Most that was left waiting at one port."""
    largest_queue_port: str
    """Which port that was."""
    packets_aggregated: int
    """By all switches."""
    tail_drops: int | None
    """Packets for which a queue had no memory."""
    injected_losses: int | None
    """Packets lost by faults."""
    corrupted_packets: int | None = None
    """Packets dropped for a wrong bit."""


def plane_results(
    fabric: FabricSpec, counters: Mapping[str, SwitchCounters], switch_stats: SwitchesStats | None
) -> list[PlaneResult]:
    """Sum every plane's counters. Queues and link faults are the embedded switch's: BMv2 does not report them."""
    return [_plane_result(fabric, plane, counters, switch_stats) for plane in range(fabric.planes)]


def _plane_result(
    fabric: FabricSpec,
    plane: int,
    counters: Mapping[str, SwitchCounters],
    switch_stats: SwitchesStats | None,
) -> PlaneResult:
    switches = fabric.switches_of_plane(plane)
    result = PlaneResult(
        plane=plane,
        ecn_marked_packets=sum(counters[switch.name].ecn_marked_packets for switch in switches),
        packets_aggregated=sum(counters[switch.name].aggregated_packets for switch in switches),
        largest_queue_bytes=None,
        largest_queue_port="",
        tail_drops=None,
        injected_losses=None,
    )
    if switch_stats is None:
        return result
    largest, where = 0, ""
    tail_drops = losses = corrupted = 0
    for switch in switches:
        for number, port in switch_stats["switches"][switch.name]["ports"].items():
            depth_bytes = port["transmit"]["max_queue_depth_bytes"]
            if depth_bytes > largest:
                largest, where = depth_bytes, f"{switch.name}:{number}"
            for queue in (port["transmit"], port.get("uplink")):
                tail_drops += queue["tail_dropped"]["packets"] if queue else 0
            for link in (port["link"], port.get("uplink_link")):
                if link is not None:
                    losses += link["lost_packets"]
                    corrupted += link["corrupted_packets"]
    return replace(
        result,
        largest_queue_bytes=largest,
        largest_queue_port=where,
        tail_drops=tail_drops,
        injected_losses=losses,
        corrupted_packets=corrupted,
    )


def _known(title: str, value: str) -> Column[PlaneResult]:
    return Column(title, value, missing="-", page={"missing": ""})


_TABLE = ResultTable[PlaneResult](
    "Planes",
    (
        Column("plane", "plane"),
        Column("ECN\nmarks", "ecn_marked_packets", sweep={}),
        Column(
            "largest queue",
            "largest_queue_bytes",
            unit="B",
            missing="-",
            page={"missing": ""},
            sweep={"unit": "kB", "scale": 1e3, "digits": 1, "over": max},
        ),
        Column("at", "largest_queue_port"),
        Column("packets\naggregated", "packets_aggregated"),
        _known("tail\ndrops", "tail_drops"),
        _known("lost by\nfault", "injected_losses"),
        _known("corrupted", "corrupted_packets"),
    ),
    "[bold]planes[/bold]",
)
PLANES = ResultKind(key="planes", model=PlaneResult, tables=(_TABLE,))
