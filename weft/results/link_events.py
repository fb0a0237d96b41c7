"""Links that failed or came back: what happened when, what was lost, when it was repaired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from rich.console import Console

from weft.quantities.readable import format_time
from weft.results.figure_tables import print_figures

_SHOWN = 40


@dataclass
class Lost:
    """Packets, and their bytes on the wire."""

    packets: int = 0
    """How many."""
    bytes: int = 0
    """On the wire."""

    def add(self, other: Lost) -> None:
        """Count others, too."""
        self.packets += other.packets
        self.bytes += other.bytes


@dataclass
class LinkEventResult:
    """A link's failure or repair. Times are of the run's clock, None for what had not happened by its end.

    What was lost is None under the real clock, which does not know.
    """

    derived: ClassVar[Mapping[str, str]] = {"recovery_ps": "recovery_ps"}

    link: str
    """The two nodes, with their ports where several links join them."""
    state: str
    """`down` or `up`."""
    at_ps: int | None
    """When it was asked for, counted from when the fabric was up; null: from the start. Of what nobody asked for, such
    as a link taken down at Mininet's prompt: when the switches reported it.
    """
    happened_ps: int | None = None
    """When it happened."""
    detected_ps: int | None = None
    """When the switches at its ends knew."""
    reprogrammed_ps: int | None = None
    """When the controller had the last switch's answer that its tables are written."""
    resumed_ps: int | None = None
    """When reductions in the network went on, over other trees or without; null: none had to."""
    repeated_messages: int = 0
    """Of these reductions, which workers had sent before, and sent again then."""
    in_flight: Lost | None = None
    """Lost on the link, in both directions, the packets being sent included."""
    queued: Lost | None = None
    """Lost in the queues of the ports at both ends at that moment."""
    refused: Lost | None = None
    """Lost because these ports were given them later, while the link was down."""
    last_loss_ps: int | None = None
    """When the last of all these was lost; null: nothing was."""
    first_recovery_ps: int | None = None
    """When hosts had the first acknowledgement of a packet that they had sent again, from this failure until the next;
    null: there was none. Losses of other causes count, too.
    """
    last_recovery_ps: int | None = None
    """The same of the last one."""
    rebuilt_jobs: list[int] = field(default_factory=list)
    """Aggregation jobs that go on over other trees."""
    lost_jobs: dict[int, str] = field(default_factory=dict)
    """Why an aggregation job could not, by its number."""
    route_cycle: str = ""
    """Buffers that wait for each other in the new routes of lossless classes, hop by hop; empty for none."""
    switches_written: int = 0
    """By the controller because of it."""
    entries_written: int = 0
    """By the controller because of it."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain data with the derived figure."""
        return {**asdict(self), **{key: getattr(self, name) for key, name in self.derived.items()}}

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
        if each.resumed_ps is not None:
            console.print(
                f"after {each.link} {each.state}, reductions in the network went on "
                f"{_since(each, each.resumed_ps)} later; workers sent {each.repeated_messages:,} messages again"
            )
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
