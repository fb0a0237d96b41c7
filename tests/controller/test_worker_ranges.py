"""Numbers of a tree's workers: below each child of each node they are a range, in any topology."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topologies.example_fabrics import EXAMPLES
from weft.controller.errors import JobError
from weft.controller.failures import NO_FAILURES
from weft.controller.trees import AggregationTree, plan_tree
from weft.controller.worker_ranges import worker_numbers, worker_ranges
from weft.scenario import load_scenario
from weft.topologies import leaf_spine

FABRICS = {path.stem: path for path in EXAMPLES}


def hosts_below(tree: AggregationTree, name: str) -> set[str]:
    node = tree.node(name)
    return {name} if node is None else {host for child in node.children for host in hosts_below(tree, child.name)}


def check_ranges(tree: AggregationTree, hosts: list[str]) -> None:
    ranges = worker_ranges(tree)
    numbers = {host: ranges[host].start for host in hosts}
    assert sorted(numbers.values()) == list(range(len(hosts)))
    for node in tree.nodes:
        for child in node.children:
            assert set(ranges[child.name]) == {numbers[host] for host in hosts_below(tree, child.name)}
    in_order = worker_numbers(tree, hosts)
    assert in_order in ((), tuple(numbers[host] for host in hosts))
    assert in_order or all(numbers[host] == rank for rank, host in enumerate(hosts))


@pytest.mark.parametrize("path", FABRICS.values(), ids=FABRICS)
def test_workers_below_a_child_follow_each_other_in_every_topology(path: Path) -> None:
    fabric = load_scenario(path).fabric.build()
    hosts = [host.name for host in fabric.hosts]
    for order in (hosts, hosts[::-1], [*hosts[::2], *hosts[1::2]]):
        try:
            tree = plan_tree(fabric, 0, order[:64], NO_FAILURES)
        except JobError:
            pytest.skip("the fabric has no aggregation tree")
        check_ranges(tree, order[:64])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_workers_of_any_ranks_do(data: st.DataObject) -> None:
    fabric = leaf_spine(planes=1, leaves=4, spines=2, hosts_per_leaf=3)
    names = [host.name for host in fabric.hosts]
    hosts = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    check_ranges(plan_tree(fabric, 0, hosts, NO_FAILURES), hosts)
