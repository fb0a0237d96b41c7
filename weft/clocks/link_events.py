"""Events of a running fabric: links fail and come back, NICs pause for ever, operators drain and restore."""

from __future__ import annotations

import abc
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from weft.controller.blocking import BlockingFabricController
from weft.controller.counters import Count, PortCounters
from weft.controller.elements import Element, link_element
from weft.controller.event_log import ControllerEvent
from weft.controller.fabric_watch import ConfirmSlow, FabricWatch
from weft.controller.failures import Failures
from weft.controller.link_readings import HostCounters, LinkReadings
from weft.controller.noise.evidence import NoisyPart
from weft.controller.operations import Operations
from weft.controller.reachability import connected_parts
from weft.controller.repair import Repair
from weft.errors import BadInputError
from weft.quantities.definitions import TIME
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.results.link_events import LinkEventResult
from weft.results.management import ManagementOutage
from weft.results.nic_storms import NicStormResult
from weft.results.unfinished_events import ScheduledEvent, UnfinishedEvent, unfinished
from weft.scenario.events import EventSection
from weft.scenario.link_checks import changed_parts, checked_link, events_in_order, links_of_event
from weft.scenario.options import FabricOptions
from weft.topologies import Endpoint, FabricLink, FabricSpec, LinkChoice, LinkEnds
from weft.traffic.header_sizes import largest_frame_bytes
from weft.traffic.host_stats import PortTraffic
from weft.traffic.parted_hosts import PartedHosts

if TYPE_CHECKING:
    from weft.controller.noise.watch import NoiseWatch, PortReader

Operation = Callable[[], Coroutine[Any, Any, object]]
"""Begins what an operator wants done."""
_LEAST_WAIT_PS = 10 * PS_PER_US
_WAITS_PER_DETECTION = 16


class LinkEvents(abc.ABC):
    """The events of a lab. Each clock has its subclass.

    Events of links are in `results` in the order in which they were requested; what the controller did about them, and
    for an operator, is in `operations.log`.
    """

    def __init__(
        self,
        fabric: FabricSpec,
        options: FabricOptions,
        controller: BlockingFabricController,
        operations: Operations,
    ) -> None:
        self.fabric = fabric
        self.results: list[LinkEventResult] = []
        self.storms: list[NicStormResult] = []
        self.operations = operations
        self._options = options
        self._controller = controller
        self.noise: NoiseWatch | None = None
        """Watch for noisy parts; None unless the options have `health`."""
        self._failure: BaseException | None = None
        self._is_up: dict[LinkEnds, bool] = {}
        self._unrepaired: dict[int, LinkEventResult] = {}  # by identity, as the same may happen twice
        self._scheduled: list[ScheduledEvent] = []

    def start(self) -> None:
        """Do what is to be so from the start, and schedule the rest of `options.events`: the fabric is up then."""
        events = events_in_order(self._options.events)
        self._begin([event for event in events if event.at is None])
        self.operations.up_ps = self._now_ps()
        self._begin([event for event in events if event.at is not None])
        if self.operations.settings.limits.any:
            for watch in self._watches():
                self._controller.call(self.operations.begin(watch.run()))
        if self._options.health is not None:
            self.noise = self._noise_watch()
            self._controller.call(self.operations.begin(self.noise.run()))

    def _noise_watch(self) -> NoiseWatch:
        """Return what looks for noisy parts."""
        from weft.controller.noise.watch import NoiseWatch  # it costs nothing where it is not used
        from weft.scenario.health import health_settings

        settings, control, packets = health_settings(self._options), self._options.control, self._segment_packets
        assert settings is not None
        readings = LinkReadings(self.operations, self.fabric.links, self._read_hosts, self._transit_ps())
        return NoiseWatch(
            self.operations,
            settings,
            readings,
            self._port_reader(),
            frame_bytes=packets * largest_frame_bytes(self._options.ip_version, self._options.mtu_bytes),
            at_once=packets,
            notice_ps=control.detection + control.latency // 2,
        )

    def _port_reader(self) -> PortReader:
        """Return what reads the queues of switches' ports."""
        raise NotImplementedError("refused by check_health")

    def noisy_parts(self) -> list[NoisyPart]:
        """Return the noisy parts found so far."""
        return [] if self.noise is None else list(self.noise.found)

    def _watches(self) -> list[FabricWatch]:
        """Return what watches the fabric's links."""
        return [self._watch(self.fabric.links, self.operations.settings.interval_ps)]

    def _watch(self, links: Sequence[FabricLink], interval_ps: int) -> FabricWatch:
        control = self._options.control
        return FabricWatch(
            self.operations,
            links,
            interval_ps,
            self._read_hosts,
            self._transit_ps(),
            self._segment_packets,
            notice_ps=control.detection + control.latency // 2,
            confirm_slow=self._confirms_slow(),
        )

    def _confirms_slow(self) -> ConfirmSlow | None:
        """Return what measures ports that look slow; None where nothing can."""
        return None

    def _begin(self, events: Iterable[EventSection]) -> None:
        for event in events:
            if event.is_operation:
                for element in self._elements(event):
                    self._begin_operation(event, element)
                continue
            if event.is_storm:
                self._begin_storm(event)
                continue
            for link in links_of_event(self.fabric, self._options, event, "events"):
                for name, directions in changed_parts(self.fabric, event, link):
                    for state, at in event.transitions():
                        if state == "slow":
                            assert event.rate is not None
                            self._begin_slow(name, directions, event.rate, at)
                        elif event.is_one_way:
                            result = LinkEventResult(name, state, at)
                            self.results.append(result)
                            self._schedule_one_way(*directions[0], result)
                        else:
                            self._begin_change(link, state, at)

    def schedule(self, a: str, b: str, state: str, after_ps: int, at_ps: int | None) -> LinkEventResult:
        """Schedule a link's failure or recovery after so much fabric time; `at_ps` is the time stated in the result.

        `a` and `b` are its ends, `p0l0`, or `p0l0:3` where two nodes have several links.
        """
        link = checked_link(self.fabric, self._options, a, b, "link")
        if state not in ("down", "up"):
            raise BadInputError(f"state '{state}' of {a}-{b}; valid: down, up")
        TIME.check(after_ps, f"{a}-{b} is to be {state} after")
        return self._schedule_link(link, state, after_ps, at_ps)

    def _elements(self, event: EventSection) -> list[Element]:
        if event.link is None:
            return [event.element(self.fabric)]
        return [link_element(self.fabric, link) for link in LinkChoice.parse(event.link).links_of(self.fabric)]

    def _begin_operation(self, event: EventSection, element: Element) -> None:
        """Carry out an operation now, or schedule it."""
        operations: dict[str, Callable[[Element], Coroutine[Any, Any, object]]] = {
            "cordoned": self.operations.cordon,
            "drained": self.operations.drain,
            "restored": self.operations.restore,
        }
        do = operations[event.state]
        if event.at is None:
            self._controller.call(do(element))
        else:
            self._schedule_named(f"{element.name} {event.state}", lambda: do(element), event.at)

    def _schedule_named(self, name: str, operation: Operation, at_ps: int, joins: bool = False) -> None:
        """Have the controller begin an operation, and follow whether it has; see ScheduledEvent."""
        event = ScheduledEvent(name, at_ps, joins)
        self._scheduled.append(event)

        async def followed() -> None:
            event.has_begun = True
            await operation()
            event.has_ended = True

        self._schedule_operation(followed, at_ps)

    def _begin_slow(
        self, name: str, directions: Sequence[tuple[Endpoint, Endpoint]], rate_bps: int, at: int | None
    ) -> None:
        event = ScheduledEvent(f"{name} slow", at or 0)
        self._scheduled.append(event)
        self._schedule_rate(directions, rate_bps, event)

    def _begin_storm(self, event: EventSection) -> None:
        assert event.host is not None
        classes = sorted(set(event.classes or self._options.pfc.classes))
        storm = NicStormResult(event.host, classes, event.at, event.until)
        self.storms.append(storm)
        scheduled = ScheduledEvent(f"{event.host} {event.state}", event.at or 0)
        self._scheduled.append(scheduled)
        self._schedule_storm(storm, scheduled)

    def _begin_change(self, link: FabricLink, state: str, at: int | None) -> None:
        if at is None:
            self._begin_without(link)
        else:
            self._schedule_link(link, state, at, at)

    def _schedule_link(self, link: FabricLink, state: str, after_ps: int, at_ps: int | None) -> LinkEventResult:
        result = LinkEventResult(self.fabric.link_name(link), state, at_ps)
        self.results.append(result)
        self._schedule(link, result, after_ps)
        return result

    def note_repair(self, repair: Repair, result: LinkEventResult) -> None:
        """Record what the controller did about an event, which jobs it hit, and whether new routes may deadlock."""
        result.rebuilt_jobs = sorted(repair.memberships)
        result.lost_jobs = dict(repair.lost)
        result.route_cycle = repair.cycle
        result.switches_written = len(repair.written.switches)
        result.entries_written = repair.written.entries
        result.reprogrammed_ps = self._now_ps()
        self._unrepaired.pop(id(result), None)

    def wait_for_repairs(self) -> None:
        """Wait until the controller has done what it does about links that have changed. Raises as `check`."""
        self._controller.call(self._repaired())
        self.check()

    async def _repaired(self) -> None:
        wait_ps = max(_LEAST_WAIT_PS, self._options.control.detection // _WAITS_PER_DETECTION)
        while self._unrepaired and self._failure is None:
            await self.operations.clock.sleep_ps(wait_ps)

    def note_resumed(self, repeated_messages: int) -> None:
        """Record that reductions go on, with the failures since the last time that they did."""
        for result in self.results:
            if (result.rebuilt_jobs or result.lost_jobs) and result.resumed_ps is None:
                result.resumed_ps = self._now_ps()
                result.repeated_messages = repeated_messages

    def _begin_without(self, link: FabricLink) -> None:
        result = LinkEventResult(self.fabric.link_name(link), "down", None)
        self.results.append(result)
        self._is_change(link, result)
        self._apply(link, result)
        self._notify_switches(link, result)
        # What is down from the start has not failed: it costs no penalty.
        self.note_repair(self._controller.link_down(link), result)
        self.operations.follow_link(link)

    def _is_change(self, link: FabricLink, result: LinkEventResult) -> bool:
        """Record the link's state; return whether it has changed, so that `note_repair` is to follow."""
        up = result.state == "up"
        changed = self._is_up.get(link.ends, True) != up
        self._is_up[link.ends] = up
        if changed:
            self._unrepaired[id(result)] = result
        return changed

    def check(self) -> None:
        """Raise the errors that occurred during events."""
        failure = self._failure or self.operations.failure
        if failure is not None:
            raise failure

    def results_now(self) -> list[LinkEventResult]:
        """Return the results, brought up to date. Raises as `check`."""
        self.check()
        return self.results

    def unfinished(self) -> list[UnfinishedEvent]:
        """Return what was scheduled and has not happened, or not ended."""
        of_links = (
            ScheduledEvent(f"{each.link} {each.state}", each.at_ps)
            for each in self.results
            if each.at_ps is not None and each.happened_ps is None
        )
        return unfinished((*of_links, *self._scheduled))

    def endless_storms(self) -> dict[str, list[int]]:
        """Return the classes that NICs pause without end, by host."""
        return {each.host: each.classes for each in self.storms if each.began_ps is not None and each.until_ps is None}

    def parted(self) -> PartedHosts | None:
        """Return which hosts links keep apart; None while nothing does, or something is to happen that may end it."""
        fabric = self._controller.fabric  # in the present configuration of circuits
        down = frozenset(ends for ends, is_up in list(self._is_up.items()) if not is_up)
        if not (down or fabric.circuits) or self._may_join():
            return None
        parts: dict[int, dict[int, int]] = {}
        for nic, part in connected_parts(fabric, Failures(down)).items():
            parts.setdefault(nic.port, {})[fabric.host(nic.node).index] = part
        names = [fabric.link_name(link) for link in fabric.links if link.ends in down]
        return PartedHosts(parts, tuple(names))

    def _may_join(self) -> bool:
        """Return whether a link is to come up, or circuits are to change."""
        return any(each.state == "up" and each.happened_ps is None for each in self.results) or any(
            each.joins and not each.has_ended for each in self._scheduled
        )

    def controller_events(self) -> list[ControllerEvent]:
        """Return what the controller saw and did, as far as it is kept."""
        return list(self.operations.log)

    def management_outages(self) -> list[ManagementOutage]:
        """Return the outages of the management network; none under the real clock."""
        return []

    @abc.abstractmethod
    async def _read_hosts(self) -> HostCounters:
        """Return what hosts' NICs have counted."""

    def _transit_ps(self) -> int:
        """Return for how long, beyond its link's delay, a packet may have been counted by its sender alone.

        What goes before a segment is counted when that begins, up to a segment itself. (`DirectionWatch` knows that the
        last packet, or segment, may take any time.)
        """
        packets = self._segment_packets
        if packets == 1:
            return self._options.switching.latency
        slowest_bps = min(link.link.rate_bps for link in self.fabric.links)
        frame_bytes = largest_frame_bytes(self._options.ip_version, self._options.mtu_bytes)
        return self._options.switching.latency + 2 * packets * frame_bytes * 8 * PS_PER_S // slowest_bps

    @property
    def _segment_packets(self) -> int:
        return self._options.fidelity.segment_packets(self._options.mtu_bytes)

    @abc.abstractmethod
    def _now_ps(self) -> int: ...

    @abc.abstractmethod
    def _schedule(self, link: FabricLink, result: LinkEventResult, after_ps: int) -> None:
        """Carry out the event, its detection and its report to the controller."""

    @abc.abstractmethod
    def _schedule_operation(self, operation: Operation, after_ps: int) -> None:
        """Have the controller begin an operation."""

    @abc.abstractmethod
    def _schedule_rate(
        self, directions: Sequence[tuple[Endpoint, Endpoint]], rate_bps: int, event: ScheduledEvent
    ) -> None:
        """Have the senders of a link's directions send at another rate, and note in the event that they do."""

    @abc.abstractmethod
    def _schedule_storm(self, storm: NicStormResult, event: ScheduledEvent) -> None:
        """Have a host's NIC begin to pause, and stop if it does, and note when it has."""

    @abc.abstractmethod
    def _schedule_one_way(self, sender: Endpoint, receiver: Endpoint, result: LinkEventResult) -> None:
        """Have one direction of a link lose all packets, or again none because of this, without notice to anyone."""

    @abc.abstractmethod
    def _apply(self, link: FabricLink, result: LinkEventResult) -> None:
        """Let the link fail or come back, now."""

    @abc.abstractmethod
    def _notify_switches(self, link: FabricLink, result: LinkEventResult) -> None:
        """Notify the switches at its ends."""


def counters_of_host(ports: Iterable[PortTraffic]) -> list[PortCounters]:
    """Return the counters of each port; bytes of what was received are not counted."""
    return [
        PortCounters(received=Count(port["received_packets"]), sent=Count(port["sent_packets"], port["sent_bytes"]))
        for port in ports
    ]
