"""Dragonflies and HyperX: what is joined to what, the papers' numbers, limits."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft import topologies
from weft.topologies import FabricSpec, TopologyError
from weft.topologies.global_links import ARRANGEMENTS, Arrangement, global_links
from weft.topologies.graph import to_networkx
from weft.topologies.kinds.dragonfly import DragonflySection, dragonfly
from weft.topologies.kinds.hyperx import HyperXSection, hyperx


def switch_graph(fabric: FabricSpec) -> networkx.Graph[str]:
    """The switches alone, parallel links as one."""
    return networkx.Graph(to_networkx(fabric).subgraph(switch.name for switch in fabric.switches))


@given(st.integers(2, 12), st.integers(0, 30), st.sampled_from(ARRANGEMENTS))
def test_every_two_groups_are_joined_alike_and_no_port_twice(groups: int, more: int, arrangement: Arrangement) -> None:
    ports = groups - 1 + more
    links = list(global_links(groups, ports, arrangement))
    ends = Counter(end for link in links for end in ((link.group, link.port), (link.other_group, link.other_port)))
    assert set(ends.values()) == {1}
    assert all(port < ports for _, port in ends)
    pairs = Counter((link.group, link.other_group) for link in links)
    assert pairs == dict.fromkeys(combinations(range(groups), 2), ports // (groups - 1))


@pytest.mark.parametrize(
    ("arrangement", "first"),
    [("absolute", [1, 2, 3, 4]), ("relative", [1, 2, 3, 4]), ("circulant", [1, 4, 2, 3])],
)
def test_arrangements_are_the_literature_s(arrangement: Arrangement, first: list[int]) -> None:
    of_zero = {link.port: link.other_group for link in global_links(5, 4, arrangement) if link.group == 0}
    assert [of_zero[port] for port in range(4)] == first
    of_three = {link.other_port: link.group for link in global_links(5, 4, arrangement) if link.other_group == 3}
    assert (
        of_three
        == {
            "absolute": {0: 0, 1: 1, 2: 2},
            "relative": {1: 0, 2: 1, 3: 2},
            "circulant": {2: 0, 3: 1, 1: 2},
        }[arrangement]
    )


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(ARRANGEMENTS), st.integers(2, 9))
def test_a_dragonfly_has_the_paper_s_numbers(arrangement: Arrangement, groups: int) -> None:
    """Kim et al., section 3.1: N = a·p·(a·h + 1) with p = h = 2, a = 4; its diameter is three hops."""
    fabric = dragonfly(groups=groups, arrangement=arrangement)
    assert (len(fabric.switches), len(fabric.hosts)) == (4 * groups, 8 * groups)
    graph = switch_graph(fabric)
    assert networkx.diameter(graph) <= 3
    for switch in fabric.switches:
        peers = Counter(fabric.switch(port.peer.node).group == switch.group for port in switch.fabric_ports)
        assert peers[True] == 3
        assert peers[False] <= 2
        assert switch.coordinates[0] == switch.group


def test_global_links_have_their_own_rate_and_delay() -> None:
    fabric = dragonfly(host_rate_bps=10e9, fabric_rate_bps=20e9, global_rate_bps=40e9, global_delay_ps=5_000_000)
    rates = {
        (link.link.rate_bps, link.link.delay_ps)
        for link in fabric.links
        if not link.a.node.startswith("h") and fabric.switch(link.a.node).group != fabric.switch(link.b.node).group
    }
    assert rates == {(40 * 10**9, 5_000_000)}


def test_a_hyperx_joins_all_that_differ_in_one_coordinate() -> None:
    fabric = hyperx(shape=(4, 3), trunks=(1, 2), hosts_per_switch=2)
    assert (len(fabric.switches), len(fabric.hosts)) == (12, 24)
    between = [link for link in fabric.links if not link.a.node.startswith("h")]
    assert len(between) == 3 * 6 * 1 + 4 * 3 * 2
    graph = switch_graph(fabric)
    expected = networkx.cartesian_product(networkx.complete_graph(4), networkx.complete_graph(3))
    assert networkx.is_isomorphic(graph, expected)
    assert networkx.diameter(graph) == 2


def test_equal_parameters_build_equal_fabrics() -> None:
    for section in (
        DragonflySection(groups=5, planes=2, arrangement="circulant"),
        HyperXSection(shape=(3, 2), trunks=(2, 1)),
    ):
        fabric = section.build()
        assert topologies.from_parameters(fabric.parameters) == fabric
        assert section.host_count == len(fabric.hosts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"groups": 10},
            {
                "valid": "2 to 9; as many as a group's global links reach",
                "problem": "groups=10 is out of range",
            },
        ),
        (
            {"arrangement": "random"},
            {"valid": "absolute, relative, circulant", "problem": "arrangement='random' is unknown"},
        ),
        (
            {"routers_per_group": 500, "global_links_per_router": 20, "groups": 3},
            {"valid": "at most 509", "problem": "a router would have 521 ports"},
        ),
    ],
)
def test_broken_dragonflies_are_refused(arguments: dict[str, object], message: dict[str, str]) -> None:
    with refused(TopologyError, **message):
        dragonfly(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (600,)}, {"valid": "at most 508", "problem": "takes 599 ports of a switch in"}),
        ({"trunks": (1,)}, {"valid": "one for each", "problem": "trunks=[1] has 1 values for 2"}),
        ({"trunks": (0, 1)}, {"valid": "1 to 509", "problem": "trunks[0]=0 is out of range"}),
    ],
)
def test_broken_hyperx_are_refused(arguments: dict[str, object], message: dict[str, str]) -> None:
    with refused(TopologyError, **message):
        hyperx(**arguments)  # type: ignore[arg-type]
