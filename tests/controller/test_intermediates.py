"""Routes by intermediates: every way ends, no cycle of buffers, and plans that follow failures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import finsy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_route_cycles import Edges, has_cycle

from weft.controller.failures import NO_FAILURES
from weft.controller.features import Settings
from weft.controller.features.intermediates import UgalSettings
from weft.controller.lossless import cycle_of_planes, cycle_of_routes
from weft.controller.plan import FabricState, desired_entities
from weft.controller.routing import ROUTING_KINDS
from weft.controller.routing.channels import Channel, find_cycle
from weft.controller.routing.dragonfly_minimal import lanes_by_group
from weft.controller.routing.kind import RoutingKind
from weft.controller.routing.lanes import VirtualLanes
from weft.topologies import FabricSpec
from weft.topologies.global_links import ARRANGEMENTS
from weft.topologies.kinds.dragonfly import dragonfly
from weft.topologies.kinds.dragonfly_plus import dragonfly_plus
from weft.topologies.kinds.hyperx import hyperx
from weft.topologies.kinds.torus import torus

DRAGONFLIES = st.builds(
    dragonfly,
    groups=st.integers(3, 5),
    routers_per_group=st.integers(2, 3),
    global_links_per_router=st.just(2),
    hosts_per_switch=st.just(1),
    arrangement=st.sampled_from(ARRANGEMENTS),
)
PLUS = st.builds(dragonfly_plus, groups=st.integers(3, 4), hosts_per_leaf=st.just(1))
GRIDS = st.one_of(
    st.builds(torus, shape=st.sampled_from([[3, 3], [4, 3], [5]]), wrap=st.booleans()),
    st.builds(hyperx, shape=st.sampled_from([(4, 4), (2, 3), (5,)])),
)
CASES = st.one_of(
    st.tuples(st.one_of(DRAGONFLIES, PLUS), st.sampled_from(["dragonfly_valiant", "dragonfly_ugal"])),
    st.tuples(GRIDS, st.sampled_from(["dimension_order_valiant", "dimension_order_ugal"])),
)
Hop = tuple[str, int, int]
"""Switch, ingress port (0 at first), lane in which the packet came."""


class Walk:
    """All that packets can do in a plane, hop by hop, by the definition."""

    def __init__(self, fabric: FabricSpec, kind: RoutingKind, lanes: VirtualLanes | None = None) -> None:
        assert kind.intermediates is not None
        self.fabric, self.switches = fabric, fabric.switches_of_plane(0)
        self.lanes = kind.lanes(fabric, 0) if lanes is None else lanes
        self.own = kind.intermediates(fabric, 0).of_switches
        self.place = {switch.name: place for place, switch in enumerate(self.switches)}
        plane = kind.plane(fabric, 0)
        plane.plan(NO_FAILURES)
        self.destinations = plane.destinations()
        self.edges: Edges = set()

    def follow(self, source: int, through: int | None, destination: int) -> Iterator[int]:
        """Yield the hops of every way from a switch to another, by an intermediate or straight."""
        host = self.switches[source].host_ports[0].number
        todo: list[tuple[Hop, int, bool, Channel | None]] = [
            ((self.switches[source].name, host, 0), 0, through is None, None)
        ]
        while todo:
            (name, ingress, lane), hops, has_been, came_in = todo.pop()
            here = self.place[name]
            assert hops < 20
            if not has_been and self.own[here] == through:
                has_been, lane = True, self.lanes.after_intermediate.get(lane, lane)
            if has_been and here == destination:
                yield hops
                continue
            bit = 1 << (destination if has_been else len(self.switches) + (through or 0))
            ports = [port for port, bits in self.destinations[name].items() if bits & bit]
            assert ports
            for port in ports:
                channel = Channel(name, port, self.lanes.after(name, ingress, port, lane))
                assert channel.lane < self.lanes.count
                if came_in is not None:
                    self.edges.add((came_in, channel))
                peer = self.fabric.switch(name).port(port).peer
                todo.append(((peer.node, peer.port, channel.lane), hops + 1, has_been, channel))

    def follow_all(self) -> None:
        """Follow every packet that may be sent."""
        with_hosts = [place for place, switch in enumerate(self.switches) if switch.host_ports]
        for source, destination in product(with_hosts, repeat=2):
            for through in (None, *range(1 + max(self.own))):
                if source != destination and through != self.own[source]:
                    assert list(self.follow(source, through, destination))


@settings(max_examples=25, deadline=None)
@given(CASES)
def test_every_way_ends_and_no_buffers_wait_for_each_other(case: tuple[FabricSpec, str]) -> None:
    fabric, name = case
    walk = Walk(fabric, ROUTING_KINDS.named(name))
    walk.follow_all()
    assert not has_cycle(walk.edges)
    assert cycle_of_routes(fabric, name) == ()
    assert find_cycle(walk.switches, walk.destinations, walk.lanes, intermediates=walk.own) == ()


def test_with_the_lanes_of_minimal_routes_a_cycle_is_found_and_named() -> None:
    fabric = dragonfly()
    kind = ROUTING_KINDS.named("dragonfly_valiant")
    walk = Walk(fabric, kind, lanes_by_group(fabric, 0, 2))
    walk.follow_all()
    assert has_cycle(walk.edges)
    cycle = find_cycle(walk.switches, walk.destinations, walk.lanes, intermediates=walk.own)
    assert cycle
    assert {*zip(cycle, (*cycle[1:], cycle[0]), strict=True)} <= walk.edges
    # Without intermediates nothing is wrong with them.
    assert find_cycle(walk.switches, walk.destinations, walk.lanes) == ()


def test_a_way_through_a_group_has_two_global_links_at_most() -> None:
    fabric = dragonfly()
    walk = Walk(fabric, ROUTING_KINDS.named("dragonfly_valiant"))
    hops = {each for through in range(1, 8) for each in walk.follow(0, through, 35)}
    assert hops <= set(range(2, 6))


@pytest.mark.parametrize(("fabric", "name"), [(dragonfly(), "dragonfly_ugal"), (hyperx(), "dimension_order_ugal")])
def test_hops_are_those_of_the_routes(fabric: FabricSpec, name: str) -> None:
    walk = Walk(fabric, ROUTING_KINDS.named(name))
    entities = desired_entities(fabric, Settings(routing=name), FabricState())
    straight = [
        hops
        for source, destination in product(range(len(walk.switches)), repeat=2)
        if walk.own[source] != walk.own[destination]
        for hops in walk.follow(source, None, destination)
    ]
    mean = round(sum(straight) / len(straight))
    source = 0
    for entity in entities[walk.switches[source].name]:
        if not isinstance(entity, finsy.P4TableEntry) or not isinstance(entity.action, finsy.P4TableAction):
            continue
        assert entity.match is not None or entity.table_id == "identity"
        if entity.action.name == "go_by_next_hop":
            number = entity.match["intermediate"]  # type: ignore[index]
            members = [place for place, own in enumerate(walk.own) if own == number]
            nearest = min(hops for each in members for hops in walk.follow(source, None, each))
            assert entity.action.args["hops"] == nearest + mean
    table = [
        entity.action.args
        for entity in entities[walk.switches[source].name]
        if isinstance(entity, finsy.P4TableEntry)
        and entity.table_id == "intermediate_by_ipv4"
        and isinstance(entity.action, finsy.P4TableAction)
    ]
    found = {(each["intermediate"], each["hops"]) for each in table}
    assert found == {
        (walk.own[place], hops)
        for place in range(len(walk.switches))
        if walk.own[place] != walk.own[source]
        for hops in walk.follow(source, None, place)
    }


@settings(max_examples=15, deadline=None)
@given(CASES, st.data())
def test_plans_follow_failures(case: tuple[FabricSpec, str], data: st.DataObject) -> None:
    fabric, name = case
    kind = ROUTING_KINDS.named(name)
    between = [link for link in fabric.links if not link.a.node.startswith("h")]
    followed, failures = kind.plane(fabric, 0), NO_FAILURES
    plans = followed.plan(failures)
    assert followed.plan(failures) == plans
    assert all(followed.plan(failures)[switch] is entities for switch, entities in plans.items())
    for _ in range(data.draw(st.integers(1, 3))):
        link = data.draw(st.sampled_from(between))
        failures = failures.without_link(link) if link.ends in failures.links else failures.with_link(link)
        assert followed.plan(failures) == kind.plane(fabric, 0).plan(failures)
    cycle_of_planes(fabric, kind, [followed])


def test_ports_of_hosts_say_how_packets_are_routed() -> None:
    fabric = dragonfly()
    chosen = Settings(routing="dragonfly_ugal").with_feature(UgalSettings(800, 10**7))
    for name, action, more in (
        ("dragonfly_valiant", "route_valiant", {}),
        ("dragonfly_ugal", "route_ugal", {"threshold": 10, "lifetime": 10_000}),
    ):
        settings_ = Settings(routing=name, features=chosen.features)
        found = [
            (each.match, each.action)
            for each in desired_entities(fabric, settings_, FabricState())[fabric.switches[5].name]
            if isinstance(each, finsy.P4TableEntry) and each.table_id == "source_routing_ports"
        ]
        assert [match for match, _ in found] == [{"port": 1}, {"port": 2}]
        call = finsy.P4TableAction(action, own_intermediate=1, last=6, **more)
        assert all(found_call == call for _, found_call in found)


def test_two_groups_have_no_third() -> None:
    plans = desired_entities(dragonfly(groups=2), Settings(routing="dragonfly_valiant"), FabricState())
    assert not any(getattr(each, "table_id", "") == "source_routing_ports" for plan in plans.values() for each in plan)
