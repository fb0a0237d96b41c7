"""Drawings of fabrics without tiers: where switches stand, and which links leave the straight line."""

from __future__ import annotations

import math
import re
from itertools import combinations

import pytest

from weft.topologies import FabricSpec, LinkStyle, to_svg
from weft.topologies.draw_curves import Curve
from weft.topologies.draw_layout import Box
from weft.topologies.draw_places import host_box
from weft.topologies.kinds.dragonfly import dragonfly
from weft.topologies.kinds.graph import GraphSection
from weft.topologies.kinds.hyperx import hyperx
from weft.topologies.kinds.torus import torus
from weft.topologies.places import Places, circle_without_tiers, grid_places, group_places

FABRICS = [
    torus(shape=(4, 4)),
    torus(shape=(8,)),
    torus(shape=(3, 4, 4)),
    torus(shape=(2, 3, 2, 2), planes=2),
    hyperx(shape=(4, 3), trunks=(1, 2), hosts_per_switch=3),
]


def closest(places: Places) -> float:
    """The least distance between two switches."""
    return min(math.dist(one, other) for one, other in combinations(places.values(), 2))


@pytest.mark.parametrize("fabric", FABRICS)
def test_no_two_switches_of_a_grid_overlap(fabric: FabricSpec) -> None:
    places = grid_places(fabric, 0)
    assert places.keys() == {switch.name for switch in fabric.switches_of_plane(0)}
    # A box is 0.68 wide and 0.26 high.
    for one, other in combinations(places.values(), 2):
        assert abs(one[0] - other[0]) > 0.68 or abs(one[1] - other[1]) > 0.26


@pytest.mark.parametrize(("groups", "routers"), [(2, 2), (5, 4), (9, 8), (3, 1)])
def test_switches_of_a_group_are_nearer_than_those_of_others(groups: int, routers: int) -> None:
    fabric = dragonfly(groups=groups, routers_per_group=routers, global_links_per_router=2)
    places = group_places(fabric, 0)
    assert closest(places) > 0.7
    middles = {}
    for group in range(groups):
        own = [places[switch.name] for switch in fabric.switches if switch.group == group]
        middles[group] = tuple(sum(axis) / len(own) for axis in zip(*own, strict=True))
    for switch in fabric.switches:
        nearest = min(middles, key=lambda group: math.dist(middles[group], places[switch.name]))
        assert nearest == switch.group


@pytest.mark.parametrize("fabric", [*FABRICS, dragonfly()])
def test_every_node_and_every_link_between_switches_is_drawn(fabric: FabricSpec) -> None:
    drawing = to_svg(fabric)
    for switch in fabric.switches:
        assert f">{switch.name}<" in drawing
        assert f"<title>{switch.name} " in drawing
    for link in fabric.links:
        if link.a.node.startswith("p"):
            assert drawing.count(f"<title>{link}<") == 1
    assert "h0" in drawing


def test_links_around_a_torus_are_bent_and_others_straight() -> None:
    fabric = torus(shape=(4, 4))
    drawing = to_svg(fabric)
    for link in fabric.links:
        if not link.a.node.startswith("p"):
            continue
        path = next(line for line in drawing.splitlines() if f"<title>{link}<" in line)
        numbers = [float(each) for each in re.findall(r"-?\d+\.\d", path.split(' d="')[1].split('"')[0])]
        (x1, y1), (x, y), (x2, y2) = (numbers[each : each + 2] for each in (0, 2, 4))
        is_straight = math.dist((x, y), ((x1 + x2) / 2, (y1 + y2) / 2)) < 0.2
        a, b = (fabric.switch(end.node).coordinates for end in (link.a, link.b))
        assert is_straight == (sum(abs(one - other) for one, other in zip(a, b, strict=True)) == 1)


@pytest.mark.parametrize(
    ("links", "is_line"), [([(0, 3), (3, 1), (1, 2)], True), ([(0, 1), (1, 2), (2, 3), (3, 0)], False)]
)
def test_switches_in_a_line_are_drawn_in_a_line(links: list[tuple[int, int]], is_line: bool) -> None:
    section = GraphSection.model_validate(
        {
            "planes": 1,
            "switches": [{"role": "leaf", "count": 4}],
            "hosts": [{"on": "l*", "count": 1}],
            "links": [{"ends": f"l{a}<->l{b}"} for a, b in links],
        }
    )
    places = circle_without_tiers(section.network(), 0)
    assert places is not None
    assert (len({y for _, y in places.values()}) == 1) is is_line
    if is_line:
        assert sorted(places, key=lambda name: places[name][0]) == ["p0l0", "p0l3", "p0l1", "p0l2"]


def test_a_failed_link_is_crossed_out() -> None:
    fabric = torus(shape=(4,))
    failed = fabric.link_between("p0n0", "p0n1")
    drawing = to_svg(fabric, lambda link: LinkStyle("#123", note="down", failed=link == failed))
    assert drawing.count("stroke-dasharray") == 1
    assert f"<title>{failed} down</title>" in drawing


def test_groups_are_framed_with_their_names() -> None:
    drawing = to_svg(dragonfly(groups=5, routers_per_group=2, global_links_per_router=2))
    assert [each for each in range(6) if f">group {each}</text>" in drawing] == [0, 1, 2, 3, 4]
    assert "group" not in to_svg(torus(shape=(4, 4))).replace("<g>", "")


def test_hosts_stand_where_no_link_passes_if_there_is_such_a_place() -> None:
    box = Box(0, 0, 60, 24)
    free = host_box(box, [box], [])
    assert free.y > 0
    left = Curve((-18, 0), (-18, 50), (-18, 100))
    assert left.passes(free)
    right = host_box(box, [box], [left])
    assert right.y > 0
    assert right.x > 0
    below = Curve((18, 0), (18, 50), (18, 100))
    assert host_box(box, [box], [left, below]).y < 0
