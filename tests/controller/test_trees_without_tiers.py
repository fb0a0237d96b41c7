"""Aggregation trees where no switch stands above all others."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.controller.errors import JobError
from weft.controller.failures import NO_FAILURES
from weft.controller.tree_load import TreeLoad
from weft.controller.trees import AggregationTree, plan_tree
from weft.topologies.kinds.torus import torus


def depth(tree: AggregationTree, switch: str) -> int:
    """Hops of a node from the root; the walk ends, so there is no cycle."""
    hops = 0
    while (node := tree.node(switch)) is not None and node.parent is not None:
        child = next(each for each in tree.node(node.parent.name).children if each.name == switch)  # type: ignore[union-attr]
        assert child.rank == node.parent.rank
        switch = node.parent.name
        hops += 1
        assert hops <= len(tree.nodes)
    assert switch == tree.root.switch
    return hops


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=2, max_size=3), st.data())
def test_a_torus_has_a_tree_of_shortest_paths(shape: list[int], data: st.DataObject) -> None:
    fabric = torus(shape=shape, hosts_per_switch=2)
    names = [host.name for host in fabric.hosts]
    hosts = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    tree = plan_tree(fabric, 0, hosts, NO_FAILURES)
    workers = [child.name for node in tree.nodes for child in node.children if child.name.startswith("h")]
    assert sorted(workers) == sorted(hosts)
    for node in tree.nodes:
        assert depth(tree, node.switch) == fabric.hops_between(node.switch, tree.root.switch)


def test_the_root_is_in_the_middle_and_has_few_trees() -> None:
    fabric = torus(shape=(5,), wrap=False)
    hosts = [host.name for host in fabric.hosts]
    assert plan_tree(fabric, 0, hosts, NO_FAILURES).root.switch == "p0n2"
    ring = torus(shape=(4,))
    hosts = [host.name for host in ring.hosts]
    assert plan_tree(ring, 0, hosts, NO_FAILURES, TreeLoad({"p0n0": 1, "p0n1": 1})).root.switch == "p0n2"


def test_a_tree_avoids_failures_until_the_fabric_is_cut() -> None:
    fabric = torus(shape=(4,))
    hosts = [host.name for host in fabric.hosts]
    once = NO_FAILURES.with_link(fabric.link_between("p0n1", "p0n2"))
    tree = plan_tree(fabric, 0, hosts, once)
    assert not tree.is_hit_by(once)
    twice = once.with_link(fabric.link_between("p0n3", "p0n0"))
    with refused(JobError, problem="no switch of plane 0 reaches"):
        plan_tree(fabric, 0, hosts, twice)
