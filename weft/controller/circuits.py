"""Changes the configuration of a fabric's circuit switches while it runs, and has the routes follow.

With `drain`, routes first avoid the circuits that are to go, as long as no destination is lost by that, and the
change waits until they carry nothing. Without, what is on them is lost. Then they are taken away, it is dark for as
long as the switches take, and the new circuits are there, which routes use as soon as they are written.
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
    """The ports at the ends of circuits, under a clock that can join them anew."""

    def take_down(self, links: Iterable[FabricLink]) -> tuple[int, int]:
        """Take links away, now; return the packets lost on them, and those lost in their ports' queues."""

    def refused(self, links: Iterable[FabricLink]) -> int:
        """Return how many packets the ports of links have dropped so far because they were down."""

    def bring_up(self, links: Iterable[FabricLink]) -> None:
        """Join ports by links, now."""


@dataclass(frozen=True)
class CircuitChange(PlainData):
    """A change of the circuits' configuration. Times count from when the fabric was up; null: it has not happened."""

    derived: ClassVar[Mapping[str, str]] = {"recovery_ps": "recovery_ps"}

    configuration: str
    """Which one it was to be."""
    drain: bool
    """Whether circuits were emptied first."""
    outcome: Outcome
    """`changed`; `nothing to do`, because it was there already; `still busy`: packets came until `drain_timeout`, so
    nothing was changed.
    """
    began_ps: int
    """When the controller began."""
    rerouted: bool = False
    """Whether routes avoided the circuits before they went; not without `drain`, and not if destinations would have
    been lost by that.
    """
    removed: int = 0
    """Circuits that went."""
    added: int = 0
    """Circuits that came."""
    dark_ps: int | None = None
    """When the circuits went."""
    joined_ps: int | None = None
    """When the new ones were there."""
    programmed_ps: int | None = None
    """When the controller had the last switch's answer that its tables are written for the new ones."""
    in_flight_packets: int = 0
    """Lost on the circuits as they went."""
    queued_packets: int = 0
    """Lost in the queues of their ports at that moment."""
    refused_packets: int = 0
    """Lost because these ports were given them while it was dark."""
    rebuilt_jobs: tuple[int, ...] = ()
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
    def recovery_ps(self) -> int | None:
        """From when the circuits went until all tables followed."""
        if self.dark_ps is None or self.programmed_ps is None:
            return None
        return self.programmed_ps - self.dark_ps

    @property
    def ok(self) -> bool:
        """Whether there is the configuration that was asked for."""
        return self.outcome != "still busy"

    @property
    def lost_packets(self) -> int:
        """All that were lost by it."""
        return self.in_flight_packets + self.queued_packets + self.refused_packets


class CircuitControl:
    """Changes configurations, one after the other; `changes` are those that have ended."""

    def __init__(self, operations: Operations, ports: CircuitPorts) -> None:
        self.changes: list[CircuitChange] = []
        self._operations = operations
        self._ports = ports
        self._lock = asyncio.Lock()

    async def change(self, configuration: str, drain: bool, dark_time_ps: int) -> CircuitChange:
        """Change the configuration.

        Raises:
            TopologyError: there is none of that name; says which there are.

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
            rerouted = _keeps_destinations(
                before, controller.settings.routing, controller.routed_around, removed
            )
            if rerouted:
                written += await self._operations.avoid_circuits(_failures_of(removed))
            if packets := await self._packets_until_quiet(removed, began_ps):
                written += await self._operations.avoid_circuits(NO_FAILURES)
                self._operations.note(
                    "still busy", name, f"{packets:,} packets in the last interval", began_ps
                )
                return CircuitChange(name, drain, "still busy", since_up_ps(began_ps), rerouted)
        dark_ps = clock.now_ps()
        in_flight, queued = self._ports.take_down(removed)
        refused_before = self._ports.refused(removed)
        # Beside each other, because the circuit switches do not wait for the tables of others.
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
        """Wait until links carry nothing for an interval; return what they carried in the last one."""
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
    """Return the links that a fabric has in one configuration and not in the other."""
    there = {link.ends for link in other.links}
    return [link for link in one.links if link.ends not in there]


def _failures_of(links: Iterable[FabricLink]) -> Failures:
    return Failures(links=frozenset(link.ends for link in links))


def _keeps_destinations(
    fabric: FabricSpec, routing: str, around: Failures, removed: Iterable[FabricLink]
) -> bool:
    """Return whether routes reach all that they do now if they avoid links, too."""
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
