"""Paths between hosts and the figures computed from them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft import topologies
from weft.topologies import TopologyError, leaf_spine
from weft.topologies.graph import to_networkx


@given(st.integers(1, 3), st.integers(2, 4), st.integers(1, 3), st.integers(1, 3), st.data())
@settings(deadline=None, max_examples=30)
def test_paths_follow_links_and_are_all_the_shortest_ones(
    planes: int, leaves: int, spines: int, hosts_per_leaf: int, data: st.DataObject
) -> None:
    fabric = leaf_spine(planes=planes, leaves=leaves, spines=spines, hosts_per_leaf=hosts_per_leaf)
    names = [host.name for host in fabric.hosts]
    source, destination = data.draw(st.lists(st.sampled_from(names), min_size=2, max_size=2, unique=True))
    found = topologies.paths(fabric, source, destination)
    same_leaf = fabric.switch_of(source, 0) == fabric.switch_of(destination, 0)
    assert len(found) == planes * (1 if same_leaf else spines)
    assert len({path.nodes for path in found}) == len(found)
    graph = to_networkx(fabric)
    for path in found:
        assert (path.nodes[0], path.nodes[-1]) == (source, destination)
        assert len(path.nodes) == len(path.hops) + 1 == (3 if same_leaf else 5)
        for (here, there), hop in zip(zip(path.nodes, path.nodes[1:], strict=False), path.hops, strict=True):
            edge = graph.edges[here, there]
            assert (hop.node, hop.port, hop.link) == (here, edge["ports"][here], edge["link"])


def test_base_rtt_and_bandwidth_delay_product_by_hand() -> None:
    fabric = leaf_spine(host_rate_bps=10e9, fabric_rate_bps=40e9, delay_ps=1_000_000, hosts_per_leaf=1)
    path = topologies.paths(fabric, "h0", "h1", nic=0)[0]
    # 1000 B: 800 ns at 10 Gb/s on both host links, 200 ns at 40 Gb/s on both fabric links, 4 x 1 us.
    assert topologies.one_way_ps(path, 1000) == 2 * 800_000 + 2 * 200_000 + 4 * 1_000_000
    # 100 B back: 2 x 80 ns + 2 x 20 ns + 4 us.
    assert topologies.base_rtt_ps(path, 1000, 100) == 6_000_000 + 4_200_000
    assert topologies.bandwidth_delay_product_bytes(path, 1000, 100) == 12_750
    assert topologies.serialisation_ps(1, 3_000_000_000) == 2667


def test_longest_path_crosses_the_spines() -> None:
    fabric = leaf_spine(hosts_per_leaf=2)
    assert len(topologies.longest_path(fabric).nodes) == 5


def test_impossible_paths_are_refused() -> None:
    fabric = leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=1)
    with refused(TopologyError, problem="two different hosts"):
        topologies.paths(fabric, "h0", "h0")
    with refused(TopologyError, valid="h0", problem="unknown host"):
        topologies.paths(fabric, "h0", "h7")
    with refused(TopologyError, valid="at least 2 hosts", problem="a fabric of one host has no path"):
        topologies.longest_path(fabric)
    with refused(TopologyError, valid="0 to 1", problem="h0 has no NIC 4"):
        topologies.paths(leaf_spine(), "h0", "h1", nic=4)
