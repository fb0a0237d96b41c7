"""Hosts with several NICs in a plane: traffic uses all of them by their numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.refusals import refused
from weft import Fabric
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import load_scenario, parse_scenario
from weft.topologies import FabricSpec, LinkSpec
from weft.topologies.builder import FabricBuilder

LINK = LinkSpec(10**11, 10**6, 512 * 1024)


def several_each(planes: int, nics: int = 2) -> FabricSpec:
    """Two leaves of two hosts, all NICs of each host at its leaf, two links from each leaf to the spine."""
    builder = FabricBuilder()
    leaves = [[builder.add_switch(plane, "leaf") for _ in range(2)] for plane in range(planes)]
    for leaf in range(2):
        for _ in range(2):
            builder.add_host([of_plane[leaf] for of_plane in leaves for _ in range(nics)], LINK)
    for plane, of_plane in enumerate(leaves):
        spine = builder.add_switch(plane, "spine")
        for each in of_plane:
            builder.add_link(each, spine, LINK)
            builder.add_link(each, spine, LINK)
    return builder.build({})


@pytest.mark.parametrize("planes", [1, 2])
def test_flows_and_collectives_go_over_all_nics(planes: int) -> None:
    buffers = [np.arange(1024, dtype=np.int32) + rank for rank in range(4)]
    with Fabric(several_each(planes), clock="virtual") as fabric:
        assert fabric.permutation(1 << 14).bytes_delivered == 4 * 2 * planes * (1 << 14)
        reduced = fabric.run(CollectiveRequest("allreduce", buffers, "ring")).buffers
        assert all(np.array_equal(each, sum(buffers)) for each in reduced)
        reduced = fabric.run(CollectiveRequest("allreduce", buffers, "in-network")).buffers
        assert all(np.array_equal(each, sum(buffers)) for each in reduced)


def test_two_edges_of_a_file_between_a_host_and_its_leaf_are_two_nics() -> None:
    scenario = load_scenario(ROOT / "examples" / "two_nics.yaml")
    fabric = scenario.fabric.build()
    for host in fabric.hosts:
        assert len(host.nics) == 2
        assert len({nic.switch for nic in host.nics}) == 1
    found = run_scenario(scenario).collectives
    assert [each.algorithm for each in found] == ["ring", "in-network"]
    assert all(each.ok for each in found)
    # A single link of 100 Gb/s takes 84 µs for these bytes.
    assert found[1].time_ps < 8 * found[1].size_bytes * 10


COLLECTIVES = [
    ("allreduce", "int32", "sum"),
    ("allreduce", "float32", "sum"),
    ("allreduce", "int8", "max"),
    ("reducescatter", "float32", "sum"),
    ("allgather", "int32", "sum"),
    ("broadcast", "int32", "sum"),
    ("reduce", "int32", "sum"),
]


@pytest.mark.parametrize("trees", [1, 2])
def test_the_network_reduces_the_same_whatever_the_number_of_nics(trees: int) -> None:
    """Bit for bit, by the same packets: each NIC has a share of the data and trees of its own."""
    results = []
    for nics in (1, 2, 3):
        with Fabric(several_each(1, nics), clock="virtual", trees=trees) as fabric:
            made = []
            for collective, dtype, operation in COLLECTIVES:
                draws = (np.random.default_rng(rank).integers(-100, 100, 6144) for rank in range(4))
                buffers = [each.astype(dtype) for each in draws]
                run = fabric.run(CollectiveRequest(collective, buffers, "in-network", operation=operation))
                assert run.result.ok, (nics, collective, dtype)
                made.append([buffer.tobytes() for buffer in run.buffers])
            assert fabric.run(CollectiveRequest("barrier", [np.zeros(1, np.int32)] * 4, "in-network")).result.ok
            places = [job.place for job in fabric.lab.controller.jobs]
            assert sorted(places) == sorted(list(range(nics)) * trees)
            fabric.summary()
        results.append(made)
    assert results[0] == results[1] == results[2]


def test_two_nics_reduce_twice_as_fast_as_one() -> None:
    """Each NIC's link carries half the packets, and the way to the root and back stays."""
    size_bytes, times_ps, sent = 1 << 22, [], []
    for nics in (1, 2):
        with Fabric(several_each(1, nics), clock="virtual") as fabric:
            times_ps.append(fabric.run(CollectiveRequest("allreduce", size_bytes, "in-network")).result.time_ps)
            sent.append([plane["transmit"]["transmitted"]["packets"] for plane in fabric.hosts.stats()[0]["planes"]])
    assert 1.95 < times_ps[0] / times_ps[1] < 2
    (whole,), (one, other) = sent
    assert one == other
    assert one + other == pytest.approx(whole, abs=4)


def test_groups_reduce_over_both_nics_at_the_same_time() -> None:
    """Each group has a job for each NIC; a host in both has four."""
    buffers = [np.arange(5000, dtype=np.int32) * (rank + 1) for rank in range(3)]
    with Fabric(several_each(1), clock="virtual") as fabric:
        tasks = [
            fabric.tasks.collective(CollectiveRequest("allreduce", buffers, "in-network", ranks=ranks))
            for ranks in ([3, 0, 1], [0, 1, 2])
        ]
        assert all(each.ok for each in fabric.run_together(tasks))
        found = [(job.hosts, job.place) for job in fabric.lab.controller.jobs]
    assert sorted(found) == sorted(
        (hosts, place) for hosts in (("h3", "h0", "h1"), ("h0", "h1", "h2")) for place in (0, 1)
    )


TWO_NICS_A_HOST = {
    "planes": 1,
    "switches": [{"role": "leaf", "count": 2}],
    "hosts": [{"on": "l0+l0", "count": 2}, {"on": "l1+l1", "count": 2}],
    "links": [{"ends": "l0<->l1"}],
}
RAILS_APART = {"kind": "rail_only", "ranks_per_host": 2, "hosts_per_leaf": 2, "scale_up": {"relay": "off"}}
WIDE_LEAF = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 33}
ALL_REDUCE = {"collective": "allreduce", "data": "lengths"}


@pytest.mark.parametrize(
    ("fabric", "left_out"),
    [
        (TWO_NICS_A_HOST, {}),
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
