"""Faults of links on packets, from the counters of switches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, overload

from rich.console import Console

from weft.quantities.plain_data import PlainData
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.results.report_parts import MOST_ROWS, ReportPart
from weft.switch.daemon.stats import SwitchesStats
from weft.topologies import Endpoint, FabricSpec

if TYPE_CHECKING:
    from weft.engine._core import LinkRetryStats, LinkStats

_MOST_SHOWN = 16


@dataclass(frozen=True)
class LinkFaultsResult(PlainData):
    """One direction of a link, `SENDER->RECEIVER`, on which something went wrong, over the whole run."""

    link: str
    """`SENDER->RECEIVER`."""
    lost_packets: int
    """That never arrived."""
    corrupted_packets: int
    """Dropped on arrival for a wrong bit."""
    duplicated_packets: int
    """That arrived twice."""
    delayed_packets: int
    """Overtaken by others."""

    @property
    def dropped_packets(self) -> int:
        """Return how many never reached a node, whatever the cause."""
        return self.lost_packets + self.corrupted_packets


def link_fault_results(fabric: FabricSpec, switch_stats: SwitchesStats | None) -> list[LinkFaultsResult]:
    """Return every link with faults that struck, in the fabric's order; none for BMv2, which has no faults."""
    if switch_stats is None:
        return []
    results = (
        LinkFaultsResult(
            name,
            lost_packets=stats["lost_packets"],
            corrupted_packets=stats["corrupted_packets"],
            duplicated_packets=stats["duplicated_packets"],
            delayed_packets=stats["delayed_packets"],
        )
        for name, stats in counters_of_directions(fabric, switch_stats, "link", "uplink_link")
    )
    return [each for each in results if each.dropped_packets or each.duplicated_packets or each.delayed_packets]


@overload
def counters_of_directions(
    fabric: FabricSpec, switch_stats: SwitchesStats, own: Literal["link"], uplink: Literal["uplink_link"]
) -> Iterator[tuple[str, LinkStats]]: ...


@overload
def counters_of_directions(
    fabric: FabricSpec, switch_stats: SwitchesStats, own: Literal["retry"], uplink: Literal["uplink_retry"]
) -> Iterator[tuple[str, LinkRetryStats]]: ...


def counters_of_directions(
    fabric: FabricSpec,
    switch_stats: SwitchesStats,
    own: Literal["link", "retry"],
    uplink: Literal["uplink_link", "uplink_retry"],
) -> Iterator[tuple[str, LinkStats | LinkRetryStats]]:
    """Yield the name and counters of both directions of every link that has them.

    A switch's port counts what it sends as `own`, and what its host sends as `uplink`.
    """
    for switch in fabric.switches:
        ports = switch_stats["switches"][switch.name]["ports"]
        for port in switch.ports:
            if str(port.number) not in ports:
                continue  # dark, under the real clock
            stats = ports[str(port.number)]
            here = Endpoint(switch.name, port.number)
            if uplink in stats:
                yield fabric.direction_name(port.peer, here), stats[uplink]
            if own in stats:
                yield fabric.direction_name(here, port.peer), stats[own]


_TABLE = ResultTable[LinkFaultsResult](
    "Packets hit by faults of links",
    (
        Column("link", "link", is_name=True),
        Column("lost", "lost_packets"),
        Column("corrupted", "corrupted_packets"),
        Column("duplicated", "duplicated_packets"),
        Column("delayed", "delayed_packets"),
    ),
    most=MOST_ROWS,
    which="those that dropped most",
)


def _worst_first(results: Sequence[LinkFaultsResult]) -> list[LinkFaultsResult]:
    return sorted(results, key=lambda each: -each.dropped_packets)


def _show(console: Console, results: Sequence[LinkFaultsResult]) -> None:
    worst = _worst_first(results)[:_MOST_SHOWN]
    more = f" ({len(worst)} of {len(results)} links)" if len(worst) < len(results) else ""
    _TABLE.print(console, worst, f"[bold]packets hit by faults{more}[/bold]")


def _report(results: Sequence[LinkFaultsResult], _: FabricSpec) -> Iterator[ReportPart]:
    yield _TABLE.part(_worst_first(results))


LINK_FAULTS = ResultKind(key="link_faults", model=LinkFaultsResult, tables=(_TABLE,), show=_show, report=_report)
