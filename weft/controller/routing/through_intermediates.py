"""Routes through intermediates: a packet goes to a random switch or group first, and from there to its destination.

The first switch chooses (p4/include/valiant.p4): always an intermediate other than its own and the destination's (L.
Valiant, A Scheme for Fast Parallel Communication, 1982), or one only if the minimal route has the longer queue (UGAL-L;
A. Singh, Load-Balanced Routing in Interconnection Networks, 2005). Another kind provides the routes of both parts, and
of packets without an intermediate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import finsy

from weft.controller.entities import Entity, entry, mac_number
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.route_scope import RouteScope
from weft.controller.routing.channels import PortDestinations
from weft.controller.routing.intermediates import Intermediates
from weft.controller.routing.kind import PlaneRouting
from weft.controller.routing.lanes import INTERMEDIATE_LAYER, Layers, VirtualLanes
from weft.controller.routing.routes import SELECTOR, LpmEntries, NextHop, NextHops, SwitchRoutes
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.topologies.distances import bits_of

ROUTE_TABLES = ("ipv4_lpm", "ipv6_lpm", "ecmp")
VALIANT_TABLES = (*ROUTE_TABLES, "intermediates", "intermediate_by_ipv4", "intermediate_by_ipv6")
UGAL_TABLES = (*VALIANT_TABLES, "ecmp_nonminimal")
_MOST_HOPS = (1 << 8) - 1
_Heads = list[tuple[NextHops, int]]
"""Next hops and their destinations as bits: switches by place, or intermediates by number."""


class ThroughIntermediates(PlaneRouting):
    """The routes of a plane, and the routes to its intermediates.

    From any switch outside an intermediate, the routes to all its switches have the same next hops. Hop counts are for
    the plane without failures.
    """

    def __init__(self, routes: ShortestPaths, intermediates: Intermediates, lanes: VirtualLanes) -> None:
        self._routes = routes
        self._intermediates = intermediates
        self._layer = INTERMEDIATE_LAYER if lanes.after_intermediate else 0
        first: dict[int, int] = {}
        for place, number in enumerate(intermediates.of_switches):
            first.setdefault(number, place)
        self._first = sum(1 << place for place in first.values())
        self._hops: _Hops | None = None
        self._entities: dict[str, tuple[tuple[Entity, ...], tuple[Entity, ...]]] = {}

    def limit(self, scope: RouteScope) -> None:
        """Omit routes to addresses outside the scope."""
        self._routes.limit(scope)

    def plan(self, failures: Failures) -> dict[str, tuple[Entity, ...]]:
        """Return every switch's entities by name; see PlaneRouting."""
        if self._hops is None and self._intermediates.compares_queues:
            self._routes.plan(NO_FAILURES)
            self._hops = self._count_hops()
        plans = self._routes.plan(failures)
        for place, switch in enumerate(self._routes.switches):
            entities = plans[switch.name]
            known = self._entities.get(switch.name)
            if known is None or known[0] is not entities:
                whole = (*entities, *self._more(place, entities))
                self._entities[switch.name] = (entities, whole)
        return {name: whole for name, (_, whole) in self._entities.items()}

    def destinations(self) -> PortDestinations:
        """Return the destinations sent over each port by the latest plan; intermediates' bits follow switches'."""
        whole: dict[str, Mapping[int, int]] = {}
        base, count = self._routes.destinations(), len(self._routes.switches)
        for place, switch in enumerate(self._routes.switches):
            ports = dict(base[switch.name])
            for next_hops, numbers in self._heads(place):
                for hop in next_hops:
                    ports[hop.port] = ports.get(hop.port, 0) | numbers << count
            whole[switch.name] = ports
        return whole

    def layers(self) -> Layers:
        """Return no layers: all packets begin in lane 0."""
        return {}

    def _heads(self, place: int) -> _Heads:
        """Return the next hops of a switch towards other intermediates."""
        of_switches = self._intermediates.of_switches
        found = []
        for next_hops, switches in self._routes.routes[self._routes.switches[place].name].towards.items():
            numbers = sum(1 << of_switches[other] for other in bits_of(switches & self._first))
            numbers &= ~(1 << of_switches[place])
            if numbers:
                found.append((next_hops, numbers))
        return found

    def _more(self, place: int, entities: Iterable[Entity]) -> Iterator[Entity]:
        """Yield a switch's entries other than its routes."""
        switch = self._routes.switches[place]
        own = self._intermediates.of_switches[place]
        yield entry("intermediates", {"intermediate": own}, "reach", layer=self._layer)
        yield from self._ways(place, self._routes.routes[switch.name])
        if switch.host_ports:
            yield from self._of_destinations(place)
            if self._intermediates.compares_queues:
                yield from filter(None, map(_for_candidates, entities))

    def _ways(self, place: int, routes: SwitchRoutes) -> Iterator[Entity]:
        groups = routes.groups()
        for next_hops, numbers in self._heads(place):
            for number in bits_of(numbers):
                hops = 0 if self._hops is None else self._hops.through(place, number)
                match = {"intermediate": number}
                if group := groups.get(next_hops):
                    yield entry("intermediates", match, "go_by_ecmp_group", group=group, hops=hops)
                else:
                    yield _by_next_hop(match, next_hops[0], hops)

    def _of_destinations(self, place: int) -> Iterator[Entity]:
        """Yield the entries that give each destination's intermediate and distance."""
        kinds: dict[tuple[int, int], int] = {}
        for other, number in enumerate(self._intermediates.of_switches):
            hops = 0 if self._hops is None else self._hops.to_switch(place, other)
            if number != self._intermediates.of_switches[place]:
                kinds[number, hops] = kinds.get((number, hops), 0) | 1 << other
        for destinations, (number, hops) in self._routes.entries_of(kinds):
            for each in destinations.entries:
                yield _of_destination(each, number, hops)

    def _count_hops(self) -> _Hops:
        place_of = {switch.name: place for place, switch in enumerate(self._routes.switches)}
        peers = [
            {port.number: place_of[port.peer.node] for port in switch.fabric_ports} for switch in self._routes.switches
        ]
        of_switches = self._intermediates.of_switches
        to_switches = hop_counts(
            [list(self._routes.routes[switch.name].towards.items()) for switch in self._routes.switches],
            peers,
            [1 << place for place in range(len(of_switches))],
        )
        to_intermediates = hop_counts(
            [self._heads(place) for place in range(len(of_switches))],
            peers,
            [1 << number for number in of_switches],
        )
        between = [
            hops
            for place, counts in enumerate(to_switches)
            for other, hops in counts.items()
            if of_switches[place] != of_switches[other] and self._routes.switches[other].host_ports
        ]
        return _Hops(to_switches, to_intermediates, round(sum(between) / max(1, len(between))))


@dataclass(frozen=True)
class _Hops:
    """Hops of the routes from each switch, by its place."""

    to_switches: list[dict[int, int]]
    to_intermediates: list[dict[int, int]]
    onward: int

    def to_switch(self, place: int, other: int) -> int:
        return min(self.to_switches[place].get(other, 0), _MOST_HOPS)

    def through(self, place: int, number: int) -> int:
        """Return the hops to an intermediate plus the average hops from there to a switch of another one."""
        return min(self.to_intermediates[place].get(number, 0) + self.onward, _MOST_HOPS)


def hop_counts(heads: Sequence[_Heads], peers: Sequence[Mapping[int, int]], own: Sequence[int]) -> list[dict[int, int]]:
    """Return the hops of the routes from each switch, by the number of the destination.

    Args:
        heads: each switch's next hops and their destinations. Of several next hops, only the first counts.
        peers: for each switch, the place of the peer at each port.
        own: each switch's own bits as a destination.

    """
    reached: list[dict[int, int]] = [{} for _ in heads]
    last, pending = list(own), [list(each) for each in heads]
    hops = 0
    while any(last):
        for place, bits in enumerate(last):
            reached[place].update((number, hops) for number in bits_of(bits))
        hops += 1
        now = [0] * len(heads)
        for place, routes in enumerate(pending):
            for index, (next_hops, bits) in enumerate(routes):
                if found := bits & last[peers[place][next_hops[0].port]]:
                    now[place] |= found
                    routes[index] = next_hops, bits & ~found
        last = now
    return reached


def _by_next_hop(match: Mapping[str, int], hop: NextHop, hops: int) -> Entity:
    return entry(
        "intermediates",
        match,
        "go_by_next_hop",
        port=hop.port,
        source_mac=mac_number(hop.source_mac),
        destination_mac=mac_number(hop.destination_mac),
        hops=hops,
    )


def _of_destination(prefix: LpmEntries, number: int, hops: int) -> Entity:
    table = f"intermediate_by_ipv{prefix.prefix.version}"
    match = {"destination": str(prefix.prefix)}
    return entry(table, match, "set_destination", intermediate=number, hops=hops)


def _for_candidates(entity: Entity) -> Entity | None:
    """Return an entity of `ecmp` or its selector, copied to `ecmp_nonminimal`; None for other entities."""
    table, selector = "ecmp_nonminimal", "ecmp_nonminimal_selector"
    if isinstance(entity, finsy.P4TableEntry):
        return replace(entity, table_id=table) if entity.table_id == "ecmp" else None
    if isinstance(entity, finsy.P4ActionProfileGroup) and entity.action_profile_id == SELECTOR:
        return replace(entity, action_profile_id=selector)
    if isinstance(entity, finsy.P4ActionProfileMember) and entity.action_profile_id == SELECTOR:
        assert entity.action is not None
        action = finsy.P4TableAction("set_nonminimal_next_hop", **entity.action.args)
        return replace(entity, action_profile_id=selector, action=action)
    return None
