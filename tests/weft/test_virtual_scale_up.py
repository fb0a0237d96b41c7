"""Hosts of several ranks: right results over both kinds of links, exact times, refusals."""

import numpy as np
import pytest

from tests.refusals import refused
from weft import BadInputError, EnvironmentLacksError, Fabric, topologies
from weft.clocks import environment
from weft.clocks.virtual.partitioning import partition_nodes
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.scenario.options import FabricOptions
from weft.scenario.topology import build_topology
from weft.topologies import TopologyError, from_parameters, leaf_spine, with_scale_up

RATE_BPS, LATENCY_PS = 3_200_000_000_000, 500_000
SIDE_BY_SIDE = {"planes": 2, "leaves": 2, "spines": 1, "hosts_per_leaf": 1, "ranks_per_host": 4}
RAILS = {
    "planes": 1,
    "leaves": 4,
    "spines": 2,
    "hosts_per_leaf": 2,
    "ranks_per_host": 4,
    "rail_optimised": True,
    "scale_up": {"rate": "3.2Tbps", "latency": "500ns"},
}


def scenario(fabric, **traffic):
    return parse_scenario({"clock": "virtual", "fabric": fabric, "traffic": [traffic]})


@pytest.mark.parametrize(
    "collective", ["allreduce", "reducescatter", "alltoall", "alltoallv", "broadcast", "moe_dispatch"]
)
@pytest.mark.parametrize("fabric", [SIDE_BY_SIDE, RAILS], ids=["side by side", "rails"])
def test_collectives_are_right_on_hosts_of_several_ranks(fabric, collective):
    runs = run_scenario(scenario(fabric, collective=collective, sizes=["40KB"], dtype="int32")).collectives
    assert all(run.ok for run in runs)
    by_rail = {"allreduce", "alltoall", "alltoallv", "moe_dispatch"}
    assert ("hierarchical" in {run.algorithm for run in runs}) == (collective in by_rail)


def test_workers_change_nothing():
    given = scenario(RAILS, collective="allreduce", algorithms=["hierarchical", "ring"], sizes=["64KiB"])
    results = [run_scenario(given.model_copy(update={"workers": workers})).as_dict() for workers in (1, 2)]
    for result in results:
        result["made_by"].pop("workers", None)
    assert results[0] == results[1]


def test_a_single_host_all_reduces_at_the_speed_of_its_links():
    """Inside a host every rank sends r-1 chunks out and takes as many in, twice: 2((r-1)/r·S/R + L), exactly."""
    ranks, size_bytes = 4, 64 * 1024
    topology = with_scale_up(
        leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=ranks), ranks, RATE_BPS, LATENCY_PS
    )
    inputs = [np.arange(size_bytes // 4, dtype=np.int32) * rank for rank in range(ranks)]
    with Fabric(topology, clock="virtual") as fabric:
        run = fabric.run(CollectiveRequest("allreduce", inputs, "hierarchical"))
        stats = fabric.hosts.stats()
    sent_bytes = size_bytes * (ranks - 1) // ranks
    assert run.result.ok
    assert run.result.time_ps == 2 * (sent_bytes * 8 * 10**12 // RATE_BPS + LATENCY_PS)
    assert [each["scale_up"]["sent_bytes"] for each in stats] == [2 * sent_bytes] * ranks
    assert sum(each["totals"]["data_bytes_sent"] for each in stats) == 0


def test_a_hierarchical_all_reduce_loads_a_nic_with_its_share():
    """2(h-1)/h of a quarter of the data through each NIC; a ring over single ranks would send 2(n-1)/n of all."""
    size_bytes = 1 << 20
    topology = build_topology(parse_scenario({"fabric": RAILS}).fabric)
    with Fabric(topology, clock="virtual") as fabric:
        result = fabric.run(CollectiveRequest("allreduce", size_bytes, "hierarchical")).result
        sent = [each["totals"]["data_bytes_sent"] for each in fabric.hosts.stats()]
        alone = fabric.run(CollectiveRequest("allreduce", size_bytes, "tree")).result
    assert sent == [2 * 1 // 2 * size_bytes // 4] * 8
    line_ps = size_bytes // 4 * 8 * 10**12 // topology.hosts[0].nics[0].link.rate_bps
    assert line_ps < result.time_ps < 1.4 * line_ps
    assert result.time_ps < alone.time_ps


@pytest.mark.parametrize(("rail_optimised", "first"), [(False, (0, 1, 2, 3)), (True, (0, 4, 8, 12))])
def test_where_the_ranks_of_a_host_are(rail_optimised, first):
    fabric = with_scale_up(leaf_spine(planes=1, leaves=4, spines=1, hosts_per_leaf=4), 4, rail_optimised=rail_optimised)
    hosts = list(fabric.scale_up.hosts(16))
    assert hosts[0] == first
    assert sorted(rank for host in hosts for rank in host) == list(range(16))
    leaves = {fabric.hosts[rank].nics[0].switch for rank in first}
    assert len(leaves) == (4 if rail_optimised else 1)
    assert [[f"h{rank}" for rank in host] for host in hosts] == partition_nodes(fabric)[-len(hosts) :]
    assert from_parameters(fabric.parameters) == fabric


def test_workers_share_out_hosts_and_switches_alike():
    """A worker with all hosts of a block of rails would have nine tenths of the work of a job."""
    fabric = with_scale_up(leaf_spine(planes=1, leaves=8, spines=8, hosts_per_leaf=8), 8, rail_optimised=True)
    nodes = partition_nodes(fabric)
    with Fabric(fabric, clock="virtual", workers=2) as running:
        shares = running.lab.partitions.shares()
    assert [sum(len(nodes[partition]) == 8 for partition in share) for share in shares] == [4, 4]
    assert [len(share) for share in shares] == [12, 12]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"ranks_per_host": 1}, {"valid": "2 to 8", "problem": "ranks_per_host=1"}),
        (
            {"ranks_per_host": 3},
            {"valid": "multiples of 3, such as 3 or 6", "problem": "4 ranks on a leaf do not fill"},
        ),
        (
            {"ranks_per_host": 3, "rail_optimised": True},
            {"valid": "multiples of 3, such as 3", "problem": "2 leaves are not whole blocks"},
        ),
        (
            {"ranks_per_host": 2, "latency_ps": -1},
            {"valid": "0 to 1000000000000", "problem": "latency_ps=-1"},
        ),
        (
            {"ranks_per_host": 2, "rate_bps": 0},
            {"valid": "1000000 to 100000000000000", "problem": "rate_bps"},
        ),
    ],
)
def test_hosts_that_do_not_fit_are_refused(arguments, words):
    fabric = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=4)
    with refused(TopologyError, **words):
        with_scale_up(fabric, **arguments)
    with refused(TopologyError, problem="already"):
        with_scale_up(with_scale_up(fabric, 2), 2)


@pytest.mark.parametrize(
    ("fabric", "words"),
    [
        ({"scale_up": {"rate": "1Tbps"}}, ["scale_up", "ranks_per_host"]),
        ({"rail_optimised": True}, ["rail_optimised", "ranks_per_host"]),
        (RAILS | {"leaves": 6}, ["6 leaves", "4 rails"]),
        (SIDE_BY_SIDE | {"scale_up": {"speed": 1}}, ["unknown key", "speed"]),
    ],
)
def test_scenarios_that_make_no_sense_are_refused(fabric, words):
    with pytest.raises(BadInputError) as refused:
        parse_scenario({"fabric": fabric})
    assert all(word in str(refused.value) for word in words), refused.value


def test_bmv2_has_no_links_inside_hosts(monkeypatch):
    """It takes no dilation, and in real time processes are too slow for such links."""
    monkeypatch.setattr(environment, "require_bmv2", lambda: None)
    topology = with_scale_up(topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2, delay_ps=0), 2)
    with refused(EnvironmentLacksError, problem="BMv2 does not have"):
        environment.require_for(topology, FabricOptions(clock="real", target="bmv2", dilation=1.0))
