"""Links that failed or came back: what happened when, what was lost, when it was repaired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from rich.console import Console

from weft.quantities.plain_data import PlainData
from weft.quantities.readable import format_time
from weft.quantities.units import PS_PER_US
from weft.results.columns import Column, Look, ResultTable
from weft.results.kinds import ResultKind
from weft.results.report_parts import MOST_ROWS, ReportPart, shown_of
from weft.topologies import FabricSpec

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
class LinkEventResult(PlainData):
    """A link's failure or repair. Times are of the run's clock, None for what had not happened by its end.

    What was lost is None under the real clock, which does not know.
    """

    derived: ClassVar[Mapping[str, str]] = {"recovery_ps": "recovery_ps"}

    link: str
    """The two nodes, with their ports where several links join them; `SENDER->RECEIVER` for one direction, which loses
    packets unnoticed: `link_faults` counts them."""
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
    """Messages of these reductions that workers had sent before and sent again."""
    in_flight: Lost | None = None
    """Lost on the link, in all directions that failed, the packets being sent included."""
    queued: Lost | None = None
    """Lost in the queues of the ports at both ends at that moment."""
    refused: Lost | None = None
    """Lost because these ports were given them later, while the link was down."""
    last_loss_ps: int | None = None
    """When the last of all these was lost; null: nothing was."""
    last_data_loss_ps: int | None = None
    """When the last of these was lost that carried data, not only an answer or a probe of hosts; what was lost at the
    moment of the failure counts as data."""
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

    @property
    def repaired_ps(self) -> int | None:
        """From a link's failure until hosts had acknowledgements of all that they sent again; None: nothing was."""
        if self.state != "down" or self.happened_ps is None or self.last_recovery_ps is None:
            return None
        return self.last_recovery_ps - self.happened_ps

    @property
    def recovery_ps(self) -> int | None:
        """From when it happened until all tables followed."""
        if self.happened_ps is None or self.reprogrammed_ps is None:
            return None
        return self.reprogrammed_ps - self.happened_ps


def _since(title: str, value: str, terminal: Look | None = None) -> Column[LinkEventResult]:
    def after(event: LinkEventResult) -> int | None:
        when_ps: int | None = getattr(event, value)
        return None if when_ps is None or event.happened_ps is None else when_ps - event.happened_ps

    return Column(title, after, form=format_time, missing="-", terminal=terminal, page={"missing": "–"})


def _lost(title: str, value: str) -> Column[LinkEventResult]:
    return Column(title, f"{value}.packets", missing="-", page={"missing": "–"})


_LAST_LOSS = _since("last loss\nafter", "last_loss_ps", {})
_TABLE = ResultTable[LinkEventResult](
    "Links that failed or came back",
    (
        Column("link", "link"),
        Column("state", "state", page={"title": "became"}),
        Column("at", "at_ps", form=format_time, missing="start", page={"title": "asked for at"}),
        Column("happened at", "happened_ps", "µs", PS_PER_US, digits=3, missing="not in this run", terminal=None),
        _since("detected\nafter", "detected_ps", {}),
        _since("tables\nafter", "reprogrammed_ps", {}),
        replace(_LAST_LOSS, terminal=None),
        _since("first sent again arrived after", "first_recovery_ps"),
        _since("last sent again arrived after", "last_recovery_ps"),
        _lost("lost in\nflight", "in_flight"),
        _lost("lost in\nqueues", "queued"),
        _lost("refused\nwhile down", "refused"),
        replace(_LAST_LOSS, page=None),
        Column("switches written", "switches_written", terminal=None),
        Column("entries written", "entries_written", terminal=None),
        Column("trees rebuilt", lambda each: len(each.rebuilt_jobs), terminal=None),
        Column("jobs lost", lambda each: len(each.lost_jobs), terminal=None),
        _since("reductions went on after", "resumed_ps"),
        Column("messages sent again", "repeated_messages", terminal=None),
    ),
    note="losses in packets; times after the event itself.",
)


def _show(console: Console, results: Sequence[LinkEventResult]) -> None:
    more = f"; the first of {len(results):,}" if len(results) > _SHOWN else ""
    heading = f"[bold]links that failed or came back[/bold] (losses in packets{more})"
    _TABLE.print(console, results[:_SHOWN], heading)
    for each in results:
        if each.resumed_ps is not None:
            later = "-" if each.happened_ps is None else format_time(each.resumed_ps - each.happened_ps)
            console.print(
                f"after {each.link} {each.state}, reductions in the network went on {later} later; workers sent "
                f"{each.repeated_messages:,} messages again"
            )
        if each.route_cycle:
            console.print(
                f"[yellow]after {each.link} {each.state}, lossless classes may deadlock: {each.route_cycle}[/yellow]"
            )


def _report(results: Sequence[LinkEventResult], _: FabricSpec) -> Iterator[ReportPart]:
    rows = results[:MOST_ROWS]
    yield _TABLE.part(rows, f"{_TABLE.note} {shown_of(len(rows), len(results), _TABLE.which)}".strip())


LINK_EVENTS = ResultKind(key="link_events", model=LinkEventResult, tables=(_TABLE,), show=_show, report=_report)
