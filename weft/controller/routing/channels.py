"""Cycles in the channel dependency graph of a plane's routes (Dally and Seitz 1987).

A channel is a lane of a link in one direction: the buffer at its far end. One depends on the next if some packet may
wait in its buffer for room in the next one's. Without a cycle, lossless routes cannot deadlock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.controller.routing.lanes import Layers, VirtualLanes
from weft.topologies import SwitchSpec

PortDestinations = Mapping[str, Mapping[int, int]]
"""By switch, then port to another one: what packets go to over it, as bits.

Switches by their place in the plane, then intermediates by their number.
"""


@dataclass(frozen=True, order=True)
class Channel:
    """A lane of the link that leaves a switch by a port."""

    switch: str
    port: int
    lane: int

    def __str__(self) -> str:
        return f"{self.switch}:{self.port} (lane {self.lane})"


def cycle_text(cycle: Sequence[Channel]) -> str:
    """Return a cycle as people read it, hop by hop and back to where it begins; nothing for none."""
    return " → ".join(str(channel) for channel in (*cycle, *cycle[:1]))


def find_cycle(
    switches: Sequence[SwitchSpec],
    destinations: PortDestinations,
    lanes: VirtualLanes,
    layers: Layers | None = None,
    intermediates: Sequence[int] = (),
) -> tuple[Channel, ...]:
    """Return channels each of which depends on the next and the last on the first; none if there is no such cycle.

    `switches` are those of the plane, in the order of the destinations' bits. Only what hosts can send counts: a route
    that no packet of theirs can reach makes no dependency. All packets begin in lane 0 without `layers`.
    `intermediates` are those of the switches, by their number (`weft.controller.routing.intermediates`); none: packets
    go straight to their destinations.
    """
    return _Graph(switches, destinations, lanes, layers or {}, intermediates).cycle()


@dataclass(frozen=True)
class _Out:
    """A port of a switch that packets leave by, and the other end."""

    port: int
    destinations: int
    peer: int
    peer_port: int


_Arrivals = dict[tuple[int | None, int], int]
"""Destinations of what comes to a switch, by lane and by ingress port, None for those that no rule names."""


class _Graph:
    """Channels are numbers; sets of destinations are the bits of integers."""

    def __init__(
        self,
        switches: Sequence[SwitchSpec],
        destinations: PortDestinations,
        lanes: VirtualLanes,
        layers: Layers,
        intermediates: Sequence[int],
    ) -> None:
        place = {switch.name: number for number, switch in enumerate(switches)}
        self._switches, self._lanes, self._layers = switches, lanes, layers
        # What each switch is as an intermediate, and all that it may not be.
        self._own = [1 << (len(switches) + number) for number in intermediates] or [0] * len(switches)
        self._all_intermediates = sum(set(self._own))
        self._with_hosts = sum(1 << number for number, switch in enumerate(switches) if switch.host_ports)
        self._outs = [
            [
                _Out(port.number, bits, place[port.peer.node], port.peer.port)
                for port in switch.fabric_ports
                if (
                    bits := destinations.get(switch.name, {}).get(port.number, 0)
                    & ~(1 << number | self._own[number])
                )
            ]
            for number, switch in enumerate(switches)
        ]
        self._named = [
            {rule.ingress_port for rule in lanes.rules.get(switch.name, ())} for switch in switches
        ]
        self._firsts: list[int] = []
        count = 0
        for outs in self._outs:
            self._firsts.append(count)
            count += len(outs) * lanes.count
        self._flows = [0] * count
        self._ends = [
            (number, out, lane)
            for number, outs in enumerate(self._outs)
            for out in outs
            for lane in range(lanes.count)
        ]
        self._propagate()

    def _group(self, switch: int, port: int) -> int | None:
        return port if port in self._named[switch] else None

    def _after(self, switch: int, group: int | None, port: int, lane: int) -> int:
        if not self._named[switch]:
            return lane
        # No port has the number 0, so a group of all others matches no rule that names a port.
        return self._lanes.after(self._switches[switch].name, group or 0, port, lane)

    def _injected(self) -> list[_Arrivals]:
        """What hosts send into their first switches.

        To every other switch that has hosts, in the lane of its layer, and to intermediates in the first lane.
        """
        return [
            {
                (self._group(number, port.number), lane): bits
                for lane, bits in self._injected_at(number).items()
                for port in switch.host_ports
            }
            for number, switch in enumerate(self._switches)
        ]

    def _injected_at(self, number: int) -> dict[int, int]:
        """What hosts of a switch send, by the lane in which it begins."""
        straight = self._with_hosts & ~(1 << number)
        layers = self._layers.get(self._switches[number].name, {})
        lanes = {lane: bits & straight for lane, bits in layers.items()}
        for bits in lanes.values():
            straight &= ~bits
        return {0: straight | self._all_intermediates & ~self._own[number], **lanes}

    def _propagate(self) -> None:
        """Follow all packets from switch to switch; each time a switch is served, only what is new there."""
        known: list[_Arrivals] = [{} for _ in self._switches]
        fresh = self._injected()
        waiting = [number for number, arrivals in enumerate(fresh) if arrivals]
        for number in waiting:  # and what is added meanwhile
            arrivals, fresh[number] = fresh[number], {}
            for (group, lane), bits in arrivals.items():
                known[number][group, lane] = known[number].get((group, lane), 0) | bits
                for index, out in enumerate(self._outs[number]):
                    moved = bits & out.destinations
                    if not moved:
                        continue
                    after = self._after(number, group, out.port, lane)
                    self._flows[self._firsts[number] + index * self._lanes.count + after] |= moved
                    for onward_lane, onward in self._arriving(out.peer, after, moved):
                        key = self._group(out.peer, out.peer_port), onward_lane
                        news = onward & ~known[out.peer].get(key, 0) & ~fresh[out.peer].get(key, 0)
                        if news:
                            if not fresh[out.peer]:
                                waiting.append(out.peer)
                            fresh[out.peer][key] = fresh[out.peer].get(key, 0) | news

    def _arriving(self, switch: int, lane: int, bits: int) -> Iterator[tuple[int, int]]:
        """Return where packets go on to from a switch and in which lanes, before the rules.

        Those that have reached their intermediate may go to any other switch.
        """
        if bits & self._own[switch]:
            yield self._lanes.after_intermediate.get(lane, lane), self._with_hosts & ~(1 << switch)
        if rest := bits & ~self._own[switch]:
            yield lane, rest

    def _next(self, channel: int) -> Iterator[int]:
        """Channels that one depends on."""
        flow = self._flows[channel]
        _, came_by, lane = self._ends[channel]
        number = came_by.peer
        group = self._group(number, came_by.peer_port)
        for onward_lane, onward in self._arriving(number, lane, flow):
            for index, out in enumerate(self._outs[number]):
                if onward & out.destinations:
                    after = self._after(number, group, out.port, onward_lane)
                    yield self._firsts[number] + index * self._lanes.count + after

    def cycle(self) -> tuple[Channel, ...]:
        start = self._on_a_cycle()
        return () if start is None else tuple(self._channel(each) for each in self._shortest(start))

    def _on_a_cycle(self) -> int | None:
        """Search in depth; a channel that is met again while it is being served is on a cycle."""
        new, open_, closed = 0, 1, 2
        state = bytearray(len(self._flows))
        for root, flow in enumerate(self._flows):
            if state[root] != new or not flow:
                continue
            state[root] = open_
            path = [(root, self._next(root))]
            while path:
                channel, rest = path[-1]
                follower = next(rest, None)
                if follower is None:
                    state[channel] = closed
                    path.pop()
                elif state[follower] == open_:
                    return follower
                elif state[follower] == new:
                    state[follower] = open_
                    path.append((follower, self._next(follower)))
        return None

    def _shortest(self, start: int) -> list[int]:
        """Search in breadth for the way back to a channel."""
        came_from: dict[int, int] = {}
        queue = [start]
        for channel in queue:
            for follower in self._next(channel):
                if follower == start:
                    cycle = [channel]
                    while cycle[-1] != start:
                        cycle.append(came_from[cycle[-1]])
                    return cycle[::-1]
                if follower not in came_from:
                    came_from[follower] = channel
                    queue.append(follower)
        raise AssertionError("the channel is on no cycle")

    def _channel(self, number: int) -> Channel:
        switch, out, lane = self._ends[number]
        return Channel(self._switches[switch].name, out.port, lane)
