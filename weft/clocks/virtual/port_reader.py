"""Reads queues and pauses of switches' ports in virtual time, for the search for noisy parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from weft.clocks.virtual.link_ends import Direction, LinkEnds
from weft.clocks.virtual.loop import VirtualTimeLoop
from weft.controller.noise.int_stamps import Stack
from weft.controller.noise.pauses import Paused
from weft.controller.noise.rates import NicState, PortQueue, Sender
from weft.topologies import Endpoint, FabricSpec
from weft.traffic.host import Host

_T = TypeVar("_T")


class VirtualPortReader:
    """A `PortReader`. A request takes half of `latency_ps` to a switch, and its answer as long.

    `host_of` returns the place of the host that has a rank. `judges_nics`: whether NICs send as fast as their ports,
    without costs, over one port for each queue pair. `reads_int`: whether packets carry INT, and nothing but its rate
    ever keeps a port from sending.
    """

    def __init__(
        self,
        ends: LinkEnds,
        fabric: FabricSpec,
        loop: VirtualTimeLoop,
        latency_ps: int,
        host_of: Callable[[int], int],
        *,
        judges_nics: bool,
        reads_int: bool,
    ) -> None:
        self._ends = ends
        self._fabric = fabric
        self._loop = loop
        self._latency_ps = latency_ps
        self._host_of = host_of
        self._judges_nics = judges_nics
        self._reads_int = reads_int
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

    async def nics(self, gaps_ps: Mapping[Endpoint, int]) -> Mapping[Endpoint, tuple[NicState, NicState, NicState]]:
        """See PortReader."""
        if not self._judges_nics:
            return {}
        await self._loop.sleep_ps(self._latency_ps // 2)
        by_gap: dict[int, list[Endpoint]] = {}
        for end, gap_ps in gaps_ps.items():
            by_gap.setdefault(gap_ps, []).append(end)
        found: dict[Endpoint, tuple[NicState, NicState, NicState]] = {}
        for gap_ps, ends in by_gap.items():
            states = [self._nics(ends)]
            # Most of the time few hosts send.
            ends = [
                end for end, state in states[0].items() if any(each.permitted_bytes for each in state.senders.values())
            ]
            for _ in range(2 if ends else 0):
                await self._loop.sleep_ps(gap_ps)
                states.append(self._nics(ends))
            found |= {end: (states[0][end], states[1][end], states[2][end]) for end in ends}
        await self._loop.sleep_ps(self._latency_ps // 2)
        return found

    async def stacks(self) -> Sequence[Stack]:
        """See PortReader."""
        if not self._reads_int:
            return ()
        hosts = self._fabric.hosts
        await self._loop.sleep_ps(self._latency_ps // 2)
        ports = [Endpoint(host.name, nic.number) for host in hosts for nic in host.nics]
        found = self._ends.read_hosts_of(ports, lambda host, end: list(_stacks(host, end, self._name_of)))
        await self._loop.sleep_ps(self._latency_ps // 2)
        return [stack for stacks in found.values() for stack in stacks]

    def _name_of(self, rank: int) -> str:
        return self._fabric.hosts[self._host_of(rank)].name

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

    def _nics(self, ends: Iterable[Endpoint]) -> dict[Endpoint, NicState]:
        now_ps = self._loop.now_ps()
        return self._ends.read_hosts_of(ends, lambda host, end: _nic(host, end, self._direction(end), now_ps))

    def _read(self, ends: Iterable[Endpoint], read: Callable[[Direction], _T]) -> dict[Endpoint, _T]:
        return self._ends.read_ports({end: self._direction(end) for end in ends}, read)

    def _direction(self, end: Endpoint) -> Direction:
        if end not in self._directions:
            link = self._fabric.link_at(end)
            self._directions[end] = self._ends.direction(end, link.b if link.a == end else link.a)
        return self._directions[end]


def _queue(direction: Direction, now_ps: int) -> PortQueue:
    port, mac = direction.transmit.stats(), direction.mac.stats() if direction.mac is not None else None
    dropped = (port["down_dropped"], port["egress_dropped"], port["storm_dropped"], port["trim_dropped"])
    held = [each["packets"] for each in dropped]
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


def _stacks(host: Host, end: Endpoint, name_of: Callable[[int], str]) -> Iterator[Stack]:
    for channel, queue_pair in host.connected(end.port):
        telemetry = queue_pair.last_telemetry
        if telemetry is not None and not telemetry["overflow"]:
            hops = telemetry["hops"][: telemetry["hop_count"]]
            stamps = tuple((hop["timestamp_ns"], hop["queue_cells"], hop["tx_units"]) for hop in hops)
            yield Stack(end, name_of(channel.peer), telemetry["path_id"], stamps)


def _nic(host: Host, end: Endpoint, direction: Direction, now_ps: int) -> NicState:
    rate_bps = host.config.nics[end.port].rate_bps
    senders = {}
    for _, queue_pair in host.connected(end.port):
        stats = queue_pair.stats()
        is_paced = 0 < queue_pair.pacing_rate_bps < rate_bps
        permitted_bytes = 0 if is_paced else max(0, queue_pair.window_bytes - stats["in_flight_bytes"])
        if stats["outstanding_requests"]:
            senders[id(queue_pair)] = Sender(stats["outstanding_requests"], stats["data_packets_sent"], permitted_bytes)
    return NicState(_queue(direction, now_ps), senders)


def _paused(direction: Direction, now_ps: int) -> Paused | None:
    classes = direction.mac.stats()["pfc"] if direction.mac is not None else None
    if not classes:
        return None
    return Paused(now_ps, tuple(each["paused_ps"] for each in classes), tuple(each["is_paused"] for each in classes))
