"""Tori and meshes: wiring, distances, addresses, limits."""

from __future__ import annotations

from itertools import product
from math import prod

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft import topologies
from weft.topologies import TopologyError
from weft.topologies.graph import to_networkx
from weft.topologies.kinds.torus import TorusSection, torus

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.data())
def test_a_grid_is_networkx_s(shape: list[int], data: st.DataObject) -> None:
    wrap = [data.draw(st.booleans()) for _ in shape]
    fabric = torus(shape=shape, wrap=wrap)
    # networkx links a lone switch of a wrapped row to itself.
    periodic = [each and length > 2 for each, length in zip(wrap, shape, strict=True)]
    expected = networkx.grid_graph([*reversed(shape)], periodic=[*reversed(periodic)])
    name_of = {switch.coordinates: switch.name for switch in fabric.switches}
    nodes = expected.nodes if len(shape) > 1 else [(node,) for node in expected.nodes]
    assert set(name_of) == set(nodes) == set(product(*map(range, shape)))
    links = {frozenset(name_of[end if isinstance(end, tuple) else (end,)] for end in ends) for ends in expected.edges}
    found = [frozenset((link.a.node, link.b.node)) for link in fabric.links if not link.a.node.startswith("h")]
    assert set(found) == links
    assert len(found) == len(links)


def test_a_torus_has_the_textbook_s_numbers() -> None:
    """Dally and Towles, chapter 5: a k-ary n-cube has n·k^n links, and a diameter of n·⌊k/2⌋."""
    fabric = torus(shape=(4, 4, 4), hosts_per_switch=2)
    assert (len(fabric.switches), len(fabric.hosts), len(fabric.links)) == (64, 128, 128 + 3 * 64)
    switches = to_networkx(fabric).subgraph(switch.name for switch in fabric.switches)
    assert networkx.diameter(networkx.Graph(switches)) == 6


def test_a_partial_coordinate_is_a_prefix() -> None:
    fabric = torus(shape=(4, 4, 4))
    first, second = (fabric.switches[place].networks[0] for place in (5, 7))
    assert fabric.switches[5].coordinates == (0, 1, 1)
    # x, y and z have two bits each, and a host's part two: plane 8, x 2, y 2 are 20 bits after 10.
    assert first.supernet(2) == second.supernet(2)
    assert fabric.switches[9].networks[0].supernet(2) != first.supernet(2)


def test_equal_parameters_build_equal_fabrics() -> None:
    section = TorusSection(shape=(3, 2), wrap=(True, False), planes=2)
    fabric = section.build()
    assert topologies.from_parameters(fabric.parameters) == fabric
    assert section.host_count == len(fabric.hosts) == 2 * prod((3, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": ()}, {"valid": "1 to 8", "problem": "shape=[] has 0 dimensions"}),
        ({"shape": (4, 0)}, {"valid": "1 to 4096", "problem": "shape[1]=0 is out of range"}),
        (
            {"shape": (4, 4), "wrap": (True,)},
            {"valid": "one for each", "problem": "has 1 values for 2 dimensions"},
        ),
        ({"shape": (4096, 4096)}, {"valid": "at most 2000000", "problem": "shape=[4096, 4096] has 16777216"}),
    ],
)
def test_broken_parameters_are_named(arguments: dict[str, object], message: dict[str, str]) -> None:
    with refused(TopologyError, **message):
        torus(**arguments)  # type: ignore[arg-type]
