"""Finds cycles in the channel dependency graph of a plane's routes (Dally and Seitz 1987).

A channel is a lane of a link in one direction, with the buffer at its far end. A channel depends on another if a packet
may wait in its buffer for room in the other's. Without a cycle, lossless routes cannot deadlock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.controller.routing.lanes import Layers, VirtualLanes
from weft.topologies import SwitchSpec

PortDestinations = Mapping[str, Mapping[int, int]]
"""Destinations of the packets sent over each port between switches, as bits, by switch and port.

The bits are switches by their place in the plane, followed by intermediates by their number.
"""


@dataclass(frozen=True, order=True)
class Channel:
    """A lane of the link at an outgoing port of a switch."""

    switch: str
    port: int
    lane: int

    def __str__(self) -> str:
        return f"{self.switch}:{self.port} (lane {self.lane})"


def cycle_text(cycle: Sequence[Channel]) -> str:
    """Return a cycle as text, hop by hop and back to its beginning; empty for no cycle."""
    return " → ".join(str(channel) for channel in (*cycle, *cycle[:1]))


def find_cycle(
    switches: Sequence[SwitchSpec],
    destinations: PortDestinations,
    lanes: VirtualLanes,
    layers: Layers | None = None,
    intermediates: Sequence[int] = (),
) -> tuple[Channel, ...]:
    """Return a cycle of channels, each of which depends on the next; empty if there is none.

    `switches` are the plane's switches, in the order of the destinations' bits. Only packets from hosts count: a route
    that they cannot reach causes no dependencies. Without `layers`, all packets begin in lane 0. `intermediates` has
    the number of each switch's intermediate (`weft.controller.routing.intermediates`); if empty, packets go directly to
    their destinations.
    """
    return _Graph(switches, destinations, lanes, layers or {}, intermediates).cycle()


@dataclass(frozen=True)
class _Out:
    """An outgoing port of a switch, its destinations, and its peer."""

    port: int
    destinations: int
    peer: int
    peer_port: int


_Arrivals = dict[tuple[int | None, int], int]
"""Destinations of packets that arrive at a switch, by lane and ingress port; None for ports that no rule names."""


class _Graph:
    """The dependency graph; channels are numbers, and sets of destinations are bits of integers."""

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
        # Each switch's own intermediate, as a bit, and all intermediates together.
        self._own = [1 << (len(switches) + number) for number in intermediates] or [0] * len(switches)
        self._all_intermediates = sum(set(self._own))
        self._with_hosts = sum(1 << number for number, switch in enumerate(switches) if switch.host_ports)
        self._outs = [
            [
                _Out(port.number, bits, place[port.peer.node], port.peer.port)
                for port in switch.fabric_ports
                if (bits := destinations.get(switch.name, {}).get(port.number, 0) & ~(1 << number | self._own[number]))
            ]
            for number, switch in enumerate(switches)
        ]
        self._named = [{rule.ingress_port for rule in lanes.rules.get(switch.name, ())} for switch in switches]
        self._firsts: list[int] = []
        count = 0
        for outs in self._outs:
            self._firsts.append(count)
            count += len(outs) * lanes.count
        self._flows = [0] * count
        self._ends = [
            (number, out, lane) for number, outs in enumerate(self._outs) for out in outs for lane in range(lanes.count)
        ]
        self._propagate()

    def _group(self, switch: int, port: int) -> int | None:
        return port if port in self._named[switch] else None

    def _after(self, switch: int, group: int | None, port: int, lane: int) -> int:
        if not self._named[switch]:
            return lane
        # Port 0 does not exist, so the group of all other ports matches no rule that names a port.
        return self._lanes.after(self._switches[switch].name, group or 0, port, lane)

    def _injected(self) -> list[_Arrivals]:
        """Return the packets that hosts send into their first switches.

        They go to every other switch with hosts, in the lane of its layer, and to intermediates in the first lane.
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
        """Return the destinations of a switch's hosts, by the lane in which their packets begin."""
        straight = self._with_hosts & ~(1 << number)
        layers = self._layers.get(self._switches[number].name, {})
        lanes = {lane: bits & straight for lane, bits in layers.items()}
        for bits in lanes.values():
            straight &= ~bits
        return {0: straight | self._all_intermediates & ~self._own[number], **lanes}

    def _propagate(self) -> None:
        """Follow all packets from switch to switch; each visit to a switch handles only new arrivals."""
        known: list[_Arrivals] = [{} for _ in self._switches]
        fresh = self._injected()
        waiting = [number for number, arrivals in enumerate(fresh) if arrivals]
        for number in waiting:  # grows during the loop
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
        """Yield lanes and destinations with which packets continue from a switch, before the rules.

        Packets that have reached their intermediate may go to any other switch.
        """
        if bits & self._own[switch]:
            yield self._lanes.after_intermediate.get(lane, lane), self._with_hosts & ~(1 << switch)
        if rest := bits & ~self._own[switch]:
            yield lane, rest

    def _next(self, channel: int) -> Iterator[int]:
        """Yield the channels that a channel depends on."""
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
        """Search depth first; a channel that is reached again while still open is on a cycle."""
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
        """Search breadth first for the shortest path from a channel back to itself."""
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
