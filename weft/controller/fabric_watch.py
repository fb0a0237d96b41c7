"""Monitors a fabric's links through the counters at their ends and takes lossy and slow links out of use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from weft.controller.counters import PORT_RECEIVED, PORT_SENT, PortCounters
from weft.controller.event_log import EventKind
from weft.controller.link_watch import DirectionWatch, Loss, Reading, Slowness
from weft.controller.operations import Operations
from weft.quantities.counter_names import ECN_MARKED
from weft.topologies import Endpoint, FabricLink

_GBPS = 10**9
_NOTHING = PortCounters()
HostCounters = Mapping[Endpoint, PortCounters]
"""Counters of hosts' NICs, by port; hosts that cannot be read are missing."""


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
class _Found:
    """A link found to be lossy or slow at a time."""

    time_ps: int
    link: FabricLink
    kind: EventKind
    detail: str


class FabricWatch:
    """Reads the counters of all ports in every interval and compares both ends of each link.

    Args:
        operations: its settings define lossy and slow links, and it handles those found.
        links: links to monitor.
        interval_ps: time between readings, unless reading takes longer.
        read_hosts: returns the counters of hosts' NICs.
        transit_ps: longest time in which a sent packet may be neither on the link nor counted by its receiver.
        at_once: packets that a sender counts together (`DirectionWatch`).
        notice_ps: time until the controller knows that a link is down. Packets lost in a failure do not make a link
            lossy, so findings wait that long.

    """

    def __init__(
        self,
        operations: Operations,
        links: Sequence[FabricLink],
        interval_ps: int,
        read_hosts: Callable[[], Awaitable[HostCounters]],
        transit_ps: int,
        at_once: int = 1,
        notice_ps: int = 0,
    ) -> None:
        self._operations = operations
        self._interval_ps = interval_ps
        self._read_hosts = read_hosts
        fabric = operations.controller.fabric
        self._notice_ps = notice_ps
        self._found: list[_Found] = []
        self._wait_ps = transit_ps + max((link.link.delay_ps for link in links), default=0)
        self._host_names = frozenset(host.name for host in fabric.hosts)
        limits = operations.settings.limits
        self._directions: list[tuple[FabricLink, Endpoint, Endpoint, DirectionWatch]] = [
            (link, sender, receiver, DirectionWatch(link.link.rate_bps, limits, at_once))
            for link in links
            for sender, receiver in ((link.a, link.b), (link.b, link.a))
        ]
        self._failures = {link.ends: operations.failures_of(link.ends) for link in links}
        self._ports: dict[str, list[int]] = {}
        for _, sender, _, _ in self._directions:
            if sender.node not in self._host_names:
                self._ports.setdefault(sender.node, []).append(sender.port)

    async def run(self) -> None:
        """Monitor until cancelled."""
        clock = self._operations.clock
        while True:
            began_ps = clock.now_ps()
            await self._look()
            took_ps = clock.now_ps() - began_ps
            # Reading may take long, as under the real clock; spend at most half of the time on it.
            await clock.sleep_ps(max(self._interval_ps - took_ps, took_ps, 1))

    async def _look(self) -> None:
        """Read every sender, then every receiver, then every sender again (see `link_watch`).

        Reading distant switches takes time, so hosts are read before or after them, whichever is safe.
        """
        read_ports, clock = self._operations.controller.read_ports, self._operations.clock
        early = _Counted(await read_ports(self._ports, [PORT_SENT]), await self._read_hosts())
        await clock.sleep_ps(self._wait_ps)
        hosts = await self._read_hosts()
        switches = await read_ports(self._ports, [PORT_RECEIVED, PORT_SENT, ECN_MARKED])
        received, late = _Counted(switches, hosts), _Counted(switches, await self._read_hosts())
        await self._compare(early, received, late, clock.now_ps())

    async def _compare(self, early: _Counted, received: _Counted, late: _Counted, now_ps: int) -> None:
        down = self._operations.controller.failures.links
        for link, sender, receiver, watch in self._directions:
            before, after = early.at(sender, self._host_names), late.at(sender, self._host_names)
            there = received.at(receiver, self._host_names)
            if before is None or after is None or there is None or link.ends in down:
                self._forget(link, watch)
                continue
            if self._has_failed(link):
                self._forget(link, watch)
            reading = Reading(
                time_ps=now_ps,
                certain_packets=before.sent.packets,
                received_packets=there.received.packets,
                sent_packets=after.sent.packets,
                sent_bytes=after.sent.bytes,
                marked_packets=after.ecn_marked.packets,
            )
            for finding in watch.take(reading):
                kind, detail = _described(finding)
                self._found.append(_Found(now_ps, link, kind, f"{sender.node} → {receiver.node}: {detail}"))
        self._failures = {ends: self._operations.failures_of(ends) for ends in self._failures}

        due = [found for found in self._found if now_ps - found.time_ps >= self._notice_ps]
        self._found = [found for found in self._found if found not in due]
        for found in due:
            await self._operations.take_out_faulty(found.link, found.kind, found.detail)

    def _forget(self, link: FabricLink, watch: DirectionWatch) -> None:
        watch.restart()
        self._found = [found for found in self._found if found.link.ends != link.ends]

    def _has_failed(self, link: FabricLink) -> bool:
        """Return whether a link has failed since the last reading, which explains its losses."""
        return self._failures[link.ends] != self._operations.failures_of(link.ends)


def _described(finding: Loss | Slowness) -> tuple[EventKind, str]:
    if isinstance(finding, Loss):
        return "lossy", f"{finding.lost_packets:,} of {finding.sent_packets:,} packets lost"
    return "slow", f"{finding.measured_bps / _GBPS:.3g} of {finding.nominal_bps / _GBPS:.3g} Gb/s"
