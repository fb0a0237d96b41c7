"""Storms of pauses that the switches' PFC watchdogs have found, from the counters of switches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from weft.quantities.plain_data import PlainData
from weft.quantities.readable import counted, format_time
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.results.report_parts import MOST_ROWS
from weft.switch.daemon.stats import SwitchesStats
from weft.topologies import FabricSpec

if TYPE_CHECKING:
    from weft.engine._core import PfcWatchdogStats


@dataclass(frozen=True)
class PfcWatchdogResult(PlainData):
    """A class of a switch's port in which the PFC watchdog has found a storm, over the whole run."""

    port: str
    """SWITCH:PORT."""
    priority_class: int
    """Which class."""
    storms_detected: int
    """How often it was paused for the detection time while a packet waited."""
    storms_restored: int
    """How often it was then not paused for the restoration time."""
    tx_ok_packets: int
    """Sent while it was stormed."""
    tx_dropped_packets: int
    """Dropped from its queue, or for it, while it was stormed."""
    rx_ok_packets: int
    """Arrived by the port while it was stormed, and went on."""
    rx_dropped_packets: int
    """Arrived by the port while it was stormed, and were dropped."""
    is_stormed: bool
    """Whether it was stormed at the end."""


@dataclass(frozen=True)
class PfcStormResult(PlainData):
    """A storm that a PFC watchdog found, or its end."""

    time_ps: int
    """When."""
    port: str
    """SWITCH:PORT."""
    priority_class: int
    """Which class."""
    event: Literal["detected", "restored"]
    """A storm began, or was over."""


def pfc_watchdog_results(fabric: FabricSpec, switch_stats: SwitchesStats | None) -> list[PfcWatchdogResult]:
    """Return the classes in which a watchdog has found a storm, in the fabric's order."""
    return [
        PfcWatchdogResult(port=name, **each)
        for name, stats in _watchdogs(fabric, switch_stats)
        for each in stats["classes"]
        if each["storms_detected"] or each["is_stormed"]
    ]


def pfc_storm_results(fabric: FabricSpec, switch_stats: SwitchesStats | None) -> list[PfcStormResult]:
    """Return what watchdogs found, in order of time."""
    found = [
        PfcStormResult(each["time_ps"], name, each["priority_class"], "restored" if each["is_restored"] else "detected")
        for name, stats in _watchdogs(fabric, switch_stats)
        for each in stats["events"]
    ]
    return sorted(found, key=lambda each: each.time_ps)


def _watchdogs(fabric: FabricSpec, switch_stats: SwitchesStats | None) -> Iterator[tuple[str, PfcWatchdogStats]]:
    for switch in fabric.switches if switch_stats is not None else ():
        assert switch_stats is not None
        for number, port in switch_stats["switches"][switch.name]["ports"].items():
            mac = port.get("mac")
            if mac is not None and mac["watchdog"] is not None:
                yield f"{switch.name}:{number}", mac["watchdog"]


def watchdog_warnings(found: Sequence[PfcWatchdogResult]) -> Iterator[str]:
    """Yield a sentence if there was a storm."""
    if not found:
        return
    storms = sum(each.storms_detected for each in found)
    dropped = sum(each.tx_dropped_packets + each.rx_dropped_packets for each in found)
    where = f"{found[0].port} in class {found[0].priority_class}"
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    yield (
        f"the PFC watchdog found {counted(storms, 'storm')}, at {where}{more}, and dropped {counted(dropped, 'packet')}"
    )


_WATCHDOG = ResultTable[PfcWatchdogResult](
    "PFC watchdog",
    (
        Column("port", "port", is_name=True),
        Column("class", "priority_class"),
        Column("storms\ndetected", "storms_detected"),
        Column("restored", "storms_restored"),
        Column("tx ok", "tx_ok_packets"),
        Column("tx\ndropped", "tx_dropped_packets"),
        Column("rx ok", "rx_ok_packets"),
        Column("rx\ndropped", "rx_dropped_packets"),
        Column("at the end", lambda each: "stormed" if each.is_stormed else "operational"),
    ),
    "[bold]PFC watchdog[/bold] (packets during storms)",
)
_STORMS = ResultTable[PfcStormResult](
    "What PFC watchdogs found",
    (
        Column("at", "time_ps", form=format_time),
        Column("port", "port", is_name=True),
        Column("class", "priority_class"),
        Column("storm", "event"),
    ),
    "[bold]what PFC watchdogs found[/bold]",
    most=MOST_ROWS,
)
PFC_WATCHDOG = ResultKind(key="pfc_watchdog", model=PfcWatchdogResult, tables=(_WATCHDOG,))
PFC_STORMS = ResultKind(key="pfc_storms", model=PfcStormResult, tables=(_STORMS,))
