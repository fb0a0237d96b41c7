"""Layered paths: balanced, shortest, free of cycles of buffers in the lanes that they have, repaired where cut."""

from __future__ import annotations

import random
from ipaddress import IPv4Network

import finsy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controller.any_graph import connected_fabrics, failures_one_by_one, longest_ways
from tests.links.test_lossless_graphs import random_regular
from tests.refusals import refused
from weft.controller.entities import exact_arguments
from weft.controller.errors import SettingError
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.features import Settings
from weft.controller.lossless import LosslessSettings, cycle_of_planes
from weft.controller.plan import FabricState, Planner
from weft.controller.routing import ROUTING_KINDS, plane_routings
from weft.controller.routing.channels import find_cycle
from weft.controller.routing.layered import Layered
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.topologies import FabricSpec, LinkSpec, fat_tree, leaf_spine
from weft.topologies.builder import FabricBuilder
from weft.topologies.kinds.dragonfly import dragonfly
from weft.topologies.kinds.torus import torus

KIND = ROUTING_KINDS.named("layered")
SHAPES = {
    "torus": torus(shape=(4, 4), hosts_per_switch=1),
    "dragonfly": dragonfly(groups=5, routers_per_group=2, hosts_per_switch=1),
    "random": random_regular(12, 3),
    "fat_tree": fat_tree(pods=3, leaves_per_pod=2, spines_per_pod=2, cores_per_spine=2, hosts_per_leaf=1),
}
FABRICS = connected_fabrics() | st.sampled_from(list(SHAPES.values()))


@settings(max_examples=60, deadline=None)
@given(FABRICS, st.data())
def test_every_pair_is_joined_without_cycles(fabric: FabricSpec, data: st.DataObject) -> None:
    """Through failures, too; also those that need more lanes than there are."""
    plane = Layered(fabric, 0)
    for failures in (NO_FAILURES, *data.draw(failures_one_by_one(fabric))):
        plane.plan(failures)
        longest_ways(fabric, plane, failures)
        assert cycle_of_planes(fabric, KIND, [plane]) == ()


@settings(max_examples=40, deadline=None)
@given(FABRICS, st.data())
def test_following_failures_gives_the_plan_made_afresh(fabric: FabricSpec, data: st.DataObject) -> None:
    followed = Layered(fabric, 0)
    before = followed.plan(NO_FAILURES)
    for failures in data.draw(failures_one_by_one(fabric)):
        now, afresh = followed.plan(failures), Layered(fabric, 0)
        assert now == afresh.plan(failures)
        assert followed.layers() == afresh.layers()
        assert all((now[name] is before[name]) == (now[name] == before[name]) for name in now)
        before = now


@pytest.mark.parametrize("fabric", SHAPES.values(), ids=SHAPES)
def test_paths_are_as_short_as_any(fabric: FabricSpec) -> None:
    layered, shortest = Layered(fabric, 0), ShortestPaths(fabric, 0)
    layered.plan(NO_FAILURES)
    shortest.plan(NO_FAILURES)
    switches = {switch.name for switch in fabric.switches if switch.host_ports}
    hops = longest_ways(fabric, shortest)
    assert {ends: hops[ends] for ends in hops if switches >= {*ends}} == {
        ends: found for ends, found in longest_ways(fabric, layered).items() if switches >= {*ends}
    }


@pytest.mark.parametrize(("name", "lanes"), [("torus", 2), ("dragonfly", 2), ("random", 2), ("fat_tree", 1)])
def test_lanes_are_as_few_as_the_layers_and_one_fewer_is_a_cycle(name: str, lanes: int) -> None:
    fabric = SHAPES[name]
    plane = Layered(fabric, 0)
    entities = plane.plan(NO_FAILURES)
    assert KIND.lanes(fabric, 0).count == lanes
    in_one_lane = find_cycle(fabric.switches_of_plane(0), plane.destinations(), KIND.lanes(fabric, 0))
    assert bool(in_one_lane) == (lanes > 1)
    tables = {each.table_id for of_switch in entities.values() for each in of_switch if hasattr(each, "table_id")}
    assert ("layer_by_ipv4" in tables) == (lanes > 1)


def test_layers_become_entries_of_the_first_switch() -> None:
    fabric = SHAPES["torus"]
    plane = Layered(fabric, 0)
    entities = plane.plan(NO_FAILURES)
    for switch in fabric.switches:
        entries = {
            IPv4Network(str(dict(each.match or {})["destination"])): exact_arguments(each.action)["number"]
            for each in entities[switch.name]
            if isinstance(each, finsy.P4TableEntry) and each.table_id == "layer_by_ipv4"
        }
        for place, host in enumerate(fabric.hosts):
            if host.nics[0].switch != switch.name:
                found = [layer for prefix, layer in entries.items() if host.nics[0].ipv4.ip in prefix]
                layers = plane.layers()[switch.name]
                assert found == [layer for layer, bits in layers.items() if bits >> place & 1]


def loads(fabric: FabricSpec, plane: ShortestPaths, seed: int) -> dict[tuple[str, int], int]:
    """Packets over each port if each host sends one to each other; a hash chooses among equal next hops."""
    draw = random.Random(seed)
    place = {switch.name: number for number, switch in enumerate(fabric.switches)}
    found: dict[tuple[str, int], int] = {}
    for source in fabric.hosts:
        for destination in fabric.hosts:
            at, goal = source.nics[0].switch, destination.nics[0].switch
            while at != goal:
                towards = plane.routes[at].towards
                hop = draw.choice(next(hops for hops, bits in towards.items() if bits >> place[goal] & 1))
                found[at, hop.port] = found.get((at, hop.port), 0) + 1
                at = fabric.switch(at).port(hop.port).peer.node
    return found


@pytest.mark.parametrize(
    "fabric",
    [
        torus(shape=(4, 4)),
        dragonfly(),
        random_regular(20, 4),
        leaf_spine(planes=1, leaves=8, spines=4, hosts_per_leaf=4),
    ],
    ids=["torus", "dragonfly", "random", "leaf_spine"],
)
def test_the_fullest_link_carries_less_than_by_hash(fabric: FabricSpec) -> None:
    layered, hashed = Layered(fabric, 0), ShortestPaths(fabric, 0)
    layered.plan(NO_FAILURES)
    hashed.plan(NO_FAILURES)
    fullest = sorted(max(loads(fabric, hashed, seed).values()) for seed in range(5))
    assert max(loads(fabric, layered, 0).values()) <= fullest[2]


def test_slow_links_carry_less() -> None:
    """One spine of two has links of a third of the rate: it takes about a quarter of the paths."""
    slow, fast = LinkSpec(10**10, 1000, 2**19), LinkSpec(3 * 10**10, 1000, 2**19)
    builder = FabricBuilder()
    leaves = [builder.add_switch(0, "leaf", coordinates=(each,)) for each in range(8)]
    spines = [builder.add_switch(0, "spine", tier=1, coordinates=(each,)) for each in range(2)]
    for leaf in leaves:
        builder.add_host([leaf], slow)
        for spine, link in zip(spines, (slow, fast), strict=True):
            builder.add_link(leaf, spine, link)
    fabric = builder.build({})
    plane = Layered(fabric, 0)
    plane.plan(NO_FAILURES)
    by_spine = [
        sum(count for (name, _), count in loads(fabric, plane, 0).items() if name == f"p0s{spine}")
        for spine in range(2)
    ]
    assert sum(by_spine) == 56
    assert 8 <= by_spine[0] <= 18


def test_a_failure_touches_what_it_cuts_alone() -> None:
    fabric = dragonfly(groups=9, routers_per_group=4, hosts_per_switch=1)
    planner, chosen = Planner(fabric), Settings(routing="layered")
    before = planner.plan(chosen, FabricState())
    for link in fabric.links[:: len(fabric.links) // 6]:
        after = planner.plan(chosen, FabricState(NO_FAILURES.with_link(link)))
        touched = {name for name, plan in after.items() if not plan.is_same_as(before[name])}
        ends = {end.node for end in (link.a, link.b) if end.node.startswith("p")}
        assert ends <= touched
        assert len(touched) < len(after) * 0.6
        again = planner.plan(chosen, FabricState())
        assert all(list(again[name]) == list(before[name]) for name in again)
        before = again


def test_paths_that_fit_into_no_layer_are_computed_afresh_with_all_others() -> None:
    fabric = random_regular(20, 4)
    plane = Layered(fabric, 0)
    plane.plan(NO_FAILURES)
    repaired = []
    for link in fabric.links:
        plane.plan(NO_FAILURES.with_link(link))
        assert any(plane.layers().values())
        assert cycle_of_planes(fabric, KIND, [plane]) == ()
        repaired.append(len(plane.recomputed))
        plane.plan(NO_FAILURES)
    # Most are repaired; few links take more.
    assert sorted(repaired)[len(repaired) // 2] < 12
    assert max(repaired) > 15


def test_where_lanes_do_not_suffice_routes_go_up_and_down() -> None:
    """A fat tree needs one lane; leaves that have kept two spines each make a ring, which would need a second."""
    fabric = leaf_spine(planes=1, leaves=5, spines=5, hosts_per_leaf=1)
    failures = Failures()
    for leaf in range(5):
        for spine in range(5):
            if spine not in (leaf, (leaf + 1) % 5):
                failures = failures.with_link(fabric.link_between(f"p0l{leaf}", f"p0s{spine}"))
    plane = Layered(fabric, 0)
    assert KIND.lanes(fabric, 0).count == 1
    before = plane.plan(NO_FAILURES)
    plane.plan(failures)
    assert longest_ways(fabric, plane, failures)
    assert cycle_of_planes(fabric, KIND, [plane]) == ()
    assert plane.plan(NO_FAILURES) == before


def test_too_few_lanes_are_refused_with_how_many_it_takes() -> None:
    with refused(SettingError, problem="routed by layered: its paths in"):
        plane_routings("layered", torus(shape=(6, 6, 4), hosts_per_switch=1))
    chosen = Settings(routing="layered", features=(LosslessSettings((3,)),))
    with refused(SettingError, problem="routes need 2 lanes, which are"):
        Planner(SHAPES["torus"]).plan(chosen, FabricState())
