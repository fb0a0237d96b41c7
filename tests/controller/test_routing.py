"""Routes, walked packet by packet: every host reaches every host, also around failures, and nothing loops."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import finsy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.routing.routes import SELECTOR, Route, SwitchRoutes
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.topologies import FabricSpec, HostSpec, leaf_spine

FABRIC = leaf_spine(planes=2, leaves=4, spines=3, hosts_per_leaf=2)


def plane_routes(fabric: FabricSpec, plane: int, failures: Failures = NO_FAILURES) -> dict[str, SwitchRoutes]:
    routing = ShortestPaths(fabric, plane)
    routing.update(failures)
    return routing.routes


def longest_match(routes: SwitchRoutes, address: IPv4Address | IPv6Address) -> Route | None:
    matching = [route for route in routes if route.prefix.version == address.version and address in route.prefix]
    return max(matching, key=lambda route: route.prefix.prefixlen, default=None)


def delivered_to(
    fabric: FabricSpec,
    routes: dict[str, SwitchRoutes],
    leaf: str,
    address: IPv4Address | IPv6Address,
    failures: Failures,
) -> set[str]:
    """Everywhere a packet can end up over all ECMP choices; fails on a loop or a wrong MAC."""
    ends: set[str] = set()
    pending = [(leaf, 0)]
    while pending:
        name, hops = pending.pop()
        assert hops < 8, f"{address} loops at {name}"
        route = longest_match(routes[name], address)
        if route is None:
            ends.add(f"dropped at {name}")
            continue
        for hop in route.next_hops:
            switch = fabric.switch(name)
            port = switch.port(hop.port)
            assert failures.is_up(name, port)
            assert hop.source_mac == switch.mac
            if port.peer_is_host:
                assert hop.destination_mac == fabric.host(port.peer.node).nic(port.peer.port).mac
                ends.add(port.peer.node)
            else:
                assert hop.destination_mac == fabric.switch(port.peer.node).mac
                pending.append((port.peer.node, hops + 1))
    return ends


def addresses(host: HostSpec, plane: int) -> tuple[IPv4Address, IPv6Address]:
    nic = host.nic(plane)
    return nic.ipv4.ip, nic.ipv6.ip


@pytest.mark.parametrize("plane", [0, 1])
def test_every_host_reaches_every_host_over_all_spines(plane: int) -> None:
    routes = plane_routes(FABRIC, plane)
    for source in FABRIC.hosts:
        leaf = source.nic(plane).switch
        for destination in FABRIC.hosts:
            for address in addresses(destination, plane):
                assert delivered_to(FABRIC, routes, leaf, address, NO_FAILURES) == {destination.name}
                route = longest_match(routes[leaf], address)
                assert route is not None
                assert len(route.next_hops) == (1 if destination.nic(plane).switch == leaf else 3)


def test_leaves_reach_the_addresses_of_spines() -> None:
    routes = plane_routes(FABRIC, 0)
    for spine in FABRIC.switches_with_role(0, "spine"):
        route = longest_match(routes["p0l2"], spine.address)
        assert route is not None
        assert [FABRIC.switch("p0l2").port(hop.port).peer.node for hop in route.next_hops] == [spine.name]


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_failures_never_loop_and_lose_only_the_unreachable(data: st.DataObject) -> None:
    fabric_links = [link for link in FABRIC.links if link.a.node.startswith("p0")]
    broken = data.draw(st.lists(st.sampled_from(fabric_links), max_size=6, unique=True))
    failures = NO_FAILURES
    for link in broken:
        failures = failures.with_link(link)
    if data.draw(st.booleans()):
        failures = failures.with_switch("p0s2")
    routes = plane_routes(FABRIC, 0, failures)
    source, destination = data.draw(st.permutations(FABRIC.hosts))[:2]
    for address in addresses(destination, 0):
        ends = delivered_to(FABRIC, routes, source.nic(0).switch, address, failures)
        if connected(source.nic(0).switch, destination.nic(0).switch, failures):
            assert ends == {destination.name}
        else:
            assert all(end.startswith("dropped") for end in ends)


def connected(start: str, end: str, failures: Failures) -> bool:
    reached, pending = {start}, [start]
    while pending:
        name = pending.pop()
        for port in FABRIC.switch(name).fabric_ports:
            if failures.is_up(name, port) and port.peer.node not in reached:
                reached.add(port.peer.node)
                pending.append(port.peer.node)
    return end in reached


def test_groups_are_per_set_of_neighbours_and_keep_their_numbers_when_a_link_fails() -> None:
    routing = ShortestPaths(FABRIC, 0)
    routing.plan(NO_FAILURES)
    assert list(routing.routes["p0l0"].groups().values()) == [1]
    entities = routing.plan(NO_FAILURES.with_link(FABRIC.link_between("p0l3", "p0s0")))["p0l0"]
    groups = routing.routes["p0l0"].groups()
    assert {group: len(hops) for hops, group in groups.items()} == {1: 3, 2: 2}
    selectors = [entity for entity in entities if isinstance(entity, finsy.P4ActionProfileGroup)]
    assert [[member.member_id for member in group.members or ()] for group in selectors] == [
        [3, 4, 5],
        [4, 5],
    ]
    assert all(group.action_profile_id == SELECTOR and group.max_size == 3 for group in selectors)


def test_a_dead_host_link_leaves_no_route_to_the_host() -> None:
    routes = plane_routes(FABRIC, 0, NO_FAILURES.with_link(FABRIC.link_between("h0", "p0l0")))
    nic = FABRIC.host("h0").nic(0)
    assert longest_match(routes["p0l0"], nic.ipv4.ip) is None
    assert longest_match(routes["p0l0"], FABRIC.host("h1").nic(0).ipv4.ip) is not None
