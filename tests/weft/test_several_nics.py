"""Hosts with several NICs in a plane: traffic uses all of them by their numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.refusals import refused
from weft import Fabric
from weft.errors import BadInputError
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.topologies import FabricSpec, LinkSpec
from weft.topologies.builder import FabricBuilder

LINK = LinkSpec(10**11, 10**6, 512 * 1024)


def two_each(planes: int) -> FabricSpec:
    """Two leaves of two hosts, two NICs of each host at its leaf, two links from each leaf to the spine."""
    builder = FabricBuilder()
    leaves = [[builder.add_switch(plane, "leaf") for _ in range(2)] for plane in range(planes)]
    for leaf in range(2):
        for _ in range(2):
            builder.add_host([of_plane[leaf] for of_plane in leaves for _ in range(2)], LINK)
    for plane, of_plane in enumerate(leaves):
        spine = builder.add_switch(plane, "spine")
        for each in of_plane:
            builder.add_link(each, spine, LINK)
            builder.add_link(each, spine, LINK)
    return builder.build({})


@pytest.mark.parametrize("planes", [1, 2])
def test_flows_and_collectives_go_over_all_nics(planes: int) -> None:
    buffers = [np.arange(1024, dtype=np.int32) + rank for rank in range(4)]
    with Fabric(two_each(planes), clock="virtual") as fabric:
        assert fabric.permutation(1 << 14).bytes_delivered == 4 * 2 * planes * (1 << 14)
        reduced = fabric.run(CollectiveRequest("allreduce", buffers, "ring")).buffers
        assert all(np.array_equal(each, sum(buffers)) for each in reduced)
        with pytest.raises(BadInputError, match=rf"{2 * planes} NICs on {planes} planes .* one NIC a plane"):
            fabric.run(CollectiveRequest("allreduce", buffers, "in-network"))
        reduced = fabric.run(CollectiveRequest("allreduce", buffers, "ring")).buffers
        assert all(np.array_equal(each, sum(buffers)) for each in reduced)


TWO_NICS_A_HOST = {
    "planes": 1,
    "switches": [{"role": "leaf", "count": 2}],
    "hosts": [{"on": "l0+l0", "count": 2}, {"on": "l1+l1", "count": 2}],
    "links": [{"ends": "l0<->l1"}],
}
RAILS_APART = {"kind": "rail_only", "ranks_per_host": 2, "hosts_per_leaf": 2}
WIDE_LEAF = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 33}
ALL_REDUCE = {"collective": "allreduce", "data": "lengths"}


@pytest.mark.parametrize(
    ("fabric", "left_out"),
    [
        (TWO_NICS_A_HOST, {"in-network": "ranks of 2 NICs on 1 planes cannot reduce"}),
        (
            RAILS_APART,
            {
                "tree": "h1 and h2 have no path in plane 0",
                "in-network": "no switch of plane 0 reaches all leaves",
            },
        ),
        (WIDE_LEAF, {"in-network": "33 children in the tree (valid: at most 32)"}),
    ],
    ids=["two NICs a plane", "rails apart", "wide leaf"],
)
def test_algorithms_that_the_fabric_lacks_something_for_are_left_out(
    fabric: dict[str, object], left_out: dict[str, str]
) -> None:
    said: list[str] = []
    scenario = parse_scenario({"clock": "virtual", "fabric": fabric, "traffic": [ALL_REDUCE]})
    ran = {each.algorithm for each in run_scenario(scenario, progress=said.append).collectives}
    assert "ring" in ran
    assert not ran & left_out.keys()
    reasons = [line for line in said if "left out" in line]
    assert len(reasons) == len(left_out)
    for reason, (name, words) in zip(reasons, left_out.items(), strict=True):
        assert reason.startswith(f"all-reduce, {name} left out: ")
        assert words in reason


@pytest.mark.parametrize(
    ("fabric", "item", "words"),
    [
        (
            TWO_NICS_A_HOST,
            {**ALL_REDUCE, "algorithms": ["ring", "in-network"]},
            {"place": "scenario: traffic[0].algorithms[1]", "problem": "2 NICs"},
        ),
        (
            RAILS_APART,
            {**ALL_REDUCE, "algorithms": ["tree"]},
            {"place": "scenario: traffic[0].algorithms[0]", "problem": "h1 and h2 have no path"},
        ),
        (
            RAILS_APART,
            {"collective": "broadcast"},
            {"place": "scenario: traffic[0]", "problem": "no algorithm of broadcast can"},
        ),
        (
            WIDE_LEAF,
            {
                "training_step": "data-parallel",
                "layers": [{"gradients": "4KiB"}],
                "algorithms": ["in-network"],
            },
            {"place": "scenario: traffic[0].algorithms[0]", "problem": "p0l0 would have 33 children"},
        ),
    ],
)
def test_an_algorithm_that_is_asked_for_is_refused_before_the_fabric_is_built(
    fabric: dict[str, object], item: dict[str, object], words: dict[str, str]
) -> None:
    said: list[str] = []
    with refused(BadInputError, **words):
        run_scenario(parse_scenario({"clock": "virtual", "fabric": fabric, "traffic": [item]}), progress=said.append)
    assert said == []
