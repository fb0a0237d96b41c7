"""Reads queues and pauses of switches' ports in virtual time, for the search for noisy parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from weft.clocks.virtual.link_ends import Direction, LinkEnds
from weft.clocks.virtual.loop import VirtualTimeLoop
from weft.controller.noise.pauses import Paused
from weft.controller.noise.rates import PortQueue
from weft.topologies import Endpoint, FabricSpec

_T = TypeVar("_T")


class VirtualPortReader:
    """A `PortReader`. A request takes half of `latency_ps` to a switch, and its answer as long."""

    def __init__(self, ends: LinkEnds, fabric: FabricSpec, loop: VirtualTimeLoop, latency_ps: int) -> None:
        self._ends = ends
        self._fabric = fabric
        self._loop = loop
        self._latency_ps = latency_ps
        self._directions: dict[Endpoint, Direction] = {}

    async def queues(
        self, least_waiting_bytes: Mapping[Endpoint, int], gaps_ps: Mapping[Endpoint, int]
    ) -> Mapping[Endpoint, tuple[PortQueue, PortQueue]]:
        """See PortReader. The switches wait for the gaps, so answers do not take longer for being far away."""
        await self._loop.sleep_ps(self._latency_ps // 2)
        waiting = self._read(least_waiting_bytes, lambda each: each.transmit.queue_depth_bytes)
        before = self._queues([end for end, size in waiting.items() if size >= least_waiting_bytes[end]])
        by_gap: dict[int, list[Endpoint]] = {}
        for end in before:
            by_gap.setdefault(gaps_ps[end], []).append(end)
        after: dict[Endpoint, PortQueue] = {}
        waited_ps = 0
        for gap_ps, ends in sorted(by_gap.items()):
            await self._loop.sleep_ps(gap_ps - waited_ps)
            waited_ps = gap_ps
            after |= self._queues(ends)
        await self._loop.sleep_ps(self._latency_ps // 2)
        return {end: (before[end], after[end]) for end in before}

    async def paused(self, ports: Iterable[Endpoint]) -> Mapping[Endpoint, Paused]:
        """See PortReader."""
        await self._loop.sleep_ps(self._latency_ps // 2)
        now_ps = self._loop.now_ps()
        found = self._read(ports, lambda each: _paused(each, now_ps))
        await self._loop.sleep_ps(self._latency_ps // 2)
        return {end: paused for end, paused in found.items() if paused is not None}

    def _queues(self, ends: Iterable[Endpoint]) -> dict[Endpoint, PortQueue]:
        now_ps = self._loop.now_ps()
        return self._read(ends, lambda each: _queue(each, now_ps))

    def _read(self, ends: Iterable[Endpoint], read: Callable[[Direction], _T]) -> dict[Endpoint, _T]:
        return self._ends.read_ports({end: self._direction(end) for end in ends}, read)

    def _direction(self, end: Endpoint) -> Direction:
        if end not in self._directions:
            peer = self._fabric.switch(end.node).port(end.port).peer
            self._directions[end] = self._ends.direction(end, peer)
        return self._directions[end]


def _queue(direction: Direction, now_ps: int) -> PortQueue:
    port, mac = direction.transmit.stats(), direction.mac.stats() if direction.mac is not None else None
    dropped = ("down_dropped", "egress_dropped", "storm_dropped", "trim_dropped")
    held = [each["packets"] for name, each in port.items() if name in dropped]  # type: ignore[index]
    is_held = not direction.transmit.is_up
    for pfc in (mac["pfc"] or ()) if mac is not None else ():
        held.append(pfc["paused_ps"])
        is_held |= pfc["is_paused"]
    for lane in mac["credits"]["lanes"] if mac is not None and mac["credits"] is not None else ():
        held += [lane["stalls"], lane["stalled_ps"]]
        is_held |= lane["is_stalled"]
    if (retry := direction.link.retry_stats()) is not None:
        held += [retry["replays"], retry["replaying_ps"], retry["waiting_ps"]]
    return PortQueue(now_ps, port["queue_depth_bytes"], port["transmitted"]["bytes"], tuple(held), is_held)


def _paused(direction: Direction, now_ps: int) -> Paused | None:
    classes = direction.mac.stats()["pfc"] if direction.mac is not None else None
    if not classes:
        return None
    return Paused(
        now_ps, tuple(each["paused_ps"] for each in classes), tuple(each["is_paused"] for each in classes)
    )
