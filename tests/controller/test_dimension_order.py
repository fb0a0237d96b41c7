"""Dimension order on grids: every pair, in order, without cycles; around failures where a row has another way."""

from __future__ import annotations

from itertools import pairwise, product

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.controller.errors import SettingError
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.lossless import cycle_of_planes, cycle_of_routes
from weft.controller.routing import ROUTING_KINDS, plane_routings
from weft.controller.routing.dimension_order import DimensionOrder
from weft.topologies import FabricSpec, leaf_spine
from weft.topologies.builder import FabricBuilder
from weft.topologies.fabric import LinkSpec
from weft.topologies.kinds.torus import torus

LINK = LinkSpec(10**10, 10**6, 512 * 1024)
KIND = ROUTING_KINDS.named("dimension_order")
SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=3)


@st.composite
def grids(draw: st.DrawFn) -> FabricSpec:
    """A torus or mesh, or rows of each kind."""
    shape = draw(SHAPES)
    return torus(shape=shape, wrap=[draw(st.booleans()) for _ in shape])


def complete(shape: tuple[int, ...]) -> FabricSpec:
    """A fabric with a link between any two switches that differ in one coordinate."""
    builder = FabricBuilder()
    switches = {place: builder.add_switch(0, "node", coordinates=place) for place in product(*map(range, shape))}
    for switch in switches.values():
        builder.add_host([switch], LINK)
    for (a, one), (b, other) in product(switches.items(), repeat=2):
        if a < b and sum(x != y for x, y in zip(a, b, strict=True)) == 1:
            builder.add_link(one, other, LINK)
    return builder.build({"kind": "complete"})


def routes(fabric: FabricSpec, failures: Failures = NO_FAILURES) -> DimensionOrder:
    """The routes of its only plane."""
    plane = DimensionOrder(fabric, 0)
    plane.update(failures)
    return plane


def way(fabric: FabricSpec, plane: DimensionOrder, source: int, destination: int) -> list[int] | None:
    """Places from one switch to another; None if they end before. Parallel links lead to the same place."""
    place_of = {switch.name: place for place, switch in enumerate(fabric.switches)}
    places = [source]
    while places[-1] != destination:
        here = fabric.switches[places[-1]]
        towards = plane.routes[here.name].towards
        hops = next((hops for hops, bits in towards.items() if bits >> destination & 1), ())
        peers = {place_of[here.port(hop.port).peer.node] for hop in hops}
        if not peers:
            return None
        (after,) = peers
        assert after not in places, f"{places} goes round in a circle"
        places.append(after)
    return places


@settings(max_examples=30, deadline=None)
@given(grids())
def test_every_pair_is_joined_in_the_order_of_dimensions(fabric: FabricSpec) -> None:
    plane = routes(fabric)
    for source, destination in product(range(len(fabric.switches)), repeat=2):
        places = way(fabric, plane, source, destination)
        assert places is not None
        assert len(places) - 1 == fabric.hops_between(fabric.switches[source].name, fabric.switches[destination].name)
        turns = [
            next(
                dimension
                for dimension, (a, b) in enumerate(
                    zip(fabric.switches[one].coordinates, fabric.switches[other].coordinates, strict=True)
                )
                if a != b
            )
            for one, other in pairwise(places)
        ]
        assert turns == sorted(turns)


@settings(max_examples=30, deadline=None)
@given(grids())
def test_datelines_leave_no_cycle(fabric: FabricSpec) -> None:
    plane = routes(fabric)
    assert cycle_of_planes(fabric, KIND, [plane]) == ()
    for switch in fabric.switches:
        rules = KIND.lanes(fabric, 0).rules.get(switch.name, ())
        assert {lane for rule in rules for lane in (rule.lane, rule.to)} <= {0, 1}


def test_rings_of_five_need_their_datelines() -> None:
    """Rings of four do not: half the packets that go two hops go each way around."""
    fabric = torus(shape=(5, 5))
    assert KIND.lanes(fabric, 0).count == 2
    cycle = cycle_of_routes(fabric, "dimension_order_one_lane")
    assert len(cycle) == 5
    assert {channel.lane for channel in cycle} == {0}
    mesh = torus(shape=(5, 5), wrap=False)
    assert KIND.lanes(mesh, 0).count == 1
    assert cycle_of_routes(mesh, "dimension_order_one_lane") == ()


@settings(max_examples=40, deadline=None)
@given(grids(), st.data())
def test_failures_bring_no_circles_and_plans_follow_them(fabric: FabricSpec, data: st.DataObject) -> None:
    between = [link for link in fabric.links if not link.a.node.startswith("h")]
    followed, failures = routes(fabric), NO_FAILURES
    for _ in range(data.draw(st.integers(1, 3))):
        if between and data.draw(st.booleans()):
            failures = failures.with_link(data.draw(st.sampled_from(between)))
        else:
            failures = failures.with_switch(data.draw(st.sampled_from(fabric.switches)).name)
        assert followed.plan(failures) == routes(fabric, failures).plan(failures)
    for source, destination in product(range(len(fabric.switches)), repeat=2):
        way(fabric, followed, source, destination)
    assert cycle_of_planes(fabric, KIND, [followed]) == ()


def test_a_ring_is_passed_the_other_way_around_a_failed_link() -> None:
    fabric = torus(shape=(5,))
    failed = NO_FAILURES.with_link(fabric.link_between("p0n1", "p0n2"))
    plane = routes(fabric, failed)
    assert way(fabric, plane, 0, 2) == [0, 4, 3, 2]
    assert way(fabric, plane, 1, 2) == [1, 0, 4, 3, 2]
    mesh = torus(shape=(5,), wrap=False)
    cut = NO_FAILURES.with_link(mesh.link_between("p0n1", "p0n2"))
    assert way(mesh, routes(mesh, cut), 0, 2) is None


def test_complete_rows_are_crossed_in_one_hop() -> None:
    fabric = complete((4, 5))
    assert KIND.objection(fabric) == ""
    plane = routes(fabric)
    assert way(fabric, plane, 0, 19) == [0, 15, 19]
    assert KIND.lanes(fabric, 0).count == 1
    assert cycle_of_planes(fabric, KIND, [plane]) == ()


def test_other_fabrics_are_refused() -> None:
    with refused(SettingError, problem="cannot be routed by"):
        plane_routings("dimension_order", leaf_spine(planes=1, leaves=4, spines=2))
    builder = FabricBuilder()
    first, second, third, last = (
        builder.add_switch(0, "node", coordinates=place) for place in ((0, 0), (0, 1), (1, 0), (1, 1))
    )
    builder.add_host([first], LINK)
    builder.add_link(first, last, LINK)
    with refused(SettingError, problem="p0n0 and p0n3 are linked but"):
        plane_routings("dimension_order", builder.build({"kind": "odd"}))
    builder.add_link(second, third, LINK)


def test_a_row_with_a_link_too_many_is_refused() -> None:
    builder = FabricBuilder()
    switches = [builder.add_switch(0, "node") for _ in range(5)]
    builder.add_host([switches[0]], LINK)
    for one, other in ((0, 1), (1, 2), (2, 3), (3, 4), (1, 3)):
        builder.add_link(switches[one], switches[other], LINK)
    with refused(SettingError, problem="p0n1 has links in dimension 0"):
        plane_routings("dimension_order", builder.build({"kind": "odd"}))
