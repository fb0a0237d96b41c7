"""Switches inside hosts that reduce and multicast: right results, and exactly the bytes and times of closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft import BadInputError, Fabric
from weft.results.run_result import RunResult
from weft.results.training_jobs import TRAINING_JOBS
from weft.run.collectives import CollectiveRequest, data_type, random_elements
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.scenario.topology import build_topology
from weft.topologies import TopologyError, from_parameters, leaf_spine, with_scale_up

RATE_BPS, LATENCY_PS = 3_200_000_000_000, 500_000
HOSTS: dict[str, Any] = {
    "planes": 1,
    "leaves": 4,
    "spines": 2,
    "hosts_per_leaf": 2,
    "ranks_per_host": 4,
    "rail_optimised": True,
    "scale_up": {"rate": "3.2Tbps", "latency": "500ns", "reductions": True},
}
ALGORITHMS = ["nvls", "nvls-tree", "nvls-in-network"]


def run(fabric: dict[str, Any], *traffic: dict[str, Any], **more: Any) -> RunResult:
    return run_scenario(parse_scenario({"clock": "virtual", "fabric": fabric, "traffic": list(traffic), **more}))


def one_host(ranks: int):
    network = leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=ranks)
    return with_scale_up(network, ranks, RATE_BPS, LATENCY_PS, reductions=True)


@pytest.mark.parametrize(
    ("collective", "up", "down"), [("allreduce", 1, 1), ("reducescatter", 1, 1 / 8), ("allgather", 1 / 8, 1)]
)
def test_links_of_one_host_carry_the_data_once(collective, up, down):
    """A ring carries 2(n-1)/n of an all-reduce; the switch takes each rank's data up once and brings the sums down."""
    ranks, size_bytes = 8, 256 * 1024
    count = size_bytes // 4 // (ranks if collective == "allgather" else 1)
    inputs = [np.arange(count, dtype=np.int32) * (rank + 1) for rank in range(ranks)]
    with Fabric(one_host(ranks), clock="virtual") as fabric:
        result = fabric.run(CollectiveRequest(collective, inputs, "nvls")).result
        stats = fabric.hosts.stats()
    assert result.ok
    assert result.time_ps == size_bytes * 8 * 10**12 // RATE_BPS + LATENCY_PS
    assert [each["scale_up"]["sent_bytes"] for each in stats] == [up * size_bytes] * ranks
    assert [each["scale_up"]["received_bytes"] for each in stats] == [down * size_bytes] * ranks
    assert sum(each["totals"]["data_bytes_sent"] for each in stats) == 0


@pytest.mark.parametrize(("algorithm", "share"), [("nvls", 2 * 1 / 2 / 4), ("nvls-tree", None), ("nvls-in-network", 0)])
def test_links_of_several_hosts_carry_the_share_of_a_rank_twice(algorithm, share):
    """All terms go up and a rank's results come down; these go up again and all results come down."""
    size_bytes = 1 << 20
    topology = build_topology(parse_scenario({"fabric": HOSTS}).fabric)
    inputs = [np.full(size_bytes // 4, rank, np.int32) for rank in range(8)]
    with Fabric(topology, clock="virtual") as fabric:
        result = fabric.run(CollectiveRequest("allreduce", inputs, algorithm)).result
        stats = fabric.hosts.stats()
    assert result.ok
    for counter in ("sent_bytes", "received_bytes"):
        assert [each["scale_up"][counter] for each in stats] == [size_bytes + size_bytes // 4] * 8
    sent = [each["totals"]["data_bytes_sent"] for each in stats]
    if share is not None:
        assert sent == [share * size_bytes] * 8
    else:
        # With two hosts, the root sends all of a rail's chunk down, the other one all of it up.
        assert sent == [size_bytes // 4] * 8


def test_switches_overlap_the_exchange_between_hosts():
    """NICs are busy with a rank's share all the time; what is inside hosts adds less than it takes by itself."""
    size_bytes, nic_bps = 8 << 20, 400 * 10**9
    names = [*ALGORITHMS, "hierarchical"]
    item = {"collective": "allreduce", "algorithms": names, "sizes": [size_bytes], "data": "lengths"}
    result = run({**HOSTS, "host_rate": "400Gb/s"}, item, mtu=4096)
    time_ps = {each.algorithm: each.time_ps for each in result.collectives}
    nic_ps = size_bytes // 4 * 8 * 10**12 // nic_bps
    inside_ps = (size_bytes + size_bytes // 4) * 8 * 10**12 // RATE_BPS
    assert nic_ps < time_ps["nvls"] < nic_ps + inside_ps
    assert all(time_ps[name] < time_ps["hierarchical"] for name in ("nvls", "nvls-tree"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "int16", "int8"])
def test_all_types_are_summed_and_verified(dtype):
    algorithms = {"allreduce": ALGORITHMS, "reducescatter": ["nvls"], "allgather": ["nvls"]}
    items = [
        {"collective": name, "algorithms": of_it, "sizes": ["40KB"], "dtype": dtype}
        for name, of_it in algorithms.items()
    ]
    result = run(HOSTS, *items)
    assert result.ok
    assert [each.algorithm for each in result.collectives] == [*ALGORITHMS, "nvls", "nvls"]
    assert all(each.wrong == 0 for each in result.collectives)


@given(
    hosts=st.integers(1, 3),
    ranks=st.integers(2, 4),
    planes=st.integers(1, 2),
    elements=st.integers(1, 3000),
    dtype=st.sampled_from(["float32", "bfloat16", "int32", "int8"]),
    operation=st.sampled_from(["sum", "max", "average"]),
    algorithm=st.sampled_from(ALGORITHMS),
    seed=st.integers(0, 100),
)
@settings(max_examples=25, deadline=None)
def test_any_hosts_all_reduce_what_numpy_does(hosts, ranks, planes, elements, dtype, operation, algorithm, seed):
    network = leaf_spine(planes=planes, leaves=ranks, spines=1, hosts_per_leaf=hosts)
    topology = with_scale_up(network, ranks, RATE_BPS, LATENCY_PS, rail_optimised=True, reductions=True)
    generator = np.random.default_rng(seed)
    inputs = [random_elements(generator, data_type(dtype), elements) for _ in range(hosts * ranks)]
    request = CollectiveRequest(
        "allreduce", inputs, "nvls" if hosts == 1 else algorithm, dtype=dtype, operation=operation
    )
    with Fabric(topology, clock="virtual") as fabric:
        result = fabric.run(request).result
    assert result.ok
    assert result.identical


@pytest.mark.parametrize("protocol", ["rc", "mrc", "uet"])
def test_every_transport_carries_what_is_between_hosts(protocol):
    item = {"collective": "allreduce", "algorithms": ALGORITHMS, "sizes": ["64KiB"], "dtype": "int32"}
    assert run(HOSTS, item, transport={"protocol": protocol}, int=False).ok


def test_workers_change_nothing():
    scenario = parse_scenario(
        {
            "clock": "virtual",
            "fabric": HOSTS,
            "traffic": [{"collective": "allreduce", "algorithms": ALGORITHMS, "sizes": ["64KiB"]}],
        }
    )
    results = [run_scenario(scenario.model_copy(update={"workers": workers})).as_dict() for workers in (1, 2)]
    for result in results:
        result["made_by"].pop("workers", None)
    assert results[0] == results[1]


def test_lengths_take_the_time_of_data():
    inputs = [np.ones(1 << 16, np.int32) for _ in range(8)]
    topology = build_topology(parse_scenario({"fabric": HOSTS}).fabric)
    times = []
    for data in (inputs, inputs[0].nbytes):
        with Fabric(topology, clock="virtual") as fabric:
            times.append(fabric.run(CollectiveRequest("allreduce", data, "nvls", dtype="int32")).result.time_ps)
    assert times[0] == times[1]


def test_some_ranks_of_a_host_reduce_by_its_switch_and_several_groups_at_once():
    """Groups number their reductions alike; the switch keeps them apart."""
    items = [
        {"collective": "allreduce", "algorithms": ["nvls"], "ranks": ranks, "sizes": ["64KiB"], "dtype": "int32"}
        for ranks in ([0, 2], [0, 2, 4, 6], [1, 3, 5])
    ]
    result = run(HOSTS, *items, {"together": items})
    assert result.ok
    assert [each.wrong for each in result.collectives] == [0] * 6


def test_groups_that_a_switch_cannot_join_are_refused():
    item = {"collective": "allreduce", "ranks": [0, 2, 1], "sizes": ["64KiB"], "algorithms": ["nvls"]}
    with pytest.raises(Exception, match="in no regular order"):
        run(HOSTS, item)
    across = {**item, "ranks": [0, 2, 1, 3], "algorithms": ["nvls-in-network"]}
    with pytest.raises(Exception, match="for all ranks of a fabric"):
        run(HOSTS, across)


MODEL = {
    "layers": 2,
    "hidden": 512,
    "heads": 8,
    "feed_forward": 1024,
    "vocabulary": 1000,
    "sequence": 256,
}


@pytest.mark.parametrize(
    ("parallel", "kind", "algorithm"),
    [
        ({"tensor": 4, "data": 2}, "tensor", "nvls"),
        ({"data": 8}, "data", "nvls"),
        ({"data": 8}, "data", "nvls-tree"),
    ],
)
def test_groups_of_a_training_job_reduce_by_switches(parallel, kind, algorithm):
    fabric = {**HOSTS, "host_rate": "400Gb/s", "queue_capacity": "4MiB"}
    step_ps = []
    for name in ("ring", algorithm):
        item = {"model": MODEL, "parallel": parallel, "algorithms": {kind: name}}
        (found,) = run(fabric, item).traffic[TRAINING_JOBS.key]
        assert found.ok
        step_ps.append(found.step_ps)
    assert step_ps[1] < step_ps[0]


def test_auto_takes_the_switch_inside_a_host():
    fabric = {**HOSTS, "leaves": 4, "hosts_per_leaf": 1}
    [found] = run(fabric, {"collective": "allreduce", "algorithms": ["auto"], "sizes": ["1MiB"]}).collectives
    assert found.choice is not None
    assert found.choice.algorithm == "nvls"


def test_simple_is_the_only_protocol():
    item = {"collective": "allreduce", "algorithms": ["nvls"], "sizes": ["64KiB"]}
    [plain] = run(HOSTS, item).collectives
    for protocol in ("simple", "auto"):
        [found] = run(HOSTS, {**item, "protocol": protocol}).collectives
        assert found.ok
        assert found.time_ps > plain.time_ps
    with pytest.raises(BadInputError, match="no flags of ll"):
        run(HOSTS, {**item, "protocol": "ll"})


@pytest.mark.parametrize(("system", "rate_bps"), [("dgx-h100", 3.6e12), ("nvl72", 7.2e12), ("ualink-72", 14.4e12)])
def test_a_system_gives_the_rate_and_a_switch_that_reduces(system, rate_bps):
    fabric = build_topology(parse_scenario({"fabric": {**HOSTS, "scale_up": {"system": system}}}).fabric)
    assert fabric.scale_up is not None
    assert (fabric.scale_up.rate_bps, fabric.scale_up.reductions) == (rate_bps, True)
    assert from_parameters(fabric.parameters) == fabric
    given = {"system": system, "rate": "1Tb/s", "reductions": False}
    fabric = build_topology(parse_scenario({"fabric": {**HOSTS, "scale_up": given}}).fabric)
    assert fabric.scale_up is not None
    assert (fabric.scale_up.rate_bps, fabric.scale_up.reductions) == (10**12, False)


def test_what_a_system_does_not_have_is_refused():
    with pytest.raises(Exception, match="dgx-h100 has 8 accelerators, not 16"):
        parse_scenario({"fabric": {**HOSTS, "leaves": 16, "ranks_per_host": 16, "scale_up": {"system": "dgx-h100"}}})
    with refused(TopologyError, problem="reductions=1", valid="True, False"):
        with_scale_up(leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2), 2, reductions=1)  # type: ignore[arg-type]


def test_hosts_without_such_a_switch_refuse_it():
    fabric = {**HOSTS, "scale_up": {"rate": "3.2Tbps"}}
    with pytest.raises(Exception, match="no switch that reduces"):
        run(fabric, {"collective": "allreduce", "algorithms": ["nvls"], "sizes": ["64KiB"]})
