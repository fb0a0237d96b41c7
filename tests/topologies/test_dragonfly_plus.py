"""Dragonfly+: what is joined to what, its routes in few lanes, and what is refused."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controller.any_graph import longest_ways
from tests.refusals import refused
from weft import topologies
from weft.controller.failures import NO_FAILURES
from weft.controller.lossless import cycle_of_routes
from weft.controller.routing import ROUTING_KINDS, plane_routings
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.topologies import FabricSpec, TopologyError, to_svg
from weft.topologies.global_links import ARRANGEMENTS
from weft.topologies.graph import to_networkx
from weft.topologies.kinds.base import TopologyKeyError
from weft.topologies.kinds.dragonfly_plus import DragonflyPlusSection, dragonfly_plus
from weft.topologies.places import two_row_group_places

FABRICS = st.builds(
    dragonfly_plus,
    groups=st.integers(2, 5),
    leaves_per_group=st.integers(1, 3),
    spines_per_group=st.integers(2, 3),
    global_links_per_spine=st.just(2),
    hosts_per_leaf=st.just(1),
    arrangement=st.sampled_from(ARRANGEMENTS),
)


@settings(max_examples=20, deadline=None)
@given(FABRICS)
def test_groups_are_bipartite_and_any_two_are_joined_by_spines(fabric: FabricSpec) -> None:
    parameters = fabric.parameters
    groups = range(int(str(parameters["groups"])))
    joined: Counter[tuple[int | None, ...]] = Counter()
    for link in fabric.links:
        if link.a.node.startswith("h"):
            continue
        a, b = (fabric.switch(end.node) for end in (link.a, link.b))
        if a.group == b.group:
            assert {a.role, b.role} == {"leaf", "spine"}
        else:
            assert {a.role, b.role} == {"spine"}
            joined[tuple(sorted((a.group or 0, b.group or 0)))] += 1
    assert joined.keys() == set(combinations(groups, 2))
    assert len({*joined.values()}) == 1
    for switch in fabric.switches:
        within = [port for port in switch.fabric_ports if fabric.switch(port.peer.node).group == switch.group]
        others = parameters["spines_per_group" if switch.role == "leaf" else "leaves_per_group"]
        assert len(within) == others
        assert bool(switch.host_ports) == (switch.role == "leaf")


def test_a_balanced_one_has_the_paper_s_numbers() -> None:
    """Switches of k ports, half of them up: k²/4·(k²/4 + 1) hosts, three hops between any two leaves."""
    k = 8
    fabric = dragonfly_plus(
        groups=k * k // 4 + 1,
        leaves_per_group=k // 2,
        spines_per_group=k // 2,
        global_links_per_spine=k // 2,
        hosts_per_leaf=k // 2,
    )
    assert len(fabric.hosts) == 16 * 17
    assert {len(switch.ports) for switch in fabric.switches} == {k}
    graph = to_networkx(fabric)
    leaves = [switch.name for switch in fabric.switches if switch.role == "leaf"]
    hops = networkx.single_source_shortest_path_length(graph, leaves[0])
    assert max(hops[leaf] for leaf in leaves) == 3


@settings(max_examples=15, deadline=None)
@given(FABRICS, st.sampled_from(["up_down", "layered", "dragonfly_minimal", "shortest_paths"]))
def test_routes_are_three_hops_and_free_of_cycles(fabric: FabricSpec, routing: str) -> None:
    (plane,) = plane_routings(routing, fabric)
    assert isinstance(plane, ShortestPaths)
    plane.plan(NO_FAILURES)
    leaves = {switch.name for switch in fabric.switches if switch.role == "leaf"}
    hops = {ends: found for ends, found in longest_ways(fabric, plane).items() if leaves >= {*ends}}
    for (source, destination), found in hops.items():
        same = fabric.switch(source).group == fabric.switch(destination).group
        assert found == (2 if same else 3)
    assert cycle_of_routes(fabric, routing) == ()


def test_one_lane_suffices_but_for_routes_that_count_groups() -> None:
    lanes = {name: ROUTING_KINDS[name].lanes(dragonfly_plus(), 0).count for name in ROUTING_KINDS}
    assert {name: count for name, count in lanes.items() if name in ("up_down", "layered", "dragonfly_minimal")} == {
        "up_down": 1,
        "layered": 1,
        "dragonfly_minimal": 2,
    }


def test_equal_parameters_build_equal_fabrics() -> None:
    section = DragonflyPlusSection(groups=3, planes=2, arrangement="circulant", global_delay=5_000_000)
    fabric = section.build()
    assert topologies.from_parameters(fabric.parameters) == fabric
    assert section.host_count == len(fabric.hosts)
    assert {link.link.delay_ps for link in fabric.links} == {1_000_000, 5_000_000}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"groups": 6},
            {
                "valid": "2 to 5; as many as a group's global links reach",
                "problem": "groups=6 is out of range",
            },
        ),
        (
            {"spines_per_group": 508},
            {"valid": "at most 509", "problem": "a leaf would have 510 ports: 2"},
        ),
        (
            {"leaves_per_group": 508},
            {"valid": "at most 509", "problem": "a spine would have 510 ports"},
        ),
        (
            {"arrangement": "random"},
            {"valid": "absolute, relative, circulant", "problem": "arrangement='random' is unknown"},
        ),
        (
            {"global_rate_bps": -1},
            {"valid": "1000000 to 100000000000000", "problem": "global_rate_bps"},
        ),
    ],
)
def test_broken_ones_are_refused(arguments: dict[str, object], message: dict[str, str]) -> None:
    with refused(TopologyError, **message):
        dragonfly_plus(**arguments)  # type: ignore[arg-type]


def test_a_section_says_how_many_groups_can_be_joined() -> None:
    section = DragonflyPlusSection(groups=6)
    with refused(TopologyKeyError, problem="6 cannot be joined by 2 x 2"):
        section.check()


@pytest.mark.parametrize("groups", [2, 5, 9])
def test_a_drawing_has_leaves_outside_and_spines_inside(groups: int) -> None:
    fabric = dragonfly_plus(groups=groups, leaves_per_group=3, spines_per_group=4, planes=2)
    places = two_row_group_places(fabric, 1)
    assert places.keys() == {switch.name for switch in fabric.switches_of_plane(1)}
    assert min(math.dist(one, other) for one, other in combinations(places.values(), 2)) > 0.9
    for group in range(groups):
        distance = {
            role: min(
                math.hypot(*places[switch.name])
                for switch in fabric.switches_of_plane(1)
                if switch.group == group and switch.role == role
            )
            for role in ("leaf", "spine")
        }
        assert distance["leaf"] > distance["spine"]
    assert to_svg(fabric).count("group 0") == 2
