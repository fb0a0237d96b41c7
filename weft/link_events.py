"""Links that fail and come back while a fabric runs: what happened when, what was lost, when it was repaired."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console

from weft.controller.blocking import BlockingFabricController
from weft.controller.fabric import Repair
from weft.errors import BadInputError, EnvironmentLacksError, did_you_mean
from weft.figure_tables import print_figures
from weft.link_checks import link_name, require_link
from weft.options import FabricOptions
from weft.quantities import TIME
from weft.scenario import KeyProblem, LinkEventSection
from weft.topologies import FabricLink, FabricSpec, LinkChoice
from weft.topologies.describe import format_time


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
        link: the two nodes.
        state: "down" or "up".
        at_ps: when it was asked for, counted from when the fabric was up; None: from the start. Of what nobody asked
            for, such as a link taken down at Mininet's prompt: when the switches told of it.
        happened_ps: when it happened.
        detected_ps: when the switches at its ends knew.
        reprogrammed_ps: when the controller had the last switch's answer that its tables are written.
        in_flight: lost on the link, in both directions, the packets being sent included.
        queued: lost in the queues of the ports at both ends at that moment.
        refused: lost because these ports were given them later, while the link was down.
        last_loss_ps: when the last of all these was lost; None: nothing was.
        rebuilt_jobs: aggregation jobs that go on over other trees.
        lost_jobs: why an aggregation job could not, by its number.

    What was lost is None where the clock does not tell (the real one).
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

    @property
    def recovery_ps(self) -> int | None:
        """From when it happened until all tables followed."""
        if self.happened_ps is None or self.reprogrammed_ps is None:
            return None
        return self.reprogrammed_ps - self.happened_ps


def check_link_events(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that the links of `options.events` are there, that the clock can bring them down, and the order.

    Raises:
        BadInputError, EnvironmentLacksError: says which event, and what would be valid.
    """
    is_up: dict[FabricLink, bool] = {}
    times: set[tuple[FabricLink, int | None]] = set()
    for index, event in _in_order(options.events):
        key = f"events[{index}]"
        for link in _links_of(fabric, options, event.link, f"{key}.link"):
            up = event.state == "up"
            if is_up.get(link, True) == up:
                raise KeyProblem(f"{key}.state", f"{link_name(link)} is {event.state} already at that time")
            if (link, event.at) in times:
                raise KeyProblem(
                    f"{key}.at", f"{link_name(link)} has another event at that time, {event.at} ps"
                )
            is_up[link] = up
            times.add((link, event.at))


def _in_order(events: Sequence[LinkEventSection]) -> list[tuple[int, LinkEventSection]]:
    """Return events and their places in order of their times, first those from the start."""
    return sorted(enumerate(events), key=lambda each: -1 if (at := each[1].at) is None else at)


def _links_of(fabric: FabricSpec, options: FabricOptions, name: str, place: str) -> list[FabricLink]:
    choice = LinkChoice.parse(name)
    if not choice.is_pattern:
        return [checked_link(fabric, options, choice.sender, choice.receiver, place)]
    require_link(fabric, name, place)
    return [
        checked_link(fabric, options, link.a.node, link.b.node, place) for link in choice.links_of(fabric)
    ]


def checked_link(fabric: FabricSpec, options: FabricOptions, a: str, b: str, place: str) -> FabricLink:
    """Return the link between two nodes. Raises as `check_link_events`."""
    neighbours: dict[str, list[str]] = {}
    for link in fabric.links:
        neighbours.setdefault(link.a.node, []).append(link.b.node)
        neighbours.setdefault(link.b.node, []).append(link.a.node)
    for node in (a, b):
        if node not in neighbours:
            raise KeyProblem(place, f"no node '{node}'; {did_you_mean(node, neighbours)}")
    if b not in neighbours[a]:
        raise KeyProblem(place, f"no link joins {a} and {b}; {a} has links to {', '.join(neighbours[a])}")
    if options.target == "bmv2":
        raise EnvironmentLacksError(f"{place}: links of BMv2 do not fail; valid: target: embedded")
    link = fabric.link_between(a, b)
    between_switches = all(end.node not in {host.name for host in fabric.hosts} for end in (link.a, link.b))
    if options.clock == "real" and options.links == "internal" and between_switches:
        raise KeyProblem(
            place,
            f"{link_name(link)} is within the engine (links: internal), where the real clock cannot bring it "
            "down; valid: links: veth, or clock: virtual",
        )
    return link


class LinkEvents(abc.ABC):
    """The events of a lab. What a clock has of its own is in its subclass.

    Events are in `results` in the order in which they were asked for.
    """

    def __init__(
        self, fabric: FabricSpec, options: FabricOptions, controller: BlockingFabricController
    ) -> None:
        self.fabric = fabric
        self.results: list[LinkEventResult] = []
        self._options = options
        self._controller = controller
        self._failure: BaseException | None = None
        self._is_up: dict[frozenset[str], bool] = {}

    def start(self) -> None:
        """Bring down what is down from the start, and have the rest of `options.events` happen from now on."""
        for _, event in _in_order(self._options.events):
            for link in _links_of(self.fabric, self._options, event.link, "events"):
                if event.at is None:
                    self._begin_without(link)
                else:
                    self.schedule(link.a.node, link.b.node, event.state, event.at, event.at)

    def schedule(self, a: str, b: str, state: str, after_ps: int, at_ps: int | None) -> LinkEventResult:
        """Have a link fail or come back after so much time of the fabric; `at_ps` is what the result says."""
        link = checked_link(self.fabric, self._options, a, b, "link")
        if state not in ("down", "up"):
            raise BadInputError(f"state '{state}' of {a}-{b}; valid: down, up")
        TIME.check(after_ps, f"{a}-{b} is to be {state} after")
        result = LinkEventResult(link_name(link), state, at_ps)
        self.results.append(result)
        self._schedule(link, result, after_ps)
        return result

    def note_hit(self, repair: Repair, result: LinkEventResult) -> None:
        """Write down which jobs a failure has hit."""
        result.rebuilt_jobs = sorted(repair.memberships)
        result.lost_jobs = dict(repair.lost)

    def _begin_without(self, link: FabricLink) -> None:
        result = LinkEventResult(link_name(link), "down", None)
        self.results.append(result)
        self._is_change(link, result)
        self._apply(link, result)
        self._tell_switches(link, result)
        self.note_hit(self._controller.link_down(link.a.node, link.b.node), result)
        result.reprogrammed_ps = self._now_ps()

    def _is_change(self, link: FabricLink, result: LinkEventResult) -> bool:
        """Note the link's state; returns whether it is another one than before."""
        ends = frozenset((link.a.node, link.b.node))
        up = result.state == "up"
        changed = self._is_up.get(ends, True) != up
        self._is_up[ends] = up
        return changed

    def check(self) -> None:
        """Raise what has gone wrong while events happened."""
        if self._failure is not None:
            raise self._failure

    def finish(self) -> list[LinkEventResult]:
        """Return the results as they are now. Raises as `check`."""
        self.check()
        return self.results

    @abc.abstractmethod
    def _now_ps(self) -> int: ...

    @abc.abstractmethod
    def _schedule(self, link: FabricLink, result: LinkEventResult, after_ps: int) -> None:
        """Have the event happen, be detected and told to the controller."""

    @abc.abstractmethod
    def _apply(self, link: FabricLink, result: LinkEventResult) -> None:
        """Let the link fail or come back, now."""

    @abc.abstractmethod
    def _tell_switches(self, link: FabricLink, result: LinkEventResult) -> None:
        """Let the switches at its ends know."""


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
        for each in results
    ]
    print_figures(console, "[bold]links that failed or came back[/bold] (losses in packets)", columns, rows)


def _since(result: LinkEventResult, when_ps: int | None) -> str:
    if when_ps is None or result.happened_ps is None:
        return "-"
    return format_time(when_ps - result.happened_ps)


def _packets(lost: Lost | None) -> str:
    return "-" if lost is None else str(lost.packets)
