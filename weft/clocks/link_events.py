"""Links that fail and come back while a fabric runs."""

from __future__ import annotations

import abc
from collections.abc import Sequence

from weft.controller.blocking import BlockingFabricController
from weft.controller.fabric import Repair
from weft.errors import BadInputError, EnvironmentLacksError, did_you_mean
from weft.quantities.definitions import TIME
from weft.results.link_events import LinkEventResult
from weft.scenario import KeyProblem, LinkEventSection
from weft.scenario.link_checks import link_name, require_link
from weft.scenario.options import FabricOptions
from weft.topologies import FabricLink, FabricSpec, LinkChoice


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
