"""Minimal routes of a dragonfly: at most one global link, around failures, without cycles of buffers."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.controller.errors import SettingError
from weft.controller.failures import NO_FAILURES
from weft.controller.lossless import cycle_of_routes
from weft.controller.routing import ROUTING_KINDS, plane_routings
from weft.controller.routing.dragonfly_minimal import DragonflyMinimal
from weft.topologies import FabricSpec, leaf_spine
from weft.topologies.global_links import ARRANGEMENTS
from weft.topologies.kinds.dragonfly import dragonfly

KIND = ROUTING_KINDS.named("dragonfly_minimal")
FABRICS = st.builds(
    dragonfly,
    groups=st.integers(2, 5),
    routers_per_group=st.integers(2, 4),
    global_links_per_router=st.just(2),
    hosts_per_switch=st.just(1),
    arrangement=st.sampled_from(ARRANGEMENTS),
)


def ways(fabric: FabricSpec, plane: DragonflyMinimal, source: int, destination: int) -> list[list[int]]:
    """All ways from one switch to another, as places in the plane; none may pass a switch twice."""
    place_of = {switch.name: place for place, switch in enumerate(fabric.switches)}
    found, open_ = [], [[source]]
    while open_:
        way = open_.pop()
        if way[-1] == destination:
            found.append(way)
            continue
        here = fabric.switches[way[-1]]
        hops = next((hops for hops, bits in plane.routes[here.name].towards.items() if bits >> destination & 1), ())
        for hop in hops:
            after = place_of[here.port(hop.port).peer.node]
            assert after not in way
            open_.append([*way, after])
    return found


def groups_of(fabric: FabricSpec, way: list[int]) -> list[int | None]:
    """The groups that a way passes, each once for each visit."""
    groups = [fabric.switches[place].group for place in way]
    return [group for place, group in enumerate(groups) if place == 0 or groups[place - 1] != group]


@settings(max_examples=20, deadline=None)
@given(FABRICS)
def test_every_pair_is_joined_over_one_global_link_at_most(fabric: FabricSpec) -> None:
    plane = DragonflyMinimal(fabric, 0)
    plane.update(NO_FAILURES)
    for source, destination in product(range(len(fabric.switches)), repeat=2):
        found = ways(fabric, plane, source, destination)
        assert found
        for way in found:
            assert len(groups_of(fabric, way)) <= 2
            assert len(way) <= 4


@settings(max_examples=20, deadline=None)
@given(FABRICS)
def test_a_lane_for_each_group_leaves_no_cycle(fabric: FabricSpec) -> None:
    assert cycle_of_routes(fabric, "dragonfly_minimal") == ()


def test_shortest_paths_on_a_dragonfly_may_deadlock() -> None:
    assert cycle_of_routes(dragonfly(), "shortest_paths")


@settings(max_examples=30, deadline=None)
@given(FABRICS, st.data())
def test_failures_are_passed_and_plans_follow_them(fabric: FabricSpec, data: st.DataObject) -> None:
    between = [link for link in fabric.links if not link.a.node.startswith("h")]
    followed, failures = DragonflyMinimal(fabric, 0), NO_FAILURES
    followed.update(failures)
    for _ in range(data.draw(st.integers(1, 3))):
        link = data.draw(st.sampled_from(between))
        failures = failures.without_link(link) if link.ends in failures.links else failures.with_link(link)
        afresh = DragonflyMinimal(fabric, 0)
        assert followed.plan(failures) == afresh.plan(failures)
    for source, destination in product(range(len(fabric.switches)), repeat=2):
        ways(fabric, followed, source, destination)


def test_without_a_link_between_two_groups_packets_go_through_a_third() -> None:
    fabric = dragonfly(groups=9)
    failures = NO_FAILURES
    for link in fabric.links:
        if {fabric.switch(end.node).group for end in (link.a, link.b) if end.node.startswith("p")} == {0, 1}:
            failures = failures.with_link(link)
    plane = DragonflyMinimal(fabric, 0)
    plane.update(failures)
    found = ways(fabric, plane, 0, 7)
    assert found
    assert {len(groups_of(fabric, way)) for way in found} == {3}


def test_other_fabrics_are_refused() -> None:
    with refused(SettingError, problem="cannot be routed by"):
        plane_routings("dragonfly_minimal", leaf_spine(planes=1))
    assert KIND.lanes(dragonfly(), 0).count == 2
