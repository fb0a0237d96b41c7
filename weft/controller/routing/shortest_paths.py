"""Shortest paths: IPv4 and IPv6 prefixes, ECMP groups of an action selector.

A leaf delivers to its own hosts (/32, /128) with the host's MAC; every other prefix goes to the neighbours on shortest
live paths: a single link is a plain next hop, several links form a group. Parallel links are separate next hops, and a
group's members are weighted by their links' rates if these differ. There is one group per set of next hops, so the
number of groups does not grow with the destinations, and a failure changes few groups. With hierarchical addresses,
routes are summarised (`weft.controller.routing.summaries`), and only neighbours have routes to switches without hosts,
because these receive nothing but aggregation packets from neighbours. In a compact scope all routes are summarised, and
not even neighbours have routes to switches without hosts: aggregation chooses its ports itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from ipaddress import ip_network
from typing import TypeVar

from weft.controller.entities import Entity
from weft.controller.failures import Failures
from weft.controller.route_scope import ALL_ROUTES, RouteScope
from weft.controller.routing.channels import PortDestinations
from weft.controller.routing.kind import PlaneRouting, RoutingKind
from weft.controller.routing.lanes import Layers
from weft.controller.routing.routes import (
    Destinations,
    LpmEntries,
    NextHop,
    NextHops,
    Prefix,
    Route,
    SwitchRoutes,
    one_by_one,
)
from weft.controller.routing.summaries import Branch, JoinedPrefixes, address_tree, summarised
from weft.topologies import FabricSpec, PortSpec, SwitchSpec
from weft.topologies.addressing import IpVersion
from weft.topologies.distances import Rings, distance_rings

_Way = TypeVar("_Way")
_LivePort = tuple[int, NextHop]
"""A live port: its peer's place in the plane, and the next hop."""


class ShortestPaths(PlaneRouting):
    """The routes of a plane. A failure recomputes only the affected routes.

    Attributes:
        switches: the plane's switches.
        routes: routes of the latest plan, by switch name.
        recomputed: names of the switches for which the latest plan recomputed next hops.

    """

    def __init__(self, fabric: FabricSpec, plane: int, summarise: bool = True) -> None:
        self._fabric = fabric
        self._scope = ALL_ROUTES
        self._summarise = summarise
        self._switches = self.switches = fabric.switches_of_plane(plane)
        self._place = {switch.name: place for place, switch in enumerate(self._switches)}
        self._with_hosts = _bits_with_hosts(self._switches)
        self._is_hierarchical = all(switch.networks is not None for switch in self._switches)
        # Destinations allowed beyond adjacent switches.
        self._far = self._with_hosts if self._is_hierarchical else ~0
        self._ports = [_fabric_ports(fabric, switch, self._place) for switch in self._switches]
        self._live: list[list[_LivePort]] = []
        self._rings: Rings = []
        self._entities: dict[str, tuple[Entity, ...]] = {}
        self.routes: dict[str, SwitchRoutes] = {}
        self.recomputed: frozenset[str] = frozenset()

    def limit(self, scope: RouteScope) -> None:
        """Omit routes to addresses outside the scope, from the first plan on."""
        assert not self.routes, "a plan with another scope would be compared with this one"
        self._scope = scope

    @cached_property
    def _behind(self) -> list[Destinations]:
        versions = self._scope.ip_versions
        return [
            Destinations(tuple(map(LpmEntries, prefixes_behind(self._fabric, switch, versions))), 1 << place)
            for place, switch in enumerate(self._switches)
        ]

    @cached_property
    def _tree(self) -> Branch | None:
        return address_tree(self._switches, self._scope.ip_versions) if self._summarise else None

    @cached_property
    def _joined(self) -> JoinedPrefixes:
        return JoinedPrefixes(self._behind)

    @cached_property
    def _host_routes(self) -> list[list[tuple[PortSpec, tuple[Route, ...]]]]:
        return [_host_routes(self._fabric, switch, self._scope.ip_versions) for switch in self._switches]

    def plan(self, failures: Failures) -> dict[str, tuple[Entity, ...]]:
        """Return every switch's entities by name; the same objects as before for unaffected switches."""
        self.update(failures)
        return dict(self._entities)

    def update(self, failures: Failures) -> frozenset[str]:
        """Adapt the routes to the failures and return the switches with changed routes."""
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
            routes = SwitchRoutes(hosts, towards, self.entries_of(self._wanted(towards)))
            self.routes[switch.name] = routes
            self._entities[switch.name] = routes.entities(switch)
            changed.add(switch.name)
        return frozenset(changed)

    def entries_of(self, ways: dict[_Way, int]) -> list[tuple[Destinations, _Way]]:
        """Return the fewest prefixes that express the next hops to each switch, which is given as a bit."""
        if self._tree is not None:
            return summarised(self._tree, ways)
        if self._scope.is_compact:
            return [(self._joined.of(switches), way) for way, switches in ways.items()]
        return one_by_one(ways, self._behind)

    def _wanted(self, towards: dict[NextHops, int]) -> dict[NextHops, int]:
        """Return the next hops to the switches in the scope.

        Groups are numbered by all next hops, so a group has the same number in every scope.
        """
        if not self._scope.is_compact:
            return towards
        return {next_hops: part for next_hops, switches in towards.items() if (part := switches & self._with_hosts)}

    def destinations(self) -> PortDestinations:
        """Return the destinations that the latest plan sends over each port between switches; see PlaneRouting."""
        return {name: _over_ports(routes.towards) for name, routes in self.routes.items()}

    def layers(self) -> Layers:
        """Return no layers: all packets begin in lane 0."""
        return {}

    def _touched(self, live: list[list[_LivePort]], rings: Rings) -> set[int]:
        """Return the switches that may have new next hops: live ports, or distances here or at a neighbour, changed."""
        if not self._live:
            return set(range(len(live)))
        moved = {
            place
            for place in range(len(live))
            if [ring[place] for ring in rings if ring[place]] != [ring[place] for ring in self._rings if ring[place]]
        }
        return {
            place
            for place, ports in enumerate(live)
            if place in moved or ports != self._live[place] or not moved.isdisjoint(peer for peer, _ in ports)
        }

    def next_hops_of(self, place: int) -> dict[NextHops, int]:
        """Return a switch's next hops, with the switches reached through these neighbours, which are one hop nearer."""
        towards: dict[NextHops, int] = {}
        for hops in range(1, len(self._rings)):
            ring = self._rings[hops][place] & (self._far if hops > 1 else ~0)
            links = ((hop, self._rings[hops - 1][peer]) for peer, hop in self._live[place])
            add_next_hops(towards, ring, links)
        return towards


def add_next_hops(towards: dict[NextHops, int], destinations: int, links: Iterable[tuple[NextHop, int]]) -> None:
    """Add next hops for some destinations to a switch's next hops; all links that lead to a destination share its load.

    `links` are the switch's links, each with the switches that it leads to.
    """
    parts: list[tuple[NextHops, int]] = []
    left = destinations
    for hop, leads_to in links:
        through = leads_to & destinations
        # Neighbours lead to themselves alone, so most parts need not be looked at.
        if through & ~left:
            parts = [
                part
                for next_hops, switches in parts
                for part in (((*next_hops, hop), switches & through), (next_hops, switches & ~through))
                if part[1]
            ]
        if first := through & left:
            parts.append(((hop,), first))
            left &= ~first
    if left:
        parts.append(((), left))
    for next_hops, switches in parts:
        towards[next_hops] = towards.get(next_hops, 0) | switches


def _over_ports(towards: dict[NextHops, int]) -> dict[int, int]:
    ports: dict[int, int] = {}
    for next_hops, switches in towards.items():
        for hop in next_hops:
            ports[hop.port] = ports.get(hop.port, 0) | switches
    return ports


def _fabric_ports(fabric: FabricSpec, switch: SwitchSpec, place: dict[str, int]) -> list[tuple[int, NextHop, PortSpec]]:
    return [
        (place[port.peer.node], _next_hop(switch, port, fabric.switch(port.peer.node).mac), port)
        for port in switch.fabric_ports
    ]


def _host_routes(
    fabric: FabricSpec, switch: SwitchSpec, versions: Collection[IpVersion]
) -> list[tuple[PortSpec, tuple[Route, ...]]]:
    """Return a switch's host ports, each with its routes of these IP versions."""
    routes = []
    for port in switch.host_ports:
        nic = fabric.host(port.peer.node).nic(port.peer.port)
        hop = (_next_hop(switch, port, nic.mac),)
        prefixes = (ip_network(each.ip) for each in (nic.ipv4, nic.ipv6) if each.version in versions)
        routes.append((port, tuple(Route(prefix, hop) for prefix in prefixes)))
    return routes


def _next_hop(switch: SwitchSpec, port: PortSpec, destination_mac: str) -> NextHop:
    return NextHop(port.number, switch.mac, destination_mac, port.link.rate_bps)


def _bits_with_hosts(switches: tuple[SwitchSpec, ...]) -> int:
    return sum(1 << place for place, switch in enumerate(switches) if switch.host_ports)


def prefixes_behind(
    fabric: FabricSpec, switch: SwitchSpec, versions: Collection[IpVersion] = ALL_ROUTES.ip_versions
) -> tuple[Prefix, ...]:
    """Return the prefixes of a switch: its hosts' subnets, or its own address if it has no hosts.

    A subnet that spans several switches, as in network files, is replaced by the addresses of its hosts.
    """
    if switch.networks is not None:
        return tuple(each for each in switch.networks if each.version in versions)
    nics = [fabric.host(port.peer.node).nic(port.peer.port) for port in switch.host_ports]
    if not nics:
        return tuple(ip_network(each) for each in (switch.address, switch.ipv6) if each.version in versions)
    subnets: dict[Prefix, None] = {}
    for nic in nics:
        for interface in (each for each in (nic.ipv4, nic.ipv6) if each.version in versions):
            is_shared = interface.network in fabric.subnets_of_several_switches
            subnets[ip_network(interface.ip) if is_shared else interface.network] = None
    return tuple(subnets)


def _objection(_fabric: FabricSpec) -> str:
    return ""


def _is_deadlock_free(fabric: FabricSpec) -> bool:
    """Return whether shortest paths in the fabric's kind of topology go up the tiers, then down.

    Then buffers wait only for buffers further up or, once packets go down, further down, which closes no cycle.
    """
    # Kinds of topology need pydantic, which is slow to import.
    from weft.topologies.kinds import TOPOLOGY_KINDS

    kind = str(fabric.parameters.get("kind", ""))
    return kind in TOPOLOGY_KINDS and TOPOLOGY_KINDS[kind].is_up_down


KIND = RoutingKind(
    name="shortest_paths",
    summary="ECMP over all shortest live paths",
    tables=("ipv4_lpm", "ipv6_lpm", "ecmp"),
    plane=ShortestPaths,
    objection=_objection,
    is_deadlock_free=_is_deadlock_free,
)
