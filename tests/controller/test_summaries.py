"""Summarised routes forward every host's address as routes to every single subnet do."""

from __future__ import annotations

import itertools
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controller.any_graph import failures_one_by_one
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.features import Settings
from weft.controller.plan import FabricState, Planner, desired_entities
from weft.controller.route_scope import RouteScope
from weft.controller.routing.routes import Destinations, LpmEntries, NextHops, SwitchRoutes
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.controller.routing.summaries import JoinedPrefixes
from weft.topologies import FabricSpec, LinkSpec, fat_tree, leaf_spine
from weft.topologies.builder import FabricBuilder

LINK = LinkSpec(10**10, 10**6, 512 * 1024)


def grid(sides: tuple[int, ...], wraps: bool) -> FabricSpec:
    """Nodes in a grid, each with a host; links wrap around or not."""
    builder = FabricBuilder()
    places = list(itertools.product(*map(range, sides)))
    nodes = {place: builder.add_switch(0, "node", coordinates=place) for place in places}
    for node in nodes.values():
        builder.add_host([node], LINK)
    for place, (axis, side) in itertools.product(places, enumerate(sides)):
        if side > 1 and (wraps or place[axis] + 1 < side):
            near = tuple((at + (each == axis)) % sides[each] for each, at in enumerate(place))
            builder.add_link(nodes[place], nodes[near], LINK)
    return builder.build({})


def tree(pods: int, leaves: int, spines: int, cores: int) -> FabricSpec:
    """A small fat tree whose switches are of roles that have no octets."""
    builder = FabricBuilder()
    tors = [builder.add_switch(0, "tor", coordinates=(pod, at)) for pod in range(pods) for at in range(leaves)]
    for tor in tors:
        builder.add_host([tor], LINK)
    tops = [[builder.add_switch(0, "core", coordinates=(at, core)) for core in range(cores)] for at in range(spines)]
    for pod, at in itertools.product(range(pods), range(spines)):
        spine = builder.add_switch(0, "spine", coordinates=(pod, at), position=(at, pod))
        for tor in tors[pod * leaves : (pod + 1) * leaves]:
            builder.add_link(tor, spine, LINK)
        for core in tops[at]:
            builder.add_link(spine, core, LINK)
    return builder.build({})


FABRICS = [grid((3, 4, 2), True), grid((4, 5), False), grid((7,), True), tree(5, 3, 2, 2), tree(3, 4, 3, 1)]


@st.composite
def broken_fabrics(draw: st.DrawFn) -> tuple[FabricSpec, Failures]:
    """A fabric, and some of its links and switches down."""
    fabric = draw(st.sampled_from(FABRICS))
    failures = NO_FAILURES
    for link in draw(st.lists(st.sampled_from(fabric.links), max_size=8, unique=True)):
        failures = failures.with_link(link)
    for switch in draw(st.lists(st.sampled_from(fabric.switches), max_size=2, unique=True)):
        failures = failures.with_switch(switch.name)
    return fabric, failures


def forwards(routes: SwitchRoutes, addresses: list[IPv4Address | IPv6Address]) -> list[NextHops]:
    """Return where a switch sends each address by longest prefix; () for nowhere."""
    tables: dict[tuple[int, int, int], NextHops] = {}
    for route in routes:
        key = route.prefix.version, route.prefix.prefixlen, int(route.prefix.network_address)
        assert key not in tables
        tables[key] = route.next_hops
    lengths = sorted({(version, length) for version, length, _ in tables}, reverse=True)
    found = []
    for address in addresses:
        bits = address.max_prefixlen
        matches = (
            tables.get((version, length, int(address) >> (bits - length) << (bits - length)))
            for version, length in lengths
            if version == address.version
        )
        found.append(next((match for match in matches if match is not None), ()))
    return found


@given(broken_fabrics())
@settings(deadline=None, max_examples=60)
def test_summarised_routes_forward_as_all_routes_do(broken: tuple[FabricSpec, Failures]) -> None:
    fabric, failures = broken
    one_by_one, summarised = ShortestPaths(fabric, 0, summarise=False), ShortestPaths(fabric, 0)
    one_by_one.update(failures)
    summarised.update(failures)
    addresses: list[IPv4Address | IPv6Address] = [
        address
        for host in fabric.hosts
        for address in (host.nic(0).ipv4.ip, host.nic(0).ipv4.ip + 2, host.nic(0).ipv6.ip)
    ]
    addresses += [address for switch in fabric.switches for address in (switch.address, switch.ipv6)]
    for name, routes in summarised.routes.items():
        assert forwards(routes, addresses) == forwards(one_by_one.routes[name], addresses), name
        assert len(list(routes)) <= len(list(one_by_one.routes[name]))


def test_a_fat_tree_s_routes_do_not_grow_with_its_hosts() -> None:
    pods = 16
    fabric = fat_tree(pods=pods, leaves_per_pod=16, spines_per_pod=2, cores_per_spine=2, hosts_per_leaf=1)
    routing = ShortestPaths(fabric, 0)
    routing.update(NO_FAILURES)
    per_version = {
        role: max(len(list(routing.routes[switch.name])) // 2 for switch in fabric.switches_with_role(0, role))
        for role in ("leaf", "spine", "core")
    }
    # A leaf: its host, a prefix for each bit of pod and leaf, its spines. A spine: its leaves and cores, and the pods'
    # bits. A core: pods, and their spines.
    assert per_version == {"leaf": 1 + 8 + 2, "spine": 16 + 4 + 2, "core": 2 * pods}
    assert str(next(iter(routing.routes["p0l0"].elsewhere))[0].entries[0].prefix) == "10.0.0.4/30"


def test_switches_without_hosts_are_reached_from_next_door() -> None:
    fabric = tree(3, 2, 2, 1)
    routing = ShortestPaths(fabric, 0)
    routing.update(NO_FAILURES)
    addresses: list[IPv4Address | IPv6Address] = [fabric.switch(name).address for name in ("p0s0", "p0s2", "p0c0")]
    found = forwards(routing.routes["p0t0"], addresses)
    assert [bool(hops) for hops in found] == [True, False, False]
    found = forwards(routing.routes["p0s0"], addresses)
    assert [bool(hops) for hops in found] == [False, False, True]


OCTETS = [
    leaf_spine(planes=1, leaves=5, spines=2, hosts_per_leaf=2),
    leaf_spine(planes=1, leaves=16, spines=3, hosts_per_leaf=1),
    fat_tree(pods=3, leaves_per_pod=4, spines_per_pod=2, cores_per_spine=2, hosts_per_leaf=2),
    fat_tree(pods=5, leaves_per_pod=2, spines_per_pod=2, cores_per_spine=1, hosts_per_leaf=1),
]


@st.composite
def octets_and_failures(draw: st.DrawFn) -> tuple[FabricSpec, list[Failures]]:
    """A fabric without hierarchical addresses, and its failures after each of some events."""
    fabric = draw(st.sampled_from(OCTETS))
    return fabric, [NO_FAILURES, *draw(failures_one_by_one(fabric, most=6))]


@given(octets_and_failures(), st.sampled_from([(4,), (6,), (4, 6)]))
@settings(deadline=None, max_examples=60)
def test_compact_routes_forward_each_address_as_all_routes_do(
    events: tuple[FabricSpec, list[Failures]], versions: tuple[Literal[4, 6], ...]
) -> None:
    fabric, sequence = events
    every, compact = ShortestPaths(fabric, 0), ShortestPaths(fabric, 0)
    compact.limit(RouteScope(versions, is_compact=True))
    nics = [host.nic(0) for host in fabric.hosts]
    of_edges = [each for nic in nics for each in (nic.ipv4.ip, nic.ipv6.ip)]
    # Also addresses that no node has, within subnets and between them.
    unused = [IPv4Address("10.0.0.77"), IPv4Address("10.0.77.1"), IPv4Address("10.1.0.1"), IPv6Address("fd00:0:77::1")]
    edges = [each for switch in fabric.switches if switch.host_ports for each in (switch.address, switch.ipv6)]
    inner = [switch for switch in fabric.switches if not switch.host_ports]
    addresses = [each for each in (*of_edges, *unused, *edges) if each.version in versions]
    for failures in sequence:
        every.update(failures)
        compact.update(failures)
        for switch in fabric.switches:
            routes, whole = compact.routes[switch.name], every.routes[switch.name]
            assert forwards(routes, addresses) == forwards(whole, addresses), switch.name
            assert {route.prefix.version for route in routes} <= set(versions)
            assert routes.groups() == whole.groups()
            own = [other.address_of(version) for other in inner for version in versions]
            assert forwards(routes, own) == [()] * len(own), switch.name


@given(octets_and_failures())
@settings(deadline=None, max_examples=20)
def test_compact_plans_depend_on_the_failures_only(events: tuple[FabricSpec, list[Failures]]) -> None:
    fabric, sequence = events
    chosen = Settings(routes=RouteScope((4,), is_compact=True))
    planner = Planner(fabric)
    for failures in sequence:
        state = FabricState(failures)
        plans = {name: list(plan) for name, plan in planner.plan(chosen, state).items()}
        assert plans == desired_entities(fabric, chosen, state)


def test_halves_with_a_next_hop_become_their_whole() -> None:
    fabric = leaf_spine(planes=1, leaves=4, spines=2, hosts_per_leaf=1)
    routing = ShortestPaths(fabric, 0)
    routing.limit(RouteScope((4,), is_compact=True))
    routing.update(NO_FAILURES)
    prefixes = [str(route.prefix) for route in routing.routes["p0l0"]]
    assert prefixes == ["10.0.0.1/32", "10.0.1.0/24", "10.0.2.0/23"]


def test_a_whole_that_a_switch_has_is_not_made() -> None:
    networks = [IPv4Network(each) for each in ("10.0.0.0/24", "10.0.1.0/24", "10.0.0.0/23")]
    joined = JoinedPrefixes([Destinations((LpmEntries(each),), 1 << place) for place, each in enumerate(networks)])
    assert [lpm.prefix for lpm in joined.of(0b011).entries] == networks[:2]
