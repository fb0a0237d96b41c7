"""Watches the links between a fabric's switches by their counters, and has lossy and slow ones cordoned."""

from __future__ import annotations

from collections.abc import Mapping

from weft.controller.counters import PortCounters
from weft.controller.event_log import EventKind
from weft.controller.link_watch import DirectionWatch, Loss, Reading, Slowness
from weft.controller.operations import Operations
from weft.topologies import Endpoint, FabricLink

_GBPS = 10**9
_NOTHING = PortCounters()
_Counters = Mapping[str, Mapping[int, PortCounters]]


class FabricWatch:
    """Reads the counters of all ports between switches, interval after interval, and compares both ends of each link.

    Args:
        operations: whose settings say what is looked for, and which cordons what is found.
        reads_at_once: all switches are read at the same moment, as in virtual time.

    """

    def __init__(self, operations: Operations, reads_at_once: bool) -> None:
        self._operations = operations
        self._reads_at_once = reads_at_once
        fabric = operations.controller.fabric
        switches = {switch.name for switch in fabric.switches}
        links = [link for link in fabric.links if {link.a.node, link.b.node} <= switches]
        limits = operations.settings.limits
        self._directions: list[tuple[FabricLink, Endpoint, Endpoint, DirectionWatch]] = [
            (link, sender, receiver, DirectionWatch(link.link.rate_bps, link.link.delay_ps, limits))
            for link in links
            for sender, receiver in ((link.a, link.b), (link.b, link.a))
        ]
        self._ports: dict[str, list[int]] = {}
        for _, sender, _, _ in self._directions:
            self._ports.setdefault(sender.node, []).append(sender.port)

    async def run(self) -> None:
        """Watch until cancelled."""
        clock = self._operations.clock
        while True:
            before_ps = clock.now_ps()
            counters = await self._operations.controller.read_ports(self._ports)
            now_ps = clock.now_ps()
            await self._look_at(counters, now_ps, 0 if self._reads_at_once else now_ps - before_ps)
            await clock.sleep_ps(self._operations.settings.interval_ps)

    async def _look_at(self, counters: _Counters, now_ps: int, uncertainty_ps: int) -> None:
        failed = self._operations.controller.failures
        for link, sender, receiver, watch in self._directions:
            sent, received = _of(counters, sender), _of(counters, receiver)
            if sent is None or received is None or link.ends in failed.links:
                watch.restart()
                continue
            reading = Reading(
                now_ps,
                sent.sent.packets,
                sent.sent.bytes,
                received.received.packets,
                sent.ecn_marked.packets,
                uncertainty_ps,
            )
            for finding in watch.take(reading):
                kind, detail = _described(finding)
                await self._operations.cordon_lossy_or_slow(
                    link, kind, f"{sender.node} → {receiver.node}: {detail}"
                )


def _of(counters: _Counters, end: Endpoint) -> PortCounters | None:
    """Return a port's counters, None of a switch that is down."""
    return None if end.node not in counters else counters[end.node].get(end.port, _NOTHING)


def _described(finding: Loss | Slowness) -> tuple[EventKind, str]:
    if isinstance(finding, Loss):
        return "lossy", f"{finding.lost_packets:,} of {finding.sent_packets:,} packets lost"
    return "slow", f"{finding.measured_bps / _GBPS:.3g} of {finding.nominal_bps / _GBPS:.3g} Gb/s"
