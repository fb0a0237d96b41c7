"""Operations of a running fabric: the controller's reactions to failures, and operators' requests.

This module receives failures and repairs of links, and damps links that flap. Links, switches, planes and hosts are
cordoned (new routes avoid them), drained (cordoned, then monitored until no packet uses them) and restored. `log`
records everything.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from weft.controller.elements import Element, host_element, link_element, transit_ends, waves
from weft.controller.errors import ControllerError
from weft.controller.event_log import ControllerEvent, EventKind, EventLog
from weft.controller.fabric import FabricController
from weft.controller.failures import Failures
from weft.controller.flap_damping import FlapDamping, FlapState
from weft.controller.job import Job
from weft.controller.link_watch import WatchLimits
from weft.controller.reachability import hosts_cut_off, parts_hosts
from weft.controller.repair import Repair, Written
from weft.quantities.units import PS_PER_MS, PS_PER_US
from weft.topologies import Endpoint, FabricLink, LinkEnds

_MOST_NAMED = 4


class OperationRefusedError(ControllerError):
    """An operation would disconnect hosts or have no effect; nothing has changed."""


@dataclass(frozen=True)
class FaultyLink:
    """A lossy or slow link that stays in use because hosts need it.

    Attributes:
        link: the link.
        kind: `lossy` or `slow`.
        detail: description of the evidence from the counters.

    """

    link: FabricLink
    kind: EventKind
    detail: str


class OperationsClock(Protocol):
    """The fabric's time, under either clock."""

    def now_ps(self) -> int:
        """Return the time in ps."""

    async def sleep_ps(self, duration_ps: int) -> None:
        """Wait for a duration in ps."""


@dataclass(frozen=True)
class OperationsSettings:
    """Settings from a scenario's `controller` section.

    Attributes:
        flap_damping: None uses a link again as soon as it is up.
        limits: thresholds for lossy and slow links.
        interval_ps: time between two readings of counters.
        drain_timeout_ps: time after which a drain ends even if packets still come.

    """

    flap_damping: FlapDamping | None = None
    limits: WatchLimits = field(default_factory=WatchLimits)
    interval_ps: int = 100 * PS_PER_US
    drain_timeout_ps: int = 100 * PS_PER_MS


@dataclass(frozen=True)
class Drained:
    """Result of a drain: not quiet if packets came in the last interval, or if the element was restored meanwhile."""

    element: str
    is_quiet: bool
    duration_ps: int
    packets: int = 0


class Operations:
    """See the module. Its coroutines run in the controller's event loop.

    `failure` is the first error of a background task. `on_losses` is called when a plane or a host is lost or restored,
    and when jobs move to other trees or may get trees again. Times in `log` count from `up_ps`, the fabric's time when
    it was up; they are 0 before.
    """

    def __init__(self, controller: FabricController, settings: OperationsSettings, clock: OperationsClock) -> None:
        self.controller = controller
        self.settings = settings
        self.clock = clock
        self.log = EventLog()
        self.failure: BaseException | None = None
        self.up_ps: int | None = None
        self._flaps: dict[LinkEnds, FlapState] = {}
        self._damped: dict[LinkEnds, FabricLink] = {}
        self._cordoned: dict[str, Element] = {}
        self._downs = Counter[LinkEnds]()
        self._faulty: dict[str, FaultyLink] = {}
        self._circuits = Failures()
        self._lost: set[int] = set()
        self._dead: set[str] = set()
        self._host_names = frozenset(host.name for host in controller.fabric.hosts)
        self._replans = 0
        self.on_losses: Callable[[], None] = lambda: None
        self.on_avoided: Callable[[Failures], None] = lambda _: None
        """Called with the links and switches that routes avoid, before they are planned; also for planes and hosts."""
        self._tasks: set[asyncio.Task[None]] = set()
        noting = weakref.WeakMethod(self._note_evicted)  # a strong reference would make a cycle

        def note_evicted(jobs: Sequence[Job]) -> None:
            note = noting()
            if note is not None:
                note(jobs)

        controller.on_evicted = note_evicted

    @property
    def planes_in_use(self) -> tuple[int, ...]:
        """Planes that hosts may use: neither cordoned nor lost or, if there are none, only not cordoned.

        A storage network is none of them; only storage traffic uses it (`FabricSpec.storage_planes`).
        """
        planes = self.planes_not_cordoned
        return tuple(plane for plane in planes if plane not in self._lost) or planes

    @property
    def planes_not_cordoned(self) -> tuple[int, ...]:
        """Planes that operators allow, including lost ones."""
        out = {element.plane for element in self._cordoned.values()}
        return tuple(plane for plane in self.controller.fabric.training_planes if plane not in out)

    @property
    def lost_planes(self) -> tuple[int, ...]:
        """Planes in which failed links disconnect hosts."""
        return tuple(sorted(self._lost))

    @property
    def hosts_out(self) -> tuple[str, ...]:
        """Hosts that are cordoned or have no link that is up; one to a storage network does not count."""
        cordoned = [element.host for element in self._cordoned.values() if element.host is not None]
        return tuple(dict.fromkeys((*cordoned, *sorted(self._dead))))

    def since_up_ps(self, time_ps: int) -> int:
        """Convert a time of the fabric's clock to time since the fabric was up; 0 for earlier times."""
        return 0 if self.up_ps is None else max(0, time_ps - self.up_ps)

    def follow_link(self, link: FabricLink) -> None:
        """Update the lost hosts and planes after a link's state has changed."""
        fabric, failures = self.controller.fabric, self.controller.failures
        plane = fabric.switch(link.b.node).plane
        hosts_changed = self._follow_host(link.a.node)
        before = set(self._lost)
        has_others = len(fabric.training_planes) > 1 or plane == fabric.storage_plane
        may_be_lost = has_others and link.ends in failures.links and plane not in before
        if may_be_lost and parts_hosts(fabric, plane, failures, self._dead):
            self._lost.add(plane)
            self.note("plane lost", f"plane {plane}")
        # A plane counts as restored only after its tables are written.
        for each in sorted(before) if self._replans == 0 else ():
            if not parts_hosts(fabric, each, failures, self._dead):
                self._lost.remove(each)
                self.note("plane found", f"plane {each}")
        if hosts_changed or self._lost != before:
            self.on_losses()

    def _follow_host(self, name: str) -> bool:
        """Return whether a node is a host that just lost its last link or got one back, and record it."""
        fabric, down = self.controller.fabric, self.controller.failures.ports
        if name not in self._host_names:
            return False
        is_dead = all(Endpoint(name, nic) in down for nic in range(fabric.training_nics))
        if is_dead == (name in self._dead):
            return False
        self._dead ^= {name}
        self.note("host lost" if is_dead else "host found", name)
        return True

    @property
    def lost_hosts(self) -> tuple[str, ...]:
        """Hosts that have no link that is up; one to a storage network does not count."""
        return tuple(sorted(self._dead))

    def note_swap(self, host: str, spare: str, rank: int) -> None:
        """Log that a spare has taken the rank of a host."""
        self.note("swapped", host, f"{spare} has rank {rank}")

    @property
    def cordoned(self) -> tuple[str, ...]:
        """Names of the cordoned elements."""
        return tuple(self._cordoned)

    @property
    def faulty_in_use(self) -> tuple[FaultyLink, ...]:
        """Lossy or slow links that stay in use because hosts need them."""
        return tuple(self._faulty.copy().values())

    def failures_of(self, ends: LinkEnds) -> int:
        """Return how often a link has failed to the controller's knowledge."""
        return self._downs[ends]

    @property
    def damped(self) -> tuple[str, ...]:
        """Names of links that are up but kept out of the routes because they flap."""
        return tuple(self.controller.fabric.link_name(link) for link in self._damped.values())

    async def link_down(self, link: FabricLink) -> Repair:
        """Route around a failed link and add to its penalty."""
        now_ps = self.clock.now_ps()
        name = self.controller.fabric.link_name(link)
        self.note("link down", name)
        self._downs[link.ends] += 1
        self._faulty.pop(name, None)  # it may come up with another cable
        if (damping := self.settings.flap_damping) is not None:
            state = self._flaps.get(link.ends, FlapState()).after_failure(now_ps, damping)
            self._flaps[link.ends] = state
        repair = await self._replanned(self.controller.link_down(link))
        self.note_written(now_ps, f"{name} is down", repair.written)
        self.follow_link(link)
        if repair.memberships or repair.lost:
            self.on_losses()
        return repair

    async def link_up(self, link: FabricLink) -> Repair:
        """Use a link again after a repair, unless it is damped."""
        now_ps = self.clock.now_ps()
        name = self.controller.fabric.link_name(link)
        self.note("link up", name)
        self._damp(link, now_ps)
        repair = await self._replanned(self.controller.link_up(link))
        self.note_written(now_ps, f"{name} is up", repair.written)
        self.follow_link(link)
        if self.controller.has_lost_jobs:
            self.on_losses()
        return repair

    def _note_evicted(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            detail = f"idle for a lease; others needed its {job.slot_count} slots"
            self.note("evicted", f"job {job.job_id}", detail)
        if jobs:
            self.on_losses()

    async def _replanned(self, work: Coroutine[Any, Any, Repair]) -> Repair:
        self._replans += 1
        try:
            return await work
        finally:
            self._replans -= 1

    def _damp(self, link: FabricLink, now_ps: int) -> None:
        """Keep a repaired link out of the routes if it flaps and no host needs it."""
        damping, state = self.settings.flap_damping, self._flaps.get(link.ends)
        if damping is None or state is None:
            return
        if not state.at(now_ps, damping).is_suppressed or link.ends in self._damped:
            return
        name = self.controller.fabric.link_name(link)
        penalty = f"penalty {state.penalty_at(now_ps, damping):.0f}"
        with_it = (self.controller.failures | self._avoided()).without_link(link)
        lost = hosts_cut_off(self.controller.fabric, with_it, with_it.with_link(link))
        if lost:
            self.note("kept in use", name, f"{penalty}, but without it {_listed(lost)} would be cut off")
            return
        self._damped[link.ends] = link
        self._avoid()
        self.note("damped", name, penalty)
        self.run(self._reuse(link))

    async def _reuse(self, link: FabricLink) -> None:
        """Wait until a damped link's penalty has fallen, then use it again."""
        damping = self.settings.flap_damping
        assert damping is not None
        while link.ends in self._damped:
            now_ps = self.clock.now_ps()
            reuse_ps = self._flaps[link.ends].reuse_ps(damping) or now_ps
            if reuse_ps <= now_ps:
                break
            await self.clock.sleep_ps(reuse_ps - now_ps)
        if self._damped.pop(link.ends, None) is None:
            return  # an operator has restored it
        name = self.controller.fabric.link_name(link)
        self.note("reused", name)
        self.note_written(now_ps, f"{name} is damped no more", await self._write_avoided())

    async def cordon(self, element: Element) -> Written:
        """Take an element out of use: routes avoid it, and hosts do not use it for new work.

        Raises:
            OperationRefusedError: it is out of use already, or hosts would be disconnected.

        """
        return await self._take_out(element, "cordoned", hold=())

    async def drain(self, element: Element, timeout_ps: int | None = None) -> Drained:
        """Cordon an element, farthest switches first, and wait until its ports send nothing for an interval.

        Ends without hosts keep their routes until then, for packets in flight. Raises as `cordon`.
        """
        began_ps = self.clock.now_ps()
        fabric = self.controller.fabric
        await self._take_out(element, "draining", hold=transit_ends(fabric, element))
        packets = await self._packets_until_quiet(element, began_ps + (timeout_ps or self.settings.drain_timeout_ps))
        now_ps = self.clock.now_ps()
        if element.name not in self._cordoned:
            self.note("still busy", element.name, "restored before it was drained", began_ps)
            return Drained(element.name, False, now_ps - began_ps, packets)
        if packets == 0:
            written = await self.controller.apply()
            self.note_written(now_ps, f"{element.name} is drained", written)
        drained = Drained(element.name, packets == 0, self.clock.now_ps() - began_ps, packets)
        detail = "" if drained.is_quiet else f"{packets:,} packets in the last {self.settings.interval_ps} ps"
        kind: EventKind = "drained" if drained.is_quiet else "still busy"
        self.note(kind, element.name, detail, began_ps)
        return drained

    async def restore(self, element: Element) -> Written:
        """Put an element (or a damped link) into use again, and forget that a link in use is lossy or slow.

        OperationRefusedError: it is in use, not damped and not known to be faulty.
        """
        ends = None if element.link is None else element.link.ends
        was_faulty = self._faulty.pop(element.name, None) is not None
        if not (element.name in self._cordoned or ends in self._damped or was_faulty):
            raise OperationRefusedError(
                f"{element.name} is in use (out of use: {', '.join(self._cordoned) or 'nothing'})"
            )
        now_ps = self.clock.now_ps()
        order = waves(self.controller.fabric, element, self.controller.failures)
        self._cordoned.pop(element.name, None)
        if ends is not None:
            # The operator has fixed it, so its history no longer counts.
            self._damped.pop(ends, None)
            self._flaps.pop(ends, None)
        written = await self._write_avoided(order[::-1])
        self.note("restored", element.name)
        self.note_written(now_ps, f"{element.name} is restored", written)
        return written

    async def take_out_faulty(self, link: FabricLink, kind: EventKind, detail: str) -> None:
        """Take a lossy or slow link out of use.

        The link is cordoned, or the host at its end if a spare can take the host's rank. If hosts need the link, it
        stays in use, which is logged once.
        """
        element = link_element(self.controller.fabric, link)
        known = self._faulty.get(element.name)
        is_out = element.name in self._cordoned or link.a.node in self.hosts_out
        if is_out or link.ends in self.controller.failures.links or (known is not None and known.kind == kind):
            return
        self.note(kind, element.name, detail)
        lost = self._cut_off(element)
        if not lost:
            self._faulty.pop(element.name, None)
            await self.cordon(element)
            return
        why = f"without it {_listed(lost)} would be cut off"
        if link.a.node in self._host_names and self.controller.fabric.spares:
            host = host_element(self.controller.fabric, link.a.node)
            if not self._cut_off(host):
                self._faulty.pop(element.name, None)
                await self.cordon(host)
                return
            why += ", and no spare host is left"
        self._faulty[element.name] = FaultyLink(link, kind, detail)
        self.note("kept in use", element.name, why)

    async def _take_out(self, element: Element, kind: EventKind, hold: Iterable[str]) -> Written:
        if element.name in self._cordoned:
            raise OperationRefusedError(f"{element.name} is out of use already")
        lost = self._cut_off(element)
        if lost and element.host is not None:
            raise OperationRefusedError(f"no spare host is left that could take the place of {element.name}")
        if lost:
            raise OperationRefusedError(f"without {element.name} {_listed(lost)} would be cut off")
        now_ps = self.clock.now_ps()
        order = waves(self.controller.fabric, element, self.controller.failures)
        self._cordoned[element.name] = element
        self._faulty.pop(element.name, None)
        self.note(kind, element.name)
        written = await self._write_avoided(order, hold)
        self.note_written(now_ps, f"{element.name} is {kind}", written)
        return written

    def _cut_off(self, element: Element) -> list[str]:
        """Return the hosts that cannot reach others without an element."""
        fabric, before = self.controller.fabric, self.controller.failures | self._avoided()
        if element.plane is not None:
            used = [plane for plane in self.planes_in_use if plane != element.plane]
            is_left = used and element.plane != fabric.storage_plane
            return [] if is_left else [host.name for host in fabric.hosts]
        if element.host is not None:
            return [] if self._has_spare_for(element.host) else [element.host]
        if element.switch is not None and fabric.switch(element.switch).host_ports:
            return sorted(port.peer.node for port in fabric.switch(element.switch).host_ports)
        return hosts_cut_off(fabric, before, element.added_to(before))

    def _has_spare_for(self, host: str) -> bool:
        """Return whether, without `host`, enough hosts are left for all ranks."""
        fabric = self.controller.fabric
        left = [each.name for each in fabric.hosts if each.name not in (host, *self.hosts_out)]
        return len(left) >= fabric.rank_count

    async def avoid_circuits(self, circuits: Failures) -> Written:
        """Route around circuits about to be removed, as well as everything out of use."""
        self._circuits = circuits
        return await self._write_avoided()

    def forget_circuits(self) -> None:
        """Stop avoiding circuits, because they have been removed."""
        self._circuits = Failures()
        self._avoid()

    def _avoided(self) -> Failures:
        avoided = self._circuits
        for element in self._cordoned.values():
            avoided = element.added_to(avoided)
        for link in self._damped.values():
            avoided = avoided.with_link(link)
        return avoided

    def _avoid(self) -> None:
        self.controller.avoided = self._avoided()
        self.on_avoided(self.controller.avoided)

    async def _write_avoided(self, order: Iterable[set[str]] = (), hold: Iterable[str] = ()) -> Written:
        self._avoid()
        return await self.controller.apply(order, hold)

    async def _packets_until_quiet(self, element: Element, until_ps: int) -> int:
        """Wait until an element's ports send nothing for an interval; return the packets of the last interval."""
        before = await self.sent(element.ports)
        while True:
            await self.clock.sleep_ps(self.settings.interval_ps)
            now = await self.sent(element.ports)
            restored = element.name not in self._cordoned
            if now == before or restored or self.clock.now_ps() >= until_ps:
                return now - before
            before = now

    async def sent(self, ports: Iterable[Endpoint]) -> int:
        """Return how many packets ports have sent."""
        by_switch: dict[str, list[int]] = {}
        for end in ports:
            by_switch.setdefault(end.node, []).append(end.port)
        counted = await self.controller.read_ports(by_switch)
        return sum(port.sent.packets for ports in counted.values() for port in ports.values())

    def note(self, kind: EventKind, element: str = "", detail: str = "", began_ps: int | None = None) -> None:
        """Log an event that happens now, or one that began at `began_ps` and ends now."""
        now_ps = self.clock.now_ps()
        duration_ps = None if began_ps is None else now_ps - began_ps
        time_ps = self.since_up_ps(now_ps if began_ps is None else began_ps)
        self.log.add(ControllerEvent(time_ps, kind, element, detail, duration_ps))

    def note_written(self, began_ps: int, why: str, written: Written) -> None:
        """Log the entries written, if there are any."""
        if not written.entries:
            return
        duration_ps = self.clock.now_ps() - began_ps
        event = ControllerEvent(
            self.since_up_ps(began_ps),
            "programmed",
            "",
            why,
            duration_ps,
            written.entries,
            written.switches,
        )
        self.log.add(event)

    async def begin(self, work: Coroutine[Any, Any, object]) -> None:
        """Start a background task, for callers outside the event loop."""
        self.run(work)

    def run(self, work: Coroutine[Any, Any, object]) -> None:
        """Start a background task."""

        async def noted() -> None:
            try:
                await work
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                self.failure = self.failure or error

        task = asyncio.get_running_loop().create_task(noted())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _listed(hosts: list[str]) -> str:
    more = len(hosts) - _MOST_NAMED
    return ", ".join(hosts[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
