"""A plan that follows events one by one is the plan made afresh, and leaves alone what they do not touch."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controller.any_graph import failures_one_by_one
from tests.refusals import refused
from weft.controller.errors import SettingError
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.features import Settings
from weft.controller.plan import FabricState, Planner, desired_entities
from weft.controller.routing import plane_routings
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.topologies import FabricSpec, fat_tree, leaf_spine
from weft.topologies.distances import bits_of, distance_rings, distances_from
from weft.topologies.graph import to_networkx

FABRICS = [
    leaf_spine(planes=2, leaves=4, spines=3, hosts_per_leaf=2),
    fat_tree(pods=3, leaves_per_pod=2, spines_per_pod=2, cores_per_spine=2, hosts_per_leaf=1),
]


@st.composite
def event_sequences(draw: st.DrawFn) -> tuple[FabricSpec, list[Failures]]:
    """A fabric, and its failures after each of some links and switches going down and up."""
    fabric = draw(st.sampled_from(FABRICS))
    return fabric, draw(failures_one_by_one(fabric, most=8))


@given(event_sequences())
@settings(deadline=None, max_examples=30)
def test_following_events_gives_the_plan_made_afresh(events: tuple[FabricSpec, list[Failures]]) -> None:
    fabric, sequence = events
    planner = Planner(fabric)
    for failures in sequence:
        followed = planner.plan(Settings(), FabricState(failures))
        afresh = desired_entities(fabric, Settings(), FabricState(failures))
        assert {name: list(plan) for name, plan in followed.items()} == afresh


@given(event_sequences())
@settings(deadline=None, max_examples=30)
def test_a_switch_keeps_its_entities_unless_its_routes_have_changed(
    events: tuple[FabricSpec, list[Failures]],
) -> None:
    fabric, sequence = events
    for plane in range(fabric.planes):
        routing = ShortestPaths(fabric, plane)
        before = routing.plan(NO_FAILURES)
        for failures in sequence:
            now = routing.plan(failures)
            for name, entities in now.items():
                assert (entities is before[name]) == (entities == before[name]), name
            before = now


def touched_by(fabric: FabricSpec, failures: Failures) -> tuple[set[str], int]:
    """Names of the switches that a failure gives other entities, and how many of these differ."""
    planner = Planner(fabric)
    before = planner.plan(Settings(), FabricState())
    after = planner.plan(Settings(), FabricState(failures))
    touched = {name for name, plan in after.items() if not plan.is_same_as(before[name])}
    changed = sum(entity not in list(before[name].routes) for name in touched for entity in after[name].routes)
    return touched, changed


def test_a_host_s_link_touches_its_leaf_alone() -> None:
    fabric = fat_tree(pods=4, leaves_per_pod=2, spines_per_pod=2, cores_per_spine=2, hosts_per_leaf=2)
    assert touched_by(fabric, NO_FAILURES.with_link(fabric.link_between("h0", "p0l0"))) == ({"p0l0"}, 0)


def test_a_link_of_one_plane_touches_no_other() -> None:
    touched, _ = touched_by(FABRICS[0], NO_FAILURES.with_link(FABRICS[0].link_between("p1l0", "p1s0")))
    assert len(touched) == 7
    assert all(name.startswith("p1") for name in touched)


def test_a_link_between_spine_and_core_leaves_most_routes_alone() -> None:
    fabric = fat_tree(pods=8, leaves_per_pod=4, spines_per_pod=4, cores_per_spine=4, hosts_per_leaf=4)
    routing = ShortestPaths(fabric, 0)
    everything = sum(len(entities) for entities in routing.plan(NO_FAILURES).values())
    touched, changed = touched_by(fabric, NO_FAILURES.with_link(fabric.link_between("p0s0", "p0c0")))
    assert {"p0s0", "p0c0"} <= touched
    assert 0 < changed * 10 < everything
    recomputed = routing.update(NO_FAILURES.with_link(fabric.link_between("p0s0", "p0c0")))
    assert recomputed == touched


def test_a_switch_that_was_not_touched_has_nothing_computed() -> None:
    routing = ShortestPaths(FABRICS[1], 0)
    routing.plan(NO_FAILURES)
    routing.plan(NO_FAILURES)
    assert routing.recomputed == frozenset()
    routing.plan(NO_FAILURES.with_link(FABRICS[1].link_between("h0", "p0l0")))
    assert routing.recomputed == frozenset()


@pytest.mark.parametrize("fabric", FABRICS, ids=["leaf_spine", "fat_tree"])
def test_distances_are_networkx_s(fabric: FabricSpec) -> None:
    graph = to_networkx(fabric)
    graph.remove_nodes_from([host.name for host in fabric.hosts])
    for source, expected in networkx.all_pairs_shortest_path_length(graph):
        assert distances_from(source, graph.neighbors) == expected
        for target in graph:
            assert fabric.hops_between(source, target) == expected.get(target) or (
                fabric.switch(source).plane != fabric.switch(target).plane
            )


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda ends: ends[0] < ends[1])))
@settings(deadline=None)
def test_rings_hold_every_node_once_at_its_distance(links: set[tuple[int, int]]) -> None:
    graph = networkx.Graph(links)
    graph.add_nodes_from(range(10))
    rings = distance_rings([sorted(graph.neighbors(node)) for node in range(10)])
    for source, expected in networkx.all_pairs_shortest_path_length(graph):
        assert {node: hops for hops, ring in enumerate(rings) for node in bits_of(ring[source])} == expected


def test_an_unknown_routing_is_refused() -> None:
    with refused(
        SettingError,
        valid=(
            "demand, dimension_order, dimension_order_one_lane, dimension_order_ugal, "
            "dimension_order_valiant, dragonfly_minimal, dragonfly_ugal, dragonfly_valiant, "
            "layered, shortest_paths, srv6, structured_ev, up_down"
        ),
        problem="unknown routing 'valiant'",
    ):
        plane_routings("valiant", FABRICS[0])
