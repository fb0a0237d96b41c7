"""Routes of a plane: shortest paths, IPv4 and IPv6 prefixes, ECMP groups of an action selector.

A leaf delivers to its own hosts (/32, /128) with the host's MAC; every other prefix goes to the neighbours
on shortest live paths: one neighbour makes a plain next hop, several a group. There is one group per set of
neighbours, so that the groups do not grow with the destinations; a failure changes few of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

import finsy

from weft.controller.entities import Entity, entry, group_entry
from weft.controller.failures import NO_FAILURES, Failures
from weft.topologies import FabricSpec, SwitchSpec

SELECTOR = "ecmp_selector"
Prefix = IPv4Network | IPv6Network


@dataclass(frozen=True, order=True)
class NextHop:
    """Where a packet goes: out of `port` with these MACs."""

    port: int
    source_mac: str
    destination_mac: str


_Neighbours = list[tuple[str, NextHop]]


@dataclass(frozen=True)
class Route:
    """A prefix and its next hops, in order of their ports; several mean ECMP."""

    prefix: Prefix
    next_hops: tuple[NextHop, ...]


def plane_routes(
    fabric: FabricSpec, plane: int, failures: Failures = NO_FAILURES
) -> dict[str, tuple[Route, ...]]:
    """All routes of a plane's switches, by switch name; unreachable prefixes have none."""
    switches = fabric.switches_of_plane(plane)
    neighbours = {switch.name: _neighbours(fabric, switch, failures) for switch in switches}
    routes: dict[str, list[Route]] = {
        switch.name: _host_routes(fabric, switch, failures) for switch in switches
    }
    for destination in switches:
        distance = _distances(neighbours, destination.name)
        prefixes = _prefixes(fabric, destination)
        for name, hops in _hops_towards(neighbours, distance):
            routes[name].extend(Route(prefix, hops) for prefix in prefixes)
    return {name: tuple(found) for name, found in routes.items()}


def _neighbours(fabric: FabricSpec, switch: SwitchSpec, failures: Failures) -> _Neighbours:
    return [
        (port.peer.node, NextHop(port.number, switch.mac, fabric.switch(port.peer.node).mac))
        for port in failures.live_ports(switch)
    ]


def _distances(neighbours: Mapping[str, _Neighbours], target: str) -> dict[str, int]:
    """Hops from every switch that still reaches `target`, itself included (breadth first)."""
    distance = {target: 0}
    frontier = [target]
    while frontier:
        following = []
        for name in frontier:
            for peer, _ in neighbours[name]:
                if peer not in distance:
                    distance[peer] = distance[name] + 1
                    following.append(peer)
        frontier = following
    return distance


def _hops_towards(
    neighbours: Mapping[str, _Neighbours], distance: Mapping[str, int]
) -> Iterator[tuple[str, tuple[NextHop, ...]]]:
    """Every switch that reaches the target from afar, and its next hops: the neighbours one hop nearer."""
    for name, here in distance.items():
        if here:
            yield name, tuple(hop for peer, hop in neighbours[name] if distance[peer] == here - 1)


def _host_routes(fabric: FabricSpec, switch: SwitchSpec, failures: Failures) -> list[Route]:
    routes = []
    for port in switch.host_ports:
        if failures.is_up(switch.name, port):
            nic = fabric.host(port.peer.node).nic(port.peer.port)
            hop = (NextHop(port.number, switch.mac, nic.mac),)
            routes.append(Route(IPv4Network(nic.ipv4.ip), hop))
            routes.append(Route(IPv6Network(nic.ipv6.ip), hop))
    return routes


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


def route_entities(switch: SwitchSpec, routes: Sequence[Route]) -> list[Entity]:
    """Entities of one switch's routes: selector members and groups, the `ecmp` table, both LPM tables."""
    groups = ecmp_groups(routes)
    members = sorted({hop for hops in groups for hop in hops})
    entities: list[Entity] = [
        finsy.P4ActionProfileMember(
            SELECTOR,
            member_id=hop.port,
            action=finsy.P4TableAction(
                "set_next_hop", port=hop.port, source_mac=hop.source_mac, destination_mac=hop.destination_mac
            ),
        )
        for hop in members
    ]
    largest = len(switch.fabric_ports)
    for hops, group_id in groups.items():
        entities.append(
            finsy.P4ActionProfileGroup(
                SELECTOR,
                group_id=group_id,
                max_size=largest,
                # A member whose port has lost its link is skipped at once, before the controller has heard of it.
                members=[finsy.P4Member(hop.port, weight=(1, hop.port)) for hop in hops],
            )
        )
        entities.append(group_entry("ecmp", {"group": group_id}, group_id))
    entities.extend(_lpm_entry(route, groups) for route in routes)
    return entities


def ecmp_groups(routes: Iterable[Route]) -> dict[tuple[NextHop, ...], int]:
    """Group ids, from 1, of all sets of several next hops; the largest sets first."""
    sets = {route.next_hops for route in routes if len(route.next_hops) > 1}
    ordered = sorted(sets, key=lambda hops: (-len(hops), hops))
    return {hops: group_id for group_id, hops in enumerate(ordered, start=1)}


def _lpm_entry(route: Route, groups: dict[tuple[NextHop, ...], int]) -> Entity:
    table = "ipv4_lpm" if route.prefix.version == 4 else "ipv6_lpm"
    match = {"destination": str(route.prefix)}
    if len(route.next_hops) > 1:
        return entry(table, match, "set_ecmp_group", group=groups[route.next_hops])
    hop = route.next_hops[0]
    return entry(
        table,
        match,
        "set_next_hop",
        port=hop.port,
        source_mac=hop.source_mac,
        destination_mac=hop.destination_mac,
    )
