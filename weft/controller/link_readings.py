"""Reads the counters at both ends of a fabric's links so that they can be compared (see
`weft.controller.link_watch`)."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from weft.controller.counters import PORT_RECEIVED, PORT_SENT, PortCounters
from weft.controller.link_watch import Reading
from weft.controller.operations import Operations
from weft.quantities.counter_names import ECN_MARKED
from weft.topologies import Endpoint, FabricLink

_NOTHING = PortCounters()
HostCounters = Mapping[Endpoint, PortCounters]
"""Counters of hosts' NICs, by port; hosts that cannot be read are missing."""
ReadHosts = Callable[[], Awaitable[HostCounters]]


@dataclass(frozen=True)
class _Counted:
    """Counters of switches and hosts at one time."""

    switches: Mapping[str, Mapping[int, PortCounters]]
    hosts: HostCounters

    def at(self, end: Endpoint, host_names: frozenset[str]) -> PortCounters | None:
        """Return a port's counters; None if its switch is down or its host cannot be read."""
        if end.node in host_names:
            return self.hosts.get(end)
        return None if end.node not in self.switches else self.switches[end.node].get(end.port, _NOTHING)


@dataclass(frozen=True)
class Direction:
    """One end of a link, which sends to the other."""

    link: FabricLink
    sender: Endpoint
    receiver: Endpoint

    @property
    def name(self) -> str:
        """The nodes, for people."""
        return f"{self.sender.node} → {self.receiver.node}"


@dataclass(frozen=True)
class Read:
    """A direction's reading; None if the link is down, or an end cannot be read.

    `has_failed`: the link has failed since the last reading, which explains losses. `overtaking`: packets that the
    sender sent after its first reading and that the receiver may have counted, as far as the link's delay allows.
    """

    reading: Reading | None
    has_failed: bool = False
    overtaking: int = 0


class LinkReadings:
    """Reads every sender, then every receiver, then every sender again.

    Args:
        operations: of the fabric.
        links: links to read.
        read_hosts: returns the counters of hosts' NICs.
        transit_ps: longest time in which a sent packet may be neither on the link nor counted by its receiver.

    """

    def __init__(
        self, operations: Operations, links: Sequence[FabricLink], read_hosts: ReadHosts, transit_ps: int
    ) -> None:
        self._operations = operations
        self._read_hosts = read_hosts
        self._wait_ps = transit_ps + max((link.link.delay_ps for link in links), default=0)
        self._host_names = frozenset(host.name for host in operations.controller.fabric.hosts)
        self.directions = tuple(
            Direction(link, sender, receiver)
            for link in links
            for sender, receiver in ((link.a, link.b), (link.b, link.a))
        )
        self._failures = {link.ends: operations.failures_of(link.ends) for link in links}
        self._ports: dict[str, list[int]] = {}
        for direction in self.directions:
            if direction.sender.node not in self._host_names:
                self._ports.setdefault(direction.sender.node, []).append(direction.sender.port)

    async def read(self) -> list[Read]:
        """Return a reading of each of `directions`.

        Reading distant switches takes time, so hosts are read before or after them, whichever is safe.
        """
        read_ports, clock = self._operations.controller.read_ports, self._operations.clock
        began_ps = clock.now_ps()
        early = _Counted(await read_ports(self._ports, [PORT_SENT]), await self._read_hosts())
        await clock.sleep_ps(self._wait_ps)
        hosts = await self._read_hosts()
        switches = await read_ports(self._ports, [PORT_RECEIVED, PORT_SENT, ECN_MARKED])
        received, late = _Counted(switches, hosts), _Counted(switches, await self._read_hosts())
        took_ps = clock.now_ps() - began_ps
        found = [self._reading(each, early, received, late, took_ps) for each in self.directions]
        self._failures = {ends: self._operations.failures_of(ends) for ends in self._failures}
        return found

    def _reading(self, direction: Direction, early: _Counted, received: _Counted, late: _Counted, took_ps: int) -> Read:
        ends = direction.link.ends
        before = early.at(direction.sender, self._host_names)
        after = late.at(direction.sender, self._host_names)
        there = received.at(direction.receiver, self._host_names)
        is_down = ends in self._operations.controller.failures.links
        if before is None or after is None or there is None or is_down:
            return Read(None)
        reading = Reading(
            time_ps=self._operations.clock.now_ps(),
            certain_packets=before.sent.packets,
            received_packets=there.received.packets,
            sent_packets=after.sent.packets,
            sent_bytes=after.sent.bytes,
            marked_packets=after.ecn_marked.packets,
        )
        on_the_way = min(1.0, direction.link.link.delay_ps / max(1, took_ps))
        overtaking = math.ceil((1.0 - on_the_way) * (after.sent.packets - before.sent.packets))
        return Read(reading, self._failures[ends] != self._operations.failures_of(ends), overtaking)
