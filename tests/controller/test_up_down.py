"""Up*/down*: every pair is joined, on any graph, without loops and without cycles of buffers on one lane."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controller.any_graph import connected_fabrics, failures_one_by_one, longest_ways
from tests.topologies.test_builder import torus
from weft.controller.failures import NO_FAILURES
from weft.controller.lossless import cycle_of_planes
from weft.controller.routing import ROUTING_KINDS
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.controller.routing.up_down import UpDown, order_from_middle, repaired_order
from weft.topologies import FabricSpec, fat_tree, leaf_spine
from weft.topologies.distances import distance_rings
from weft.topologies.kinds.dragonfly import dragonfly

KIND = ROUTING_KINDS.named("up_down")
TIERS = [
    leaf_spine(planes=1, leaves=4, spines=3, hosts_per_leaf=1),
    fat_tree(planes=1, pods=3, leaves_per_pod=2, spines_per_pod=2, cores_per_spine=2, hosts_per_leaf=1),
]


def check(fabric: FabricSpec, plane: UpDown, data: st.DataObject) -> None:
    """Before and after each of some failures."""
    plane.update(NO_FAILURES)
    for failures in (NO_FAILURES, *data.draw(failures_one_by_one(fabric))):
        plane.update(failures)
        longest_ways(fabric, plane, failures)
        assert cycle_of_planes(fabric, KIND, [plane]) == ()


@settings(max_examples=60, deadline=None)
@given(connected_fabrics(), st.data())
def test_every_pair_is_joined_without_loops_and_cycles(fabric: FabricSpec, data: st.DataObject) -> None:
    check(fabric, UpDown(fabric, 0), data)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from([*TIERS, torus((3, 4)), dragonfly(groups=5)]), st.data())
def test_other_fabrics_are_joined_too(fabric: FabricSpec, data: st.DataObject) -> None:
    check(fabric, UpDown(fabric, 0), data)


@settings(max_examples=40, deadline=None)
@given(connected_fabrics() | st.sampled_from(TIERS), st.data())
def test_following_failures_gives_the_plan_made_afresh(fabric: FabricSpec, data: st.DataObject) -> None:
    followed = UpDown(fabric, 0)
    before = followed.plan(NO_FAILURES)
    for failures in data.draw(failures_one_by_one(fabric)):
        now = followed.plan(failures)
        assert now == UpDown(fabric, 0).plan(failures)
        assert all((now[name] is before[name]) == (now[name] == before[name]) for name in now)
        before = now


@pytest.mark.parametrize("fabric", TIERS, ids=["leaf_spine", "fat_tree"])
def test_tiers_are_the_order_and_their_routes_the_shortest(fabric: FabricSpec) -> None:
    plane, shortest = UpDown(fabric, 0), ShortestPaths(fabric, 0)
    plane.plan(NO_FAILURES)
    shortest.plan(NO_FAILURES)
    leaves = sum(1 << place for place, switch in enumerate(fabric.switches) if switch.host_ports)
    for name in plane.routes:
        to_leaves = [
            {hops: bits & leaves for hops, bits in each.routes[name].towards.items() if bits & leaves}
            for each in (plane, shortest)
        ]
        assert to_leaves[0] == to_leaves[1]


def test_a_failure_touches_those_alone_that_it_concerns() -> None:
    fabric = fat_tree(pods=4, leaves_per_pod=2, spines_per_pod=2, cores_per_spine=2, hosts_per_leaf=1)
    plane = UpDown(fabric, 0)
    plane.plan(NO_FAILURES)
    plane.plan(NO_FAILURES.with_link(fabric.link_between("h0", "p0l0")))
    assert plane.recomputed == frozenset()
    plane.plan(NO_FAILURES.with_link(fabric.link_between("p0s0", "p0c0")))
    assert {"p0s0", "p0c0"} <= plane.recomputed
    assert len(plane.recomputed) < len(plane.routes) / 2


def test_the_middle_of_a_row_is_its_root() -> None:
    neighbours = [[1], [0, 2], [1, 3], [2, 4], [3], []]
    rings = distance_rings(neighbours)
    assert list(order_from_middle(rings, 0b111111)) == [4, 2, 0, 3, 5, 1]
    # Only the first three have hosts.
    assert list(order_from_middle(rings, 0b000111))[1] == 0


def test_a_failure_that_cuts_tiers_apart_brings_another_order() -> None:
    """Two leaves have lost their common spine; by a new order the way through the third leads up and down."""
    fabric = leaf_spine(planes=1, leaves=3, spines=2, hosts_per_leaf=1)
    failures = NO_FAILURES.with_link(fabric.link_between("p0l0", "p0s1")).with_link(fabric.link_between("p0l1", "p0s0"))
    plane = UpDown(fabric, 0)
    plane.plan(failures)
    assert longest_ways(fabric, plane, failures)["p0l0", "p0l1"] == 4
    assert cycle_of_planes(fabric, KIND, [plane]) == ()


def test_a_switch_that_has_lost_its_link_up_is_moved_alone() -> None:
    neighbours = [[1, 3], [0, 2, 4], [1, 5], [0, 4], [1, 3, 5], [2, 4]]
    order = order_from_middle(distance_rings(neighbours), 0b111111)
    assert repaired_order(neighbours, order) == order
    assert list(order) == [1, 0, 2, 4, 3, 5]
    cut = [[3], [2, 4], [1, 5], [0, 4], [1, 3, 5], [2, 4]]
    assert list(repaired_order(cut, order)) == [4, 0, 1, 3, 2, 5]


def test_ways_on_a_torus_are_little_longer_than_the_shortest() -> None:
    fabric = torus((4, 4))
    plane, shortest = UpDown(fabric, 0), ShortestPaths(fabric, 0)
    plane.plan(NO_FAILURES)
    shortest.plan(NO_FAILURES)
    sums = [sum(longest_ways(fabric, each).values()) for each in (plane, shortest)]
    assert sums[1] <= sums[0] < 1.3 * sums[1]
