"""Changes the configuration of a running fabric's circuit switches and updates the routes.

With `drain`, routes first avoid the circuits to be removed, unless destinations would become unreachable, and the
change waits until those circuits carry nothing. Without `drain`, packets on them are lost. Then the circuits are
removed, the ports stay dark for as long as the switches need, and the new circuits are up; routes use them as soon as
the tables are written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.operations import Operations
from weft.controller.repair import Repair, Written
from weft.controller.routing import plane_routings
from weft.quantities.plain_data import PlainData
from weft.topologies import FabricLink, FabricSpec

Outcome = Literal["changed", "nothing to do", "still busy"]


class CircuitPorts(Protocol):
    """The ports at the ends of circuits, under a clock that can rejoin them."""

    def take_down(self, links: Iterable[FabricLink]) -> tuple[int, int]:
        """Remove links now; return the packets lost on them and the packets lost in their ports' queues."""

    def refused(self, links: Iterable[FabricLink]) -> int:
        """Return how many packets the ports of links have dropped so far because they were down."""

    def bring_up(self, links: Iterable[FabricLink]) -> None:
        """Add links between ports now."""


@dataclass(frozen=True)
class CircuitChange(PlainData):
    """A change of the circuits' configuration. Times count from when the fabric was up; null if it did not happen."""

    derived: ClassVar[Mapping[str, str]] = {"recovery_ps": "recovery_ps"}

    configuration: str
    """Requested configuration."""
    drain: bool
    """Whether the circuits were to be drained first."""
    outcome: Outcome
    """`changed`; `nothing to do`: the configuration was in force already; `still busy`: packets came until
    `drain_timeout`, so nothing was changed.
    """
    began_ps: int
    """When the controller began."""
    rerouted: bool = False
    """Whether routes avoided the circuits before their removal; false without `drain`, or if destinations would have
    become unreachable.
    """
    removed: int = 0
    """Circuits removed."""
    added: int = 0
    """Circuits added."""
    dark_ps: int | None = None
    """When the old circuits were removed."""
    joined_ps: int | None = None
    """When the new circuits were up."""
    programmed_ps: int | None = None
    """When the last switch confirmed its table entries for the new circuits."""
    in_flight_packets: int = 0
    """Packets lost on the circuits at their removal."""
    queued_packets: int = 0
    """Packets lost in the queues of the circuits' ports at their removal."""
    refused_packets: int = 0
    """Packets lost because they were sent to these ports while dark."""
    rebuilt_jobs: tuple[int, ...] = ()
    """Aggregation jobs that continue on other trees."""
    lost_jobs: dict[int, str] = field(default_factory=dict)
    """Why an aggregation job could not continue, by job number."""
    route_cycle: str = ""
    """Cycle of buffers that wait for each other in the new routes of lossless classes, hop by hop; empty if none."""
    switches_written: int = 0
    """Switches that the controller wrote to for this change."""
    entries_written: int = 0
    """Entries that the controller wrote for this change."""

    @property
    def recovery_ps(self) -> int | None:
        """Time from the removal of the old circuits until all tables were updated."""
        if self.dark_ps is None or self.programmed_ps is None:
            return None
        return self.programmed_ps - self.dark_ps

    @property
    def ok(self) -> bool:
        """Whether the requested configuration is in force."""
        return self.outcome != "still busy"

    @property
    def lost_packets(self) -> int:
        """All packets lost by the change."""
        return self.in_flight_packets + self.queued_packets + self.refused_packets


class CircuitControl:
    """Changes configurations, one at a time; `changes` lists the completed ones."""

    def __init__(self, operations: Operations, ports: CircuitPorts) -> None:
        self.changes: list[CircuitChange] = []
        self._operations = operations
        self._ports = ports
        self._lock = asyncio.Lock()

    async def change(self, configuration: str, drain: bool, dark_time_ps: int) -> CircuitChange:
        """Change the configuration.

        Raises:
            TopologyError: the name is unknown; the message lists the valid names.

        """
        async with self._lock:
            change = await self._change(configuration, drain, dark_time_ps)
        self.changes.append(change)
        return change

    async def _change(self, name: str, drain: bool, dark_time_ps: int) -> CircuitChange:
        controller, clock = self._operations.controller, self._operations.clock
        began_ps = clock.now_ps()
        since_up_ps = self._operations.since_up_ps
        before, after = controller.fabric, controller.fabric.in_configuration(name)
        removed, added = _links_of_one_alone(before, after), _links_of_one_alone(after, before)
        if not removed and not added:
            return CircuitChange(name, drain, "nothing to do", since_up_ps(began_ps))
        self._operations.note("circuits", name, f"{len(removed)} go, {len(added)} come")
        written, rerouted = Written(), False
        if drain:
            rerouted = keeps_destinations(before, controller.settings.routing, controller.routed_around, removed)
            if rerouted:
                written += await self._operations.avoid_circuits(_failures_of(removed))
            if packets := await self._packets_until_quiet(removed, began_ps):
                written += await self._operations.avoid_circuits(NO_FAILURES)
                self._operations.note("still busy", name, f"{packets:,} packets in the last interval", began_ps)
                return CircuitChange(name, drain, "still busy", since_up_ps(began_ps), rerouted)
        dark_ps = clock.now_ps()
        in_flight, queued = self._ports.take_down(removed)
        refused_before = self._ports.refused(removed)
        # Concurrently, because circuit switches do not wait for packet switches' tables.
        down = asyncio.ensure_future(controller.links_down(removed))
        await clock.sleep_ps(dark_time_ps)
        refused = self._ports.refused(removed) - refused_before
        self._ports.bring_up(added)
        joined_ps = clock.now_ps()
        repairs = [await down]
        self._operations.forget_circuits()
        repairs.append(await controller.rewire(after, removed))
        programmed_ps = clock.now_ps()
        written = sum((each.written for each in repairs), written)
        self._operations.note_written(dark_ps, f"circuits are {name}", written)
        return CircuitChange(
            configuration=name,
            drain=drain,
            outcome="changed",
            began_ps=since_up_ps(began_ps),
            rerouted=rerouted,
            removed=len(removed),
            added=len(added),
            dark_ps=since_up_ps(dark_ps),
            joined_ps=since_up_ps(joined_ps),
            programmed_ps=since_up_ps(programmed_ps),
            in_flight_packets=in_flight,
            queued_packets=queued,
            refused_packets=refused,
            rebuilt_jobs=_rebuilt(repairs),
            lost_jobs={job: why for each in repairs for job, why in each.lost.items()},
            route_cycle=repairs[-1].cycle,
            switches_written=len(written.switches),
            entries_written=written.entries,
        )

    async def _packets_until_quiet(self, links: Iterable[FabricLink], began_ps: int) -> int:
        """Wait until links carry nothing for an interval; return the packets of the last interval, 0 if quiet."""
        settings, clock = self._operations.settings, self._operations.clock
        ends = [end for link in links for end in (link.a, link.b)]
        before = await self._operations.sent(ends)
        while ends:
            await clock.sleep_ps(settings.interval_ps)
            now = await self._operations.sent(ends)
            if now == before or clock.now_ps() >= began_ps + settings.drain_timeout_ps:
                return now - before
            before = now
        return 0


def _links_of_one_alone(one: FabricSpec, other: FabricSpec) -> list[FabricLink]:
    """Return the links that `one` has and `other` does not."""
    there = {link.ends for link in other.links}
    return [link for link in one.links if link.ends not in there]


def _failures_of(links: Iterable[FabricLink]) -> Failures:
    return Failures(links=frozenset(link.ends for link in links))


def keeps_destinations(fabric: FabricSpec, routing: str, around: Failures, removed: Iterable[FabricLink]) -> bool:
    """Return whether routes that also avoid the removed links still reach all current destinations."""
    now, then = plane_routings(routing, fabric), plane_routings(routing, fabric)
    without = around | _failures_of(removed)
    for plane_now, plane_then in zip(now, then, strict=True):
        plane_now.plan(around)
        plane_then.plan(without)
        found = plane_then.destinations()
        for switch, ports in plane_now.destinations().items():
            if _union(ports) & ~_union(found.get(switch, {})):
                return False
    return True


def _union(ports: Mapping[int, int]) -> int:
    reached = 0
    for destinations in ports.values():
        reached |= destinations
    return reached


def _rebuilt(repairs: Iterable[Repair]) -> tuple[int, ...]:
    return tuple(sorted({job for each in repairs for job in each.memberships}))
