"""Cycles in the channel dependency graph of routes: found where they are, named hop by hop, avoided by lanes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topologies.test_builder import LINK, torus
from weft.controller.failures import NO_FAILURES
from weft.controller.features import Settings
from weft.controller.lossless import cycle_of_planes, cycle_of_routes
from weft.controller.plan import FabricState, Planner
from weft.controller.routing import ROUTING_KINDS
from weft.controller.routing.channels import Channel, cycle_text, find_cycle
from weft.controller.routing.lanes import ONE_LANE, LaneRule, Layers, VirtualLanes
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.topologies import FabricSpec, fat_tree, leaf_spine
from weft.topologies.builder import FabricBuilder

Edges = set[tuple[Channel, Channel]]


def ring(length: int) -> FabricSpec:
    """Switches in a ring, each with a host: port 1; port 2 leads on, port 3 back (the last one's the other way)."""
    return torus((length,))


def port_to(fabric: FabricSpec, switch: int, peer: int) -> int:
    (link,) = fabric.links_between(f"p0n{switch}", f"p0n{peer}")
    return link.a.port if link.a.node == f"p0n{switch}" else link.b.port


def clockwise(fabric: FabricSpec) -> dict[str, dict[int, int]]:
    """All packets go one way round."""
    count = len(fabric.switches)
    return {
        f"p0n{each}": {port_to(fabric, each, (each + 1) % count): (1 << count) - 1 & ~(1 << each)}
        for each in range(count)
    }


def dependencies(
    fabric: FabricSpec,
    destinations: Mapping[str, Mapping[int, int]],
    lanes: VirtualLanes,
    layers: Layers,
) -> Edges:
    """The definition: follow each destination's packets from each host, one by one."""
    place = {switch.name: number for number, switch in enumerate(fabric.switches)}
    edges: Edges = set()
    for destination in fabric.switches:
        if not destination.host_ports:
            continue
        bit = 1 << place[destination.name]
        seen: set[tuple[str, int, int, Channel | None]] = set()
        todo: list[tuple[str, int, int, Channel | None]] = [
            (switch.name, port.number, layer_of(layers.get(switch.name, {}), bit), None)
            for switch in fabric.switches
            for port in switch.host_ports
            if switch is not destination
        ]
        while todo:
            name, ingress, lane, came_in = todo.pop()
            if (name, ingress, lane, came_in) in seen or name == destination.name:
                continue
            seen.add((name, ingress, lane, came_in))
            for port, bits in destinations[name].items():
                if bits & bit:
                    channel = Channel(name, port, lanes.after(name, ingress, port, lane))
                    if came_in is not None:
                        edges.add((came_in, channel))
                    peer = fabric.switch(name).port(port).peer
                    todo.append((peer.node, peer.port, channel.lane, channel))
    return edges


def layer_of(layers: Mapping[int, int], bit: int) -> int:
    return next((layer for layer, bits in layers.items() if bits & bit), 0)


def has_cycle(edges: Edges) -> bool:
    """Remove what nothing depends on until nothing changes."""
    left = set(edges)
    while True:
        sources = {source for source, _ in left}
        kept = {edge for edge in left if edge[1] in sources}
        if kept == left:
            return bool(left)
        left = kept


Routed = tuple[FabricSpec, dict[str, dict[int, int]], VirtualLanes, Layers]


@st.composite
def routed_fabrics(draw: st.DrawFn) -> Routed:
    """Any switches, links and hosts, any next hops, sensible or not, and any lanes."""
    count = draw(st.integers(2, 5))
    builder = FabricBuilder()
    nodes = [builder.add_switch(0, "node", coordinates=(each,)) for each in range(count)]
    for each in draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=4)):
        builder.add_host([nodes[each]], LINK)
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] != pair[1])
    for a, b in draw(st.lists(pairs, min_size=1, max_size=7)):
        builder.add_link(nodes[a], nodes[b], LINK)
    fabric = builder.build({})
    lane_count = draw(st.integers(1, 3))
    lane = st.integers(0, lane_count - 1)
    destinations, rules = {}, {}
    for switch in fabric.switches:
        ports = [port.number for port in switch.fabric_ports]
        destinations[switch.name] = {port: draw(st.integers(0, (1 << count) - 1)) for port in ports}
        any_port = st.none() | st.sampled_from([port.number for port in switch.ports] or [1])
        some = st.builds(LaneRule, lane, lane, any_port, any_port)
        rules[switch.name] = tuple(draw(st.lists(some, max_size=3)))
    layers: dict[str, dict[int, int]] = {}
    for name, place in draw(st.sets(st.tuples(st.sampled_from(sorted(destinations)), st.integers(0, count - 1)))):
        of_switch = layers.setdefault(name, {})
        if layer := draw(lane):
            of_switch[layer] = of_switch.get(layer, 0) | 1 << place
    return fabric, destinations, VirtualLanes(lane_count, rules), layers


@settings(deadline=None, max_examples=300)
@given(routed_fabrics())
def test_a_cycle_is_found_exactly_where_there_is_one(
    routed: Routed,
) -> None:
    fabric, destinations, lanes, layers = routed
    edges = dependencies(fabric, destinations, lanes, layers)
    cycle = find_cycle(fabric.switches, destinations, lanes, layers)
    assert bool(cycle) == has_cycle(edges)
    assert all(edge in edges for edge in zip(cycle, (*cycle[1:], *cycle[:1]), strict=True))
    assert len(set(cycle)) == len(cycle)


def test_a_ring_that_all_go_round_one_way_is_a_cycle() -> None:
    fabric = ring(4)
    cycle = find_cycle(fabric.switches, clockwise(fabric), ONE_LANE)
    assert {(each.switch, each.lane) for each in cycle} == {(f"p0n{number}", 0) for number in range(4)}
    text = cycle_text(cycle)
    assert text.count(" → ") == 4
    assert text.startswith(f"{cycle[0]} → ")
    assert text.endswith(f" → {cycle[0]}")
    assert str(cycle[0]) == f"{cycle[0].switch}:{cycle[0].port} (lane 0)"


def test_a_second_lane_after_a_dateline_cuts_it() -> None:
    """Dally and Seitz 1987, section IV: between the last switch and the first, packets change to the other lane."""
    fabric = ring(4)
    across = port_to(fabric, 3, 0)
    lanes = VirtualLanes(2, {"p0n3": (LaneRule(0, 1, egress_port=across),)})
    assert find_cycle(fabric.switches, clockwise(fabric), lanes) == ()


def test_layers_keep_routes_apart_that_would_make_a_cycle() -> None:
    """Two destinations side by side need three of the four links one after the other; three need all."""
    fabric = ring(4)
    routes = clockwise(fabric)
    lanes = VirtualLanes(2, has_layers=True)
    for destinations, length in ((0b0110, 0), (0b0010, 4)):
        layers = {switch.name: {1: destinations} for switch in fabric.switches}
        assert len(find_cycle(fabric.switches, routes, lanes, layers)) == length


def test_a_layer_may_be_of_one_way_alone() -> None:
    """The four ways of two links each make the ring; three of them leave it open."""
    fabric = ring(4)
    two_on = {
        f"p0n{each}": {port_to(fabric, each, (each + 1) % 4): 1 << (each + 1) % 4 | 1 << (each + 2) % 4}
        for each in range(4)
    }
    lanes = VirtualLanes(2, has_layers=True)
    assert len(find_cycle(fabric.switches, two_on, lanes)) == 4
    assert find_cycle(fabric.switches, two_on, lanes, {"p0n1": {1: 0b1000}}) == ()


@pytest.mark.parametrize("length", [4, 5, 6])
def test_shortest_paths_round_a_ring_are_refused(length: int) -> None:
    cycle = cycle_of_routes(ring(length), "shortest_paths")
    assert len(cycle) == length


def test_a_ring_of_three_has_no_way_through_a_switch() -> None:
    assert cycle_of_routes(ring(3), "shortest_paths") == ()


@pytest.mark.parametrize(
    "fabric",
    [
        leaf_spine(planes=2, leaves=4, spines=3, hosts_per_leaf=2),
        fat_tree(planes=1, pods=3, leaves_per_pod=2, spines_per_pod=2, cores_per_spine=2, hosts_per_leaf=1),
    ],
    ids=["leaf_spine", "fat_tree"],
)
def test_tiers_are_free_of_cycles(fabric: FabricSpec) -> None:
    kind = ROUTING_KINDS["shortest_paths"]
    assert kind.is_deadlock_free(fabric)
    planes = [kind.plane(fabric, plane) for plane in range(fabric.planes)]
    for plane in planes:
        plane.plan(NO_FAILURES)
    assert cycle_of_planes(fabric, kind, planes) == ()


def test_a_failure_may_bring_a_cycle() -> None:
    """Leaves that have kept two spines each make a ring, in which packets go down and up again."""
    fabric = leaf_spine(planes=1, leaves=4, spines=4, hosts_per_leaf=1)
    planner = Planner(fabric)
    planner.plan(Settings(), FabricState())
    assert planner.cycle() == ()
    failures = NO_FAILURES
    for leaf, spine in itertools.product(range(4), repeat=2):
        if spine not in (leaf, (leaf + 1) % 4):
            failures = failures.with_link(fabric.link_between(f"p0l{leaf}", f"p0s{spine}"))
    planner.plan(Settings(), FabricState(failures))
    assert len(planner.cycle()) == 8


def test_what_no_host_sends_makes_no_cycle() -> None:
    """The routes of a switch without hosts that no packet comes by."""
    fabric = ring(4)
    routes = clockwise(fabric)
    quiet = {name: {port: bits & 0b0010 for port, bits in ports.items()} for name, ports in routes.items()}
    assert find_cycle(fabric.switches, quiet, ONE_LANE) == ()


def test_a_kind_says_its_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clockwise(ShortestPaths):
        def destinations(self) -> dict[str, dict[int, int]]:
            return clockwise(fabric)

    fabric = ring(5)
    across = port_to(fabric, 4, 0)
    lanes = VirtualLanes(2, {"p0n4": (LaneRule(0, 1, egress_port=across),)})
    kind = replace(ROUTING_KINDS["shortest_paths"], name="clockwise", plane=Clockwise)
    monkeypatch.setitem(ROUTING_KINDS._kinds, "clockwise", kind)
    assert cycle_of_routes(fabric, "clockwise")
    monkeypatch.setitem(ROUTING_KINDS._kinds, "clockwise", replace(kind, lanes=lambda *_: lanes))
    assert cycle_of_routes(fabric, "clockwise") == ()
