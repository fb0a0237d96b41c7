"""Shortest paths: IPv4 and IPv6 prefixes, ECMP groups of an action selector.

A leaf delivers to its own hosts (/32, /128) with the host's MAC; every other prefix goes to the neighbours
on shortest live paths: one link makes a plain next hop, several a group; parallel links are next hops each, and where
links of a group have different rates, its members are weighted by them. There is one group per set of next hops, so
that the groups do not grow with the destinations; a failure changes few of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from math import gcd

import finsy

from weft.controller.entities import Entity, entry, group_entry, mac_number
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.routing.kind import PlaneRouting, RoutingKind
from weft.topologies import FabricSpec, PortSpec, SwitchSpec
from weft.topologies.distances import Rings, bits_of, distance_rings

SELECTOR = "ecmp_selector"
MOST_WEIGHT = 64
"""Of the members of a group together, unless it has more members."""
Prefix = IPv4Network | IPv6Network


@dataclass(frozen=True, order=True)
class NextHop:
    """Where a packet goes: out of `port` with these MACs, over a link of this rate."""

    port: int
    source_mac: str
    destination_mac: str
    rate_bps: int


NextHops = tuple[NextHop, ...]


@dataclass(frozen=True)
class Route:
    """A prefix and its next hops, in order of their ports; several mean ECMP."""

    prefix: Prefix
    next_hops: NextHops


@dataclass(frozen=True)
class SwitchRoutes:
    """Routes of one switch.

    Attributes:
        hosts: its own hosts', of live links.
        towards: switches of the plane that are reached over the same next hops, as bits by their place in the plane.
        prefixes: what is behind each switch of the plane.

    """

    hosts: tuple[Route, ...]
    towards: dict[NextHops, int]
    prefixes: Sequence[tuple[Prefix, ...]]

    def __iter__(self) -> Iterator[Route]:
        """All routes."""
        yield from self.hosts
        for next_hops, switches in self.towards.items():
            for switch in bits_of(switches):
                yield from (Route(prefix, next_hops) for prefix in self.prefixes[switch])

    def groups(self) -> dict[NextHops, int]:
        """Group ids, from 1, of all sets of several next hops; the largest sets first."""
        sets = [next_hops for next_hops in self.towards if len(next_hops) > 1]
        ordered = sorted(sets, key=lambda hops: (-len(hops), hops))
        return {hops: group_id for group_id, hops in enumerate(ordered, start=1)}


_LivePort = tuple[int, NextHop]
"""Place in the plane of the switch at the other end, and the next hop that it is."""


class ShortestPaths(PlaneRouting):
    """The routes of a plane. A failure recomputes only the routes that it affects.

    Attributes:
        routes: of the latest plan, by switch name.
        recomputed: names of the switches whose next hops the latest plan computed.

    """

    def __init__(self, fabric: FabricSpec, plane: int) -> None:
        self._switches = fabric.switches_of_plane(plane)
        self._place = {switch.name: place for place, switch in enumerate(self._switches)}
        self._prefixes = [_prefixes(fabric, switch) for switch in self._switches]
        self._lpm = [[_LpmEntries(prefix) for prefix in prefixes] for prefixes in self._prefixes]
        self._ports = [_fabric_ports(fabric, switch, self._place) for switch in self._switches]
        self._host_routes = [_host_routes(fabric, switch) for switch in self._switches]
        self._live: list[list[_LivePort]] = []
        self._rings: Rings = []
        self._entities: dict[str, tuple[Entity, ...]] = {}
        self.routes: dict[str, SwitchRoutes] = {}
        self.recomputed: frozenset[str] = frozenset()

    def plan(self, failures: Failures) -> dict[str, tuple[Entity, ...]]:
        """Return every switch's entities by name; the same objects as before for a switch that nothing touched."""
        self.update(failures)
        return dict(self._entities)

    def update(self, failures: Failures) -> frozenset[str]:
        """Follow the failures; return the switches whose routes have changed."""
        live = [
            [(place, hop) for place, hop, port in ports if failures.is_up(switch.name, port)]
            for switch, ports in zip(self._switches, self._ports, strict=True)
        ]
        rings = distance_rings([[place for place, _ in ports] for ports in live])
        touched = self._touched(live, rings)
        self._live, self._rings = live, rings
        self.recomputed = frozenset(self._switches[place].name for place in touched)
        changed = set()
        for place, switch in enumerate(self._switches):
            before = self.routes.get(switch.name)
            towards = self.next_hops_of(place) if place in touched else None
            hosts = tuple(
                route
                for port, routes in self._host_routes[place]
                if failures.is_up(switch.name, port)
                for route in routes
            )
            if before is not None and towards in (None, before.towards) and hosts == before.hosts:
                continue
            if towards is None:
                assert before is not None
                towards = before.towards
            routes = SwitchRoutes(hosts, towards, self._prefixes)
            self.routes[switch.name] = routes
            self._entities[switch.name] = self._switch_entities(switch, routes)
            changed.add(switch.name)
        return frozenset(changed)

    def _touched(self, live: list[list[_LivePort]], rings: Rings) -> set[int]:
        """Return the switches whose next hops may have changed: other live ports, or other distances there or next."""
        if not self._live:
            return set(range(len(live)))
        moved = {
            place
            for place in range(len(live))
            if [ring[place] for ring in rings if ring[place]]
            != [ring[place] for ring in self._rings if ring[place]]
        }
        return {
            place
            for place, ports in enumerate(live)
            if place in moved or ports != self._live[place] or not moved.isdisjoint(peer for peer, _ in ports)
        }

    def next_hops_of(self, place: int) -> dict[NextHops, int]:
        """Return a switch's next hops, the neighbours one hop nearer, and the switches that they lead to."""
        towards: dict[NextHops, int] = {}
        for hops in range(1, len(self._rings)):
            parts: list[tuple[NextHops, int]] = [((), self._rings[hops][place])]
            for peer, next_hop in self._live[place]:
                through = self._rings[hops - 1][peer] & self._rings[hops][place]
                if through:
                    parts = [
                        part
                        for next_hops, switches in parts
                        for part in (
                            ((*next_hops, next_hop), switches & through),
                            (next_hops, switches & ~through),
                        )
                        if part[1]
                    ]
            for next_hops, switches in parts:
                if switches:
                    towards[next_hops] = towards.get(next_hops, 0) | switches
        return towards

    def _switch_entities(self, switch: SwitchSpec, routes: SwitchRoutes) -> tuple[Entity, ...]:
        groups = routes.groups()
        entities = _selector_entities(switch, groups)
        entities += [_LpmEntries(route.prefix).next_hop(route.next_hops[0]) for route in routes.hosts]
        for next_hops, switches in routes.towards.items():
            group_id = groups.get(next_hops)
            for place in bits_of(switches):
                if group_id is None:
                    entities += [lpm.next_hop(next_hops[0]) for lpm in self._lpm[place]]
                else:
                    entities += [lpm.group(group_id) for lpm in self._lpm[place]]
        return tuple(entities)


class _LpmEntries:
    """Entries of a prefix; there is one object for all switches that send it to a group of the same number."""

    __slots__ = ("_groups", "_match", "_table")

    def __init__(self, prefix: Prefix) -> None:
        self._table = "ipv4_lpm" if prefix.version == 4 else "ipv6_lpm"
        self._match = {"destination": str(prefix)}
        self._groups: dict[int, Entity] = {}

    def group(self, group_id: int) -> Entity:
        found = self._groups.get(group_id)
        if found is None:
            found = self._groups[group_id] = entry(self._table, self._match, "set_ecmp_group", group=group_id)
        return found

    def next_hop(self, hop: NextHop) -> Entity:
        return entry(
            self._table,
            self._match,
            "set_next_hop",
            port=hop.port,
            source_mac=mac_number(hop.source_mac),
            destination_mac=mac_number(hop.destination_mac),
        )


def plane_routes(fabric: FabricSpec, plane: int, failures: Failures = NO_FAILURES) -> dict[str, SwitchRoutes]:
    """All routes of a plane's switches, by switch name; unreachable prefixes have none."""
    routing = ShortestPaths(fabric, plane)
    routing.update(failures)
    return routing.routes


def _fabric_ports(
    fabric: FabricSpec, switch: SwitchSpec, place: dict[str, int]
) -> list[tuple[int, NextHop, PortSpec]]:
    return [
        (place[port.peer.node], _next_hop(switch, port, fabric.switch(port.peer.node).mac), port)
        for port in switch.fabric_ports
    ]


def _host_routes(fabric: FabricSpec, switch: SwitchSpec) -> list[tuple[PortSpec, tuple[Route, Route]]]:
    """Return a switch's ports to hosts, each with the routes over it."""
    routes = []
    for port in switch.host_ports:
        nic = fabric.host(port.peer.node).nic(port.peer.port)
        hop = (_next_hop(switch, port, nic.mac),)
        routes.append((port, (Route(IPv4Network(nic.ipv4.ip), hop), Route(IPv6Network(nic.ipv6.ip), hop))))
    return routes


def _next_hop(switch: SwitchSpec, port: PortSpec, destination_mac: str) -> NextHop:
    return NextHop(port.number, switch.mac, destination_mac, port.link.rate_bps)


def _prefixes(fabric: FabricSpec, switch: SwitchSpec) -> tuple[Prefix, ...]:
    """Prefixes behind a switch: its hosts' subnets, or its own address if it has no hosts."""
    nics = [fabric.host(port.peer.node).nic(port.peer.port) for port in switch.host_ports]
    if not nics:
        return (IPv4Network(switch.address), IPv6Network(switch.ipv6))
    subnets: dict[Prefix, None] = {}
    for nic in nics:
        subnets[nic.ipv4.network] = None
        subnets[nic.ipv6.network] = None
    return tuple(subnets)


def _selector_entities(switch: SwitchSpec, groups: dict[NextHops, int]) -> list[Entity]:
    """Selector members and groups, and the `ecmp` table."""
    members = sorted({hop for hops in groups for hop in hops})
    entities: list[Entity] = [
        finsy.P4ActionProfileMember(
            SELECTOR,
            member_id=hop.port,
            action=finsy.P4TableAction(
                "set_next_hop",
                port=hop.port,
                source_mac=mac_number(hop.source_mac),
                destination_mac=mac_number(hop.destination_mac),
            ),
        )
        for hop in members
    ]
    # The same for every failure, because a group keeps its size.
    rates = {port.link.rate_bps for port in switch.fabric_ports}
    largest = len(switch.fabric_ports) if len(rates) < 2 else MOST_WEIGHT + len(switch.fabric_ports)
    for hops, group_id in groups.items():
        weights = member_weights([hop.rate_bps for hop in hops])
        entities.append(
            finsy.P4ActionProfileGroup(
                SELECTOR,
                group_id=group_id,
                max_size=largest,
                # A member whose port has lost its link is skipped at once, before the controller is notified.
                members=[
                    finsy.P4Member(hop.port, weight=(weight, hop.port))
                    for hop, weight in zip(hops, weights, strict=True)
                ],
            )
        )
        entities.append(group_entry("ecmp", {"group": group_id}, group_id))
    return entities


def member_weights(rates_bps: Sequence[int]) -> list[int]:
    """Return the weights of a group's members in proportion to their links' rates, the smallest whole numbers.

    Where these would be more than `MOST_WEIGHT` together, they are rounded so that they are about as many.
    """
    divisor = gcd(*rates_bps)
    weights = [rate_bps // divisor for rate_bps in rates_bps]
    most = max(MOST_WEIGHT, len(weights))
    if sum(weights) > most:
        weights = [max(1, round(rate_bps * most / sum(rates_bps))) for rate_bps in rates_bps]
    return weights


def _objection(_fabric: FabricSpec) -> str:
    return ""


def _is_deadlock_free(fabric: FabricSpec) -> bool:
    """Between tiers a shortest path goes up, then down, so there is no cycle of queues waiting for each other."""
    tiers = {switch.name: switch.tier for switch in fabric.switches}
    return all(tiers.get(link.a.node, -1) != tiers.get(link.b.node, -1) for link in fabric.links)


KIND = RoutingKind(
    name="shortest_paths",
    summary="ECMP over all shortest live paths",
    tables=("ipv4_lpm", "ipv6_lpm", "ecmp"),
    plane=ShortestPaths,
    objection=_objection,
    is_deadlock_free=_is_deadlock_free,
)
