"""Links that failed or came back: what happened when, what was lost, when it was repaired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console

from weft.results.figure_tables import print_figures
from weft.topologies.describe import format_time

_SHOWN = 40


@dataclass
class Lost:
    """Packets, and their bytes on the wire."""

    packets: int = 0
    bytes: int = 0

    def add(self, other: Lost) -> None:
        """Count others, too."""
        self.packets += other.packets
        self.bytes += other.bytes


@dataclass
class LinkEventResult:
    """A link's failure or repair. Times are of the run's clock, None for what had not happened by its end.

    Attributes:
        link: the two nodes, with their ports where several links join them.
        state: "down" or "up".
        at_ps: when it was asked for, counted from when the fabric was up; None: from the start. Of what nobody asked
            for, such as a link taken down at Mininet's prompt: when the switches reported it.
        happened_ps: when it happened.
        detected_ps: when the switches at its ends knew.
        reprogrammed_ps: when the controller had the last switch's answer that its tables are written.
        switches_written, entries_written: by the controller because of it.
        in_flight: lost on the link, in both directions, the packets being sent included.
        queued: lost in the queues of the ports at both ends at that moment.
        refused: lost because these ports were given them later, while the link was down.
        last_loss_ps: when the last of all these was lost; None: nothing was.
        rebuilt_jobs: aggregation jobs that go on over other trees.
        lost_jobs: why an aggregation job could not, by its number.
        route_cycle: buffers that wait for each other in the new routes of lossless classes, hop by hop; empty for none.

    What was lost is None under the real clock, which does not know.
    """

    link: str
    state: str
    at_ps: int | None
    happened_ps: int | None = None
    detected_ps: int | None = None
    reprogrammed_ps: int | None = None
    in_flight: Lost | None = None
    queued: Lost | None = None
    refused: Lost | None = None
    last_loss_ps: int | None = None
    rebuilt_jobs: list[int] = field(default_factory=list)
    lost_jobs: dict[int, str] = field(default_factory=dict)
    route_cycle: str = ""
    switches_written: int = 0
    entries_written: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return plain data with the derived figure."""
        return {**asdict(self), "recovery_ps": self.recovery_ps}

    @property
    def recovery_ps(self) -> int | None:
        """From when it happened until all tables followed."""
        if self.happened_ps is None or self.reprogrammed_ps is None:
            return None
        return self.reprogrammed_ps - self.happened_ps


def print_link_events(console: Console, results: Sequence[LinkEventResult]) -> None:
    """Print a table, if there is anything to show."""
    columns = (
        "link", "state", "at", "detected\nafter", "tables\nafter", "lost in\nflight", "lost in\nqueues",
        "refused\nwhile down", "last loss\nafter",
    )  # fmt: skip
    rows = [
        (
            each.link,
            each.state,
            "start" if each.at_ps is None else format_time(each.at_ps),
            *(_since(each, when) for when in (each.detected_ps, each.reprogrammed_ps)),
            *(_packets(lost) for lost in (each.in_flight, each.queued, each.refused)),
            _since(each, each.last_loss_ps),
        )
        for each in results[:_SHOWN]
    ]
    more = f"; the first of {len(results):,}" if len(results) > _SHOWN else ""
    title = f"[bold]links that failed or came back[/bold] (losses in packets{more})"
    print_figures(console, title, columns, rows)
    for each in results:
        if each.route_cycle:
            console.print(
                f"[yellow]after {each.link} {each.state}, lossless classes may deadlock: {each.route_cycle}[/yellow]"
            )


def _since(result: LinkEventResult, when_ps: int | None) -> str:
    if when_ps is None or result.happened_ps is None:
        return "-"
    return format_time(when_ps - result.happened_ps)


def _packets(lost: Lost | None) -> str:
    return "-" if lost is None else str(lost.packets)
