"""Links that fail and come back while a fabric runs."""

from __future__ import annotations

import abc

from weft.controller.blocking import BlockingFabricController
from weft.controller.fabric import Repair
from weft.errors import BadInputError
from weft.quantities.definitions import TIME
from weft.results.link_events import LinkEventResult
from weft.scenario.link_checks import checked_link, events_in_order, links_of_event
from weft.scenario.options import FabricOptions
from weft.topologies import FabricLink, FabricSpec, LinkEnds


class LinkEvents(abc.ABC):
    """The events of a lab. Each clock has its subclass.

    Events are in `results` in the order in which they were requested.
    """

    def __init__(
        self, fabric: FabricSpec, options: FabricOptions, controller: BlockingFabricController
    ) -> None:
        self.fabric = fabric
        self.results: list[LinkEventResult] = []
        self._options = options
        self._controller = controller
        self._failure: BaseException | None = None
        self._is_up: dict[LinkEnds, bool] = {}

    def start(self) -> None:
        """Bring down the links that are down from the start, and schedule the rest of `options.events` from now on."""
        for _, event in events_in_order(self._options.events):
            for link in links_of_event(self.fabric, self._options, event.link, "events"):
                if event.at is None:
                    self._begin_without(link)
                else:
                    self._schedule_link(link, event.state, event.at, event.at)

    def schedule(self, a: str, b: str, state: str, after_ps: int, at_ps: int | None) -> LinkEventResult:
        """Schedule a link's failure or recovery after so much fabric time; `at_ps` is the time stated in the result.

        `a` and `b` are its ends, `p0l0`, or `p0l0:3` where two nodes have several links.
        """
        link = checked_link(self.fabric, self._options, a, b, "link")
        if state not in ("down", "up"):
            raise BadInputError(f"state '{state}' of {a}-{b}; valid: down, up")
        TIME.check(after_ps, f"{a}-{b} is to be {state} after")
        return self._schedule_link(link, state, after_ps, at_ps)

    def _schedule_link(
        self, link: FabricLink, state: str, after_ps: int, at_ps: int | None
    ) -> LinkEventResult:
        result = LinkEventResult(self.fabric.link_name(link), state, at_ps)
        self.results.append(result)
        self._schedule(link, result, after_ps)
        return result

    def note_hit(self, repair: Repair, result: LinkEventResult) -> None:
        """Record which jobs a failure has affected, and whether the new routes may deadlock."""
        result.rebuilt_jobs = sorted(repair.memberships)
        result.lost_jobs = dict(repair.lost)
        result.route_cycle = repair.cycle

    def _begin_without(self, link: FabricLink) -> None:
        result = LinkEventResult(self.fabric.link_name(link), "down", None)
        self.results.append(result)
        self._is_change(link, result)
        self._apply(link, result)
        self._notify_switches(link, result)
        self.note_hit(self._controller.link_down(link), result)
        result.reprogrammed_ps = self._now_ps()

    def _is_change(self, link: FabricLink, result: LinkEventResult) -> bool:
        """Record the link's state; return whether it has changed."""
        up = result.state == "up"
        changed = self._is_up.get(link.ends, True) != up
        self._is_up[link.ends] = up
        return changed

    def check(self) -> None:
        """Raise the errors that occurred during events."""
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
        """Carry out the event, its detection and its report to the controller."""

    @abc.abstractmethod
    def _apply(self, link: FabricLink, result: LinkEventResult) -> None:
        """Let the link fail or come back, now."""

    @abc.abstractmethod
    def _notify_switches(self, link: FabricLink, result: LinkEventResult) -> None:
        """Notify the switches at its ends."""
