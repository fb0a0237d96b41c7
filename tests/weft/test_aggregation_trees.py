"""Reductions over several trees: roots of their own in a plane, and rails whose hosts reduce inside first."""

import numpy as np
import pytest

from tests.refusals import refused
from weft import BadInputError, Fabric, topologies
from weft.recording.observations import ports_table
from weft.run.collectives import CollectiveRequest
from weft.topologies import with_scale_up
from weft.traffic.aggregation_format import LANE_COUNT, frame_bytes

RATE_BPS = 100e9
PAYLOAD_BYTES = LANE_COUNT * 4


def clos(**arguments):
    return topologies.leaf_spine(**{"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 4} | arguments)


def gpus(rail_optimised, **arguments):
    return with_scale_up(clos(**arguments), 4, rail_optimised=rail_optimised)


FABRICS = {
    "side by side": gpus(False),
    "rails": gpus(True, leaves=4, hosts_per_leaf=2),
    "two planes": gpus(False, planes=2),
    "one host": gpus(False, leaves=1),
}


REDUCTIONS = [
    ("int32", "sum", 5000),
    ("float32", "sum", 5000),
    ("float32", "max", 999),
    ("int32", "min", 3),
    ("float32", "sum", 200_001),
]


def inputs_of(dtype, count, ranks):
    generator = np.random.default_rng(3)
    if dtype == "int32":
        return [generator.integers(-(2**31), 2**31, count).astype(np.int32) for _ in range(ranks)]
    return [(generator.standard_normal(count) * 10.0 ** (rank % 5)).astype(np.float32) for rank in range(ranks)]


def sent_bytes(fabric, table):
    """By port of a switch, what it has sent."""
    return dict(zip(table["port"].texts(), table["transmitted_bytes"].tolist(), strict=True))


@pytest.mark.parametrize("trees", [1, 3])
@pytest.mark.parametrize("name", FABRICS)
def test_hosts_reduce_inside_first(name, trees):
    topology = FABRICS[name]
    with Fabric(topology, clock="virtual", trees=trees) as fabric:
        for dtype, operation, count in REDUCTIONS:
            inputs = inputs_of(dtype, count, topology.rank_count)
            run = fabric.run(CollectiveRequest("allreduce", inputs, "hierarchical-in-network", operation=operation))
            assert run.result.ok, (dtype, operation, count)
            if dtype == "int32" and operation == "sum":
                np.testing.assert_array_equal(run.buffers[1], np.sum(inputs, axis=0, dtype=np.int32))


def test_losses_change_nothing():
    topology = FABRICS["side by side"]
    with Fabric(topology, clock="virtual", trees=2, faults={"loss": 0.02}) as fabric:
        run = fabric.run(CollectiveRequest("allreduce", inputs_of("int32", 20_000, 8), "hierarchical-in-network"))
    assert run.result.ok
    assert run.result.retransmissions > 0


def test_a_nic_carries_its_ranks_share_once():
    """Of hosts of four ranks, a quarter of the data in packets of 64 elements, whatever the number of hosts."""
    size_bytes = 1 << 20
    with Fabric(FABRICS["rails"], clock="virtual", int_telemetry=False) as fabric:
        result = fabric.run(CollectiveRequest("allreduce", size_bytes, "hierarchical-in-network", dtype="int32")).result
        stats = fabric.hosts.stats()
    packets = size_bytes // 4 // PAYLOAD_BYTES
    assert [each["planes"][0]["aggregation"]["contributions_sent"] for each in stats] == [packets] * 8
    assert result.packets_aggregated > 0


@pytest.mark.parametrize("trees", [1, 2, 4])
def test_uplinks_share_what_goes_to_the_roots(trees):
    """Each tree's share goes up once from each leaf and comes down once: bytes of each link, exactly."""
    size_bytes = 1 << 18
    topology = clos(spines=4)
    with Fabric(topology, clock="virtual", int_telemetry=False, trees=trees) as fabric:
        before = sent_bytes(fabric, ports_table(topology, fabric.lab.switch_stats(), fabric.hosts.stats()))
        fabric.run(CollectiveRequest("allreduce", size_bytes, "in-network", dtype="int32"))
        after = sent_bytes(fabric, ports_table(topology, fabric.lab.switch_stats(), fabric.hosts.stats()))
    share = size_bytes // trees // PAYLOAD_BYTES * frame_bytes(4, LANE_COUNT)
    links = [
        (f"{leaf}:{port.number}", f"{port.peer.node}:{port.peer.port}", port.peer.node)
        for leaf in ("p0l0", "p0l1")
        for port in topology.switch(leaf).fabric_ports
    ]
    up = [after[port] - before[port] for port, _, _ in links]
    of_spines = {spine: [after[end] - before[end] for _, end, node in links if node == spine] for _, _, spine in links}
    assert sorted(of_spines.values()) == [[0, 0]] * (4 - trees) + [[share, share]] * trees
    assert sorted(up) == [0] * 2 * (4 - trees) + [share] * 2 * trees


def test_trees_relieve_links_that_are_slower_than_hosts():
    size_bytes = 1 << 18
    topology = clos(spines=4, host_rate_bps=RATE_BPS, fabric_rate_bps=RATE_BPS / 4)
    times = {}
    for trees in (1, 4):
        with Fabric(topology, clock="virtual", int_telemetry=False, trees=trees) as fabric:
            times[trees] = fabric.run(
                CollectiveRequest("allreduce", size_bytes, "in-network", dtype="int32")
            ).result.time_ps
    assert times[4] < 0.4 * times[1]


def test_hosts_of_one_rank_have_no_inside():
    with (
        Fabric(clos(), clock="virtual") as fabric,
        refused(
            BadInputError,
            place="allreduce by hierarchical-in-network",
            problem="hosts of 1 rank have no links",
        ),
    ):
        fabric.run(CollectiveRequest("allreduce", inputs_of("int32", 64, 8), "hierarchical-in-network"))


def test_more_trees_than_slots_allow_are_refused():
    with (
        Fabric(clos(), clock="virtual", trees=64, slots=128) as fabric,
        pytest.raises(BadInputError, match="aggregation slots"),
    ):
        fabric.run(CollectiveRequest("allreduce", inputs_of("int32", 64 * 64, 8), "in-network"))
