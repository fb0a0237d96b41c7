"""Monitors a fabric's links through the counters at their ends and takes lossy and slow links out of use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from weft.controller.event_log import EventKind
from weft.controller.link_readings import LinkReadings, ReadHosts
from weft.controller.link_watch import DirectionWatch, Loss, Slowness
from weft.controller.operations import Operations
from weft.topologies import Endpoint, FabricLink

_GBPS = 10**9


ConfirmSlow = Callable[[Endpoint, int], Awaitable[bool]]
"""Returns whether a port sends below a rate in b/s while packets wait."""


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
        confirm_slow: whether a port that looks slow is. Counters and marks alone cannot tell it from one that sends
            equal bursts in each interval. None where nothing else is known of ports.

    """

    def __init__(
        self,
        operations: Operations,
        links: Sequence[FabricLink],
        interval_ps: int,
        read_hosts: ReadHosts,
        transit_ps: int,
        at_once: int = 1,
        notice_ps: int = 0,
        confirm_slow: ConfirmSlow | None = None,
    ) -> None:
        self._operations = operations
        self._interval_ps = interval_ps
        self._notice_ps = notice_ps
        self._confirm_slow = confirm_slow
        self._found: list[_Found] = []
        self._readings = LinkReadings(operations, links, read_hosts, transit_ps)
        limits = operations.settings.limits
        self._watches = [DirectionWatch(each.link.link.rate_bps, limits, at_once) for each in self._readings.directions]

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
        reads = await self._readings.read()
        now_ps = self._operations.clock.now_ps()
        for direction, read, watch in zip(self._readings.directions, reads, self._watches, strict=True):
            if read.reading is None or read.has_failed:
                self._forget(direction.link, watch)
            if read.reading is None:
                continue
            for finding in watch.take(read.reading):
                if isinstance(finding, Slowness) and not await self._is_slow(direction.sender, finding):
                    continue
                kind, detail = _described(finding)
                self._found.append(_Found(now_ps, direction.link, kind, f"{direction.name}: {detail}"))

        due = [found for found in self._found if now_ps - found.time_ps >= self._notice_ps]
        self._found = [found for found in self._found if found not in due]
        for found in due:
            await self._operations.take_out_faulty(found.link, found.kind, found.detail)

    async def _is_slow(self, sender: Endpoint, finding: Slowness) -> bool:
        return self._confirm_slow is None or await self._confirm_slow(sender, finding.nominal_bps)

    def _forget(self, link: FabricLink, watch: DirectionWatch) -> None:
        watch.restart()
        self._found = [found for found in self._found if found.link.ends != link.ends]


def _described(finding: Loss | Slowness) -> tuple[EventKind, str]:
    if isinstance(finding, Loss):
        return "lossy", f"{finding.lost_packets:,} of {finding.sent_packets:,} packets lost"
    return "slow", f"{finding.measured_bps / _GBPS:.3g} of {finding.nominal_bps / _GBPS:.3g} Gb/s"
