"""Which path an INT stack has seen, of those that the routes have: grids, ways by intermediates, several of one id."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import xor

import pytest

from weft import Fabric, topologies
from weft.controller.features.identity import switch_id
from weft.controller.planned_paths import FoundPath, PlannedPaths
from weft.scenario import RoutingSection, TransportSection
from weft.topologies import FabricSpec
from weft.topologies.kinds.dragonfly import dragonfly
from weft.topologies.kinds.hyperx import hyperx
from weft.topologies.kinds.torus import torus

MESH = torus(shape=(3, 3), wrap=False)
LEAF_SPINE = topologies.leaf_spine(leaves=2, spines=3)
DRAGONFLY = dragonfly(groups=5, routers_per_group=2, global_links_per_router=2, hosts_per_switch=1)


def id_of(fabric: FabricSpec, *names: str) -> int:
    return reduce(xor, (switch_id(fabric.switch(name)) for name in names))


@pytest.mark.parametrize(
    ("fabric", "kind", "path"),
    [
        (MESH, "dimension_order", ("p0n8", "p0n5", "p0n2", "p0n1", "p0n0")),
        (hyperx(shape=(4, 2)), "dimension_order", ("p0w3", "p0w5", "p0w4")),
        (LEAF_SPINE, "shortest_paths", ("p0l0", "p0s2", "p0l1")),
        (LEAF_SPINE, "shortest_paths", ("p0l1",)),
        (DRAGONFLY, "dragonfly_minimal", ("p0r0", "p0r1", "p0r8", "p0r9")),
        (DRAGONFLY, "dragonfly_valiant", ("p0r0", "p0r2", "p0r3", "p0r8", "p0r9")),
        (DRAGONFLY, "dragonfly_ugal", ("p0r0", "p0r4", "p0r5", "p0r9")),
    ],
)
def test_a_path_of_the_routes_is_known_by_its_id(fabric: FabricSpec, kind: str, path: tuple[str, ...]) -> None:
    paths = PlannedPaths.of_kind(fabric, kind, 0)
    assert paths.with_id(path[0], path[-1], id_of(fabric, *path), len(path)) == FoundPath(path)


def test_a_path_that_the_routes_do_not_have_is_unknown() -> None:
    """Minimal routes have none by another group; dimension order turns once."""
    minimal = PlannedPaths.of_kind(DRAGONFLY, "dragonfly_minimal", 0)
    id_by_group_2 = id_of(DRAGONFLY, "p0r0", "p0r4", "p0r5", "p0r9")
    assert "no path of the present routes has the id" in minimal.with_id("p0r0", "p0r9", id_by_group_2, 4).why_unknown
    mesh = PlannedPaths.of_kind(MESH, "dimension_order", 0)
    other_turn = id_of(MESH, "p0n0", "p0n1", "p0n4")
    assert mesh.with_id("p0n0", "p0n4", other_turn, 3).switches == ()


def test_paths_of_one_id_are_not_told_apart() -> None:
    """On shortest paths of a mesh, switches at opposite corners of a square may have the same XOR."""
    mesh = torus(shape=(4, 4), wrap=False)
    paths = PlannedPaths.of_kind(mesh, "shortest_paths", 0)
    ends, between = ("p0n0", "p0n15"), ("p0n1", "p0n2", "p0n3", "p0n7", "p0n11")
    found = paths.with_id(*ends, id_of(mesh, *ends, *between), 7)
    assert found.switches == ()
    assert found.why_unknown.startswith("several paths of the routes have the id 0x")


def test_a_stack_that_has_overflowed_is_one_of_any_longer_path() -> None:
    ring = torus(shape=(14,))
    names = tuple(f"p0n{number}" for number in range(8))
    paths = PlannedPaths.of_kind(ring, "dimension_order", 0)
    assert paths.with_id(names[0], names[-1], id_of(ring, *names), None).switches == names


def test_a_run_by_intermediates_names_the_switches_of_its_longest_path() -> None:
    transport = TransportSection(retransmission="selective-repeat")
    routing = RoutingSection(kind="dragonfly_valiant")
    with Fabric(DRAGONFLY, clock="virtual", seed=2, routing=routing, transport=transport) as fabric:
        fabric.permutation(50_000)
        (path,) = fabric.summary().int_paths
    names = [hop.switch for hop in path.hops]
    assert path.why_unknown == ""
    assert len(names) == 5
    assert all(DRAGONFLY.links_between(a, b) for a, b in pairwise(names))
    assert DRAGONFLY.host(path.source).nic(0).switch == names[0]
