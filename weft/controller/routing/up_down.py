"""Up*/down* for any graph: a packet goes up some links, then down some, and never up again.

Switches are ordered, and a link leads up to the end that comes first. Buffers wait only for buffers farther up or, once
packets go down, farther down, so lossless classes cannot deadlock on one lane (M. Schroeder et al., Autonet, IEEE JSAC
9(8), 1991; `updn` in InfiniBand's OpenSM).

Switches are ordered by tier, highest first, if there are several tiers and all switches with hosts then reach each
other. Tiers thus define the roots: routes of fat trees are shortest paths, and a graph may give its roots a higher
tier. Otherwise the order is by distance from a central switch, the one closest to its farthest hosts. If failures leave
a switch without a link up and thereby cut off hosts, it is moved behind the first of its neighbours.

Switches know a packet's destination, not its origin. So a switch that can reach a destination by going only down does
so, even if a path up and then down would be shorter; others go up along the fewest total hops. Equal paths share the
load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from weft.controller.routing.kind import RoutingKind
from weft.controller.routing.routes import NextHop, NextHops
from weft.controller.routing.shortest_paths import ShortestPaths, add_next_hops
from weft.topologies import FabricSpec, SwitchSpec
from weft.topologies.distances import Rings, bits_of, distance_rings

Live = Sequence[Sequence[tuple[int, NextHop]]]
Order = Sequence[int]
"""Rank of each switch, by place; links lead up to the lower rank."""
ByHops = list[int]
"""Switches reached after 0, 1, … hops, as bits by place."""


@dataclass(frozen=True)
class Ways:
    """The switches that each switch reaches by going only down, and all that it reaches, by place."""

    order: Order
    down: Sequence[ByHops]
    reached: Sequence[ByHops]


class UpDown(ShortestPaths):
    """The routes of a plane. A failure recomputes switches if it changes their distances or their neighbours'."""

    def __init__(self, fabric: FabricSpec, plane: int) -> None:
        super().__init__(fabric, plane)
        self._hosts = sum(1 << place for place, switch in enumerate(self._switches) if switch.host_ports)
        neighbours = [[place for place, _, _ in ports] for ports in self._ports]
        rings = distance_rings(neighbours)
        self._order = order_of_tiers(self._switches)
        if not self._order or not self._is_complete(find_ways(neighbours, self._order), rings):
            self._order = order_from_middle(rings, self._hosts)
        self._ways = Ways((), (), ())

    def _touched(self, live: Live, rings: Rings) -> set[int]:
        before = self._ways
        neighbours = [[place for place, _ in ports] for ports in live]
        ways = find_ways(neighbours, self._order)
        if not self._is_complete(ways, rings):
            ways = find_ways(neighbours, repaired_order(neighbours, self._order))
        self._ways = ways
        if not before.order:
            return set(range(len(live)))
        moved = {
            place
            for place, peers in enumerate(neighbours)
            if ways.down[place] != before.down[place]
            or ways.reached[place] != before.reached[place]
            or any(leads_up(ways.order, place, peer) != leads_up(before.order, place, peer) for peer in peers)
        }
        return {
            place
            for place, ports in enumerate(live)
            if place in moved or ports != self._live[place] or not moved.isdisjoint(peer for peer, _ in ports)
        }

    def _is_complete(self, ways: Ways, rings: Rings) -> bool:
        """Return whether all switches with hosts reach each other, unless no links join them."""
        return all(
            not _all_of([ring[place] for ring in rings]) & self._hosts & ~_all_of(ways.reached[place])
            for place in bits_of(self._hosts)
        )

    def next_hops_of(self, place: int) -> dict[NextHops, int]:
        """Return the next hops towards all switches: down if that reaches the destination, up otherwise."""
        order = self._ways.order
        below = [(peer, hop) for peer, hop in self._live[place] if not leads_up(order, place, peer)]
        above = [(peer, hop) for peer, hop in self._live[place] if leads_up(order, place, peer)]
        down, reached = self._ways.down, self._ways.reached
        towards: dict[NextHops, int] = {}
        for hops in range(1, len(reached[place])):
            wanted = reached[place][hops] & (self._far if hops > 1 else ~0)
            going_down = wanted & _at(down[place], hops)
            add_next_hops(towards, going_down, ((hop, _at(down[peer], hops - 1)) for peer, hop in below))
            add_next_hops(towards, wanted & ~going_down, ((hop, _at(reached[peer], hops - 1)) for peer, hop in above))
        return towards


def order_of_tiers(switches: Sequence[SwitchSpec]) -> Order:
    """Return the order by tier, highest first, then by place; empty if there is one tier."""
    if len({switch.tier for switch in switches}) < 2:
        return ()
    return _ranks([(-switch.tier,) for switch in switches])


def order_from_middle(rings: Rings, hosts: int) -> Order:
    """Return the order by distance from the centre of each connected part of the graph.

    The centre is the switch with the fewest hops to its farthest host; on a tie, the one with the fewest total hops.
    `hosts` are the switches with hosts, as bits by place.
    """
    count = len(rings[0])
    levels = [0] * count
    left = (1 << count) - 1
    while left:
        first = next(iter(bits_of(left)))
        part = _all_of([ring[first] for ring in rings])
        left &= ~part
        root = min(bits_of(part), key=lambda place: (*_hops_to(rings, place, hosts), place))
        for level, ring in enumerate(rings):
            for place in bits_of(ring[root]):
                levels[place] = level
    return _ranks([(level,) for level in levels])


def repaired_order(neighbours: Sequence[Sequence[int]], order: Order) -> Order:
    """Return an order in which each switch, except the first of its connected part, comes after a neighbour.

    The next switch is always the first, in the old order, of the neighbours of switches already ordered. So the order
    does not change if every switch except the first already has a link up.
    """
    ranks = [-1] * len(order)
    rank = 0
    for first in sorted(range(len(order)), key=order.__getitem__):
        beside = [(order[first], first)]
        while beside:
            _, place = heappop(beside)
            if ranks[place] < 0:
                ranks[place] = rank
                rank += 1
                for peer in neighbours[place]:
                    if ranks[peer] < 0:
                        heappush(beside, (order[peer], peer))
    return ranks


def leads_up(order: Order, place: int, peer: int) -> bool:
    """Return whether a link leads up from switch `place` to switch `peer`."""
    return order[peer] < order[place]


def find_ways(neighbours: Sequence[Sequence[int]], order: Order) -> Ways:
    """Return the switches that all switches reach going up and down, given the neighbours of each."""
    count = len(order)
    from_above = sorted(range(count), key=order.__getitem__)
    down: list[ByHops] = [[] for _ in range(count)]
    reached: list[ByHops] = [[] for _ in range(count)]
    for place in reversed(from_above):
        down[place] = _with_next([1 << place], [down[peer] for peer in neighbours[place] if down[peer]])
    for place in from_above:
        above = [reached[peer] for peer in neighbours[place] if reached[peer]]
        reached[place] = _with_next(down[place], above)
    return Ways(order, down, reached)


def _with_next(own: ByHops, of_neighbours: Sequence[ByHops]) -> ByHops:
    """Return the switches that a switch reaches by itself, and those it reaches through neighbours, one hop later."""
    known = _all_of(own)
    found = list(own)
    for hops in range(1, max(map(len, of_neighbours), default=0) + 1):
        news = 0
        for each in of_neighbours:
            news |= _at(each, hops - 1)
        news &= ~known
        known |= news
        if hops == len(found):
            found.append(0)
        found[hops] |= news
    while not found[-1]:
        found.pop()
    return found


def _hops_to(rings: Rings, place: int, hosts: int) -> tuple[int, int]:
    """Return the hops from a switch to the farthest switch with hosts, and the total hops to all of these."""
    counts = [(ring[place] & hosts).bit_count() for ring in rings]
    farthest = max((hops for hops, count in enumerate(counts) if count), default=0)
    return farthest, sum(hops * count for hops, count in enumerate(counts))


def _ranks(keys: Sequence[tuple[int, ...]]) -> Order:
    ranks = [0] * len(keys)
    for rank, place in enumerate(sorted(range(len(keys)), key=lambda place: (keys[place], place))):
        ranks[place] = rank
    return ranks


def _all_of(by_hops: Sequence[int]) -> int:
    together = 0
    for bits in by_hops:
        together |= bits
    return together


def _at(by_hops: ByHops, hops: int) -> int:
    return by_hops[hops] if hops < len(by_hops) else 0


KIND = RoutingKind(
    name="up_down",
    summary="on any graph, up some links, then down some: no deadlocks with one lane",
    tables=("ipv4_lpm", "ipv6_lpm", "ecmp"),
    plane=UpDown,
    objection=lambda _fabric: "",
    is_deadlock_free=lambda _fabric: True,
)
