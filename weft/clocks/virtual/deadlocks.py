"""Notices a lossless fabric in which packets wait for each other for ever, and names the buffers.

A queue is held if its port lacks credit or is paused, and the buffer at the far end, which holds it, can only be
emptied through queues that are held themselves. A set of such queues never moves again, whatever else happens; in it
there is a cycle, because each waits for another one. A queue for a NIC that pauses without end waits for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from weft.clocks.virtual.processes import ALONE, Processes
from weft.engine import CREDIT_BLOCK_BYTES, Partitions
from weft.errors import DeadlockError
from weft.quantities.units import PS_PER_S
from weft.switch.daemon.config import CreditsConfig
from weft.switch.daemon.wired_switches import WiredSwitch, WiredSwitches
from weft.topologies import Endpoint, FabricSpec

if TYPE_CHECKING:
    from weft.engine._core import PortMacStats

_LOOKS_WITHOUT_A_STANDSTILL = 16
"""After so many, the queues are looked at though packets still arrive: the rest of the fabric may go on."""


@dataclass(frozen=True, order=True)
class HeldQueue:
    """A class of a port's queue, and so the buffer of that lane at the link's far end, which is full."""

    switch: str
    port: int
    priority_class: int

    def __str__(self) -> str:
        return f"{self.switch}:{self.port} (class {self.priority_class})"


WaitsFor = Mapping[HeldQueue, frozenset[HeldQueue]]
"""By queue that its far end holds: the queues, held or not, in which the packets of that buffer wait."""


def stuck_queues(waits_for: WaitsFor) -> WaitsFor:
    """Return the queues that can never move again: those that wait only for each other."""
    stuck = {queue: others for queue, others in waits_for.items() if others}
    while True:
        kept = {queue: others for queue, others in stuck.items() if others <= stuck.keys()}
        if len(kept) == len(stuck):
            return stuck
        stuck = kept


def cycle_of(stuck: WaitsFor) -> tuple[HeldQueue, ...]:
    """Return queues each of which waits for the next, and the last for the first; none if nothing is stuck."""
    if not stuck:
        return ()
    path = [min(stuck)]
    while True:
        following = min(stuck[path[-1]])
        if following in path:
            return tuple(path[path.index(following) :])
        path.append(following)


class DeadlockWatch:
    """Looks at a fabric from time to time, while somebody waits for its hosts.

    `owners` are the numbers of the `processes` that serve the switches, by name.
    """

    def __init__(
        self,
        fabric: FabricSpec,
        switches: WiredSwitches,
        partitions: Partitions,
        interval_ps: int,
        processes: Processes = ALONE,
        owners: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.interval_s = interval_ps / PS_PER_S
        self._processes = processes
        self._owners = owners
        self._partitions = partitions
        self._switches = {wired.config.name: wired for wired in switches.switches.values()}
        ends = {
            Endpoint(switch.name, port.number): port.peer for switch in fabric.switches for port in switch.fabric_ports
        }
        self._far_ends: dict[Endpoint, Endpoint] = ends
        self._fabric = fabric
        self.endless_storms: Callable[[], Mapping[str, Collection[int]]] = dict
        """Returns the classes that NICs pause without end, by host."""
        self._delivered = -1
        self._looks = 0
        self._stuck: WaitsFor = {}
        self._found: tuple[str, str] | None = None

    def look(self) -> None:
        """Raise DeadlockError if what is stuck now was so at the last look."""
        self.check()
        delivered = self._partitions.packet_conservation()["left"].get("delivered", {"packets": 0})["packets"]
        stands_still = delivered == self._delivered
        self._delivered = delivered
        self._looks += 1
        if not stands_still and self._looks % _LOOKS_WITHOUT_A_STANDSTILL:
            return
        # What is on its way may still fill a buffer further, but cannot empty one.
        # Where packets arrive, some wait for a broken NIC and others may not.
        before, self._stuck = self._stuck, stuck_queues(self._waits_for(with_storms=stands_still))
        cycle = cycle_of({queue: others for queue, others in self._stuck.items() if queue in before})
        if not cycle:
            return
        names = " → ".join(str(each) for each in (*cycle, cycle[0]))
        far_end = self._fabric.switch(cycle[0].switch).port(cycle[0].port).peer.node
        problem = (
            f"the fabric is deadlocked: full buffers wait for each other in a cycle, {names}"
            if far_end in self._switches
            else f"the fabric stands still: the NIC of {far_end} pauses {cycle[0]} without end, and all others wait "
            "for that (pfc.watchdog finds such ports)"
        )
        self._found = (problem, names)
        self.check()

    def check(self) -> None:
        """Raise DeadlockError if a deadlock has been found."""
        if self._found is not None:
            raise DeadlockError(*self._found)

    def _waits_for(self, *, with_storms: bool) -> WaitsFor:
        seen = {name: self._seen_at(wired) for name, wired in self._switches.items()}
        found = {
            queue: _waiting_at(seen, self._far_ends[Endpoint(queue.switch, queue.port)], queue.priority_class)
            for queue in self._held(seen)
        }
        if with_storms:
            found |= {queue: frozenset({queue}) for queue in self._held_by_nics(seen)}
        return found

    def _seen_at(self, wired: WiredSwitch) -> _Seen:
        name = wired.config.name
        return self._processes.of(self._owners.get(name, 0), f"queues of {name}", lambda: _Seen.of(wired))

    def _held(self, seen: Mapping[str, _Seen]) -> Iterator[HeldQueue]:
        """Queues with packets that may not be sent, because the buffer at the far end, a switch's, is full."""
        for end, far_end in self._far_ends.items():
            at_end, peer = seen[end.node], self._switches[far_end.node]
            mac = at_end.macs.get(end.port)
            if mac is None:
                continue
            credits = peer.ports[far_end.port].config.credits
            for each in at_end.waiting[end.port]:
                if _is_held(mac, seen[far_end.node].ingress, far_end.port, each["priority_class"], credits):
                    yield HeldQueue(end.node, end.port, each["priority_class"])

    def _held_by_nics(self, seen: Mapping[str, _Seen]) -> Iterator[HeldQueue]:
        """Queues with packets that a broken NIC pauses without end, and for which no watchdog does anything."""
        for host, classes in self.endless_storms().items():
            for nic in self._fabric.host(host).nics:
                pfc = self._switches[nic.switch].ports[nic.switch_port].config.pfc
                if pfc is None or (pfc.watchdog is not None and pfc.watchdog.action != "alert"):
                    continue
                for each in seen[nic.switch].waiting.get(nic.switch_port, ()):
                    if each["priority_class"] in classes:
                        yield HeldQueue(nic.switch, nic.switch_port, each["priority_class"])


@dataclass(frozen=True)
class _Seen:
    """State of a switch at one look.

    Attributes:
        waiting: waiting packets by port; only ports that have any.
        macs: the statistics of these ports' MACs.
        ingress: shared buffer in use by port; None without a shared buffer.

    """

    waiting: dict[int, list[Any]]
    macs: dict[int, PortMacStats]
    ingress: dict[int, list[Any]] | None

    @classmethod
    def of(cls, wired: WiredSwitch) -> _Seen:
        """Look at a switch."""
        busy = {number: port for number, port in wired.ports.items() if port.transmit.queue_depth_bytes}
        return cls(
            {number: port.transmit.waiting_by_arrival() for number, port in busy.items()},
            {number: port.mac.stats() for number, port in busy.items() if port.mac is not None},
            None
            if wired.buffer is None
            else {number: port["ingress"] for number, port in wired.buffer.stats()["ports"].items()},
        )


def _waiting_at(seen: Mapping[str, _Seen], arrived_by: Endpoint, lane: int) -> frozenset[HeldQueue]:
    """Return the queues in which packets wait that came by a port in a lane; none if some are not in a queue."""
    here = seen[arrived_by.node]
    assert here.ingress is not None
    found, waiting_bytes = set(), 0
    for number, waiting in here.waiting.items():
        for each in waiting:
            if (each["ingress_port"], each["lane"]) == (arrived_by.port, lane):
                found.add(HeldQueue(arrived_by.node, number, each["priority_class"]))
                waiting_bytes += each["waiting"]["bytes"]
    held_bytes = here.ingress[arrived_by.port][lane]["held_bytes"]
    return frozenset(found) if waiting_bytes >= held_bytes else frozenset()


def _is_held(
    mac: PortMacStats,
    ingress: dict[int, list[Any]] | None,
    peer_port: int,
    priority_class: int,
    credits: CreditsConfig | None,
) -> bool:
    """Whether a port may not send a class, and the far end's buffer is why."""
    if ingress is None:
        return False
    group = ingress[peer_port][priority_class]
    if mac["pfc"] is not None:
        return mac["pfc"][priority_class]["is_paused"] and bool(group["is_paused"])
    if mac["credits"] is None or credits is None:
        return False
    lanes = {lane["priority_class"]: lane for lane in mac["credits"]["lanes"]}
    if priority_class not in lanes or not lanes[priority_class]["is_stalled"]:
        return False
    free_bytes = credits.buffer_bytes // CREDIT_BLOCK_BYTES * CREDIT_BLOCK_BYTES - group["own_used_bytes"]
    return bool(free_bytes < -(-credits.largest_frame_bytes // CREDIT_BLOCK_BYTES) * CREDIT_BLOCK_BYTES)
