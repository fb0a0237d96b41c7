"""What the links of a run did to packets, from the counters of switches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from weft.results.figure_tables import print_figures
from weft.switch.daemon.stats import SwitchesStats
from weft.topologies import FabricSpec

if TYPE_CHECKING:
    from weft.engine._core import LinkStats

_COUNTED = ("lost", "corrupted", "duplicated", "delayed")
_MOST_SHOWN = 16


@dataclass(frozen=True)
class LinkFaultsResult:
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
        for name, stats in _links(fabric, switch_stats)
    )
    return [
        each for each in results if each.dropped_packets or each.duplicated_packets or each.delayed_packets
    ]


def _links(fabric: FabricSpec, switch_stats: SwitchesStats) -> Iterator[tuple[str, LinkStats]]:
    """Counters of both directions of every link; those of a host's link are all the switch's."""
    for switch in fabric.switches:
        ports = switch_stats["switches"][switch.name]["ports"]
        for port in switch.ports:
            if str(port.number) not in ports:
                continue  # dark, under the real clock
            stats = ports[str(port.number)]
            here, peer = switch.name, port.peer.node
            if len(fabric.links_between(here, peer)) > 1:
                here, peer = f"{here}:{port.number}", str(port.peer)
            if "uplink_link" in stats:
                yield f"{peer}->{here}", stats["uplink_link"]
            yield f"{here}->{peer}", stats["link"]


def print_link_faults(console: Console, results: Sequence[LinkFaultsResult]) -> None:
    """Print a table of the links that dropped most, if there is anything to show."""
    worst = sorted(results, key=lambda each: -each.dropped_packets)[:_MOST_SHOWN]
    rows = [(each.link, *(str(getattr(each, f"{what}_packets")) for what in _COUNTED)) for each in worst]
    more = f" ({len(worst)} of {len(results)} links)" if len(worst) < len(results) else ""
    title = f"[bold]packets hit by faults{more}[/bold]"
    print_figures(console, title, ("link", *_COUNTED), rows, names=["link"])
