"""Collectives in the network: what crosses each link, under loss too, and groups of ranks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.topologies.example_fabrics import EXAMPLES, routings_of, scenario_of
from weft import Fabric, topologies
from weft.run.algorithms import objections
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import ControlSection, load_scenario, parse_scenario
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.data_types import DataType

RANKS, PACKETS = 4, 64  # of 64 lanes, of a rank's data; ranks 0 and 1 are below p0l0, 2 and 3 below p0l1
LANES, HEADER = 342, 86
ROOT = 2
WHOLE, PART = PACKETS, PACKETS // RANKS
# Packets with lanes, of all: what each rank sends and receives; what leaf 0 sends to the spine, and gets from it.
MATRIX = {
    "allreduce": ([WHOLE] * 4, [WHOLE] * 4, WHOLE, WHOLE),
    "reduce": ([WHOLE] * 4, [0, 0, WHOLE, 0], WHOLE, 0),
    "broadcast": ([0, 0, WHOLE, 0], [WHOLE] * 4, 0, WHOLE),
    "reducescatter": ([WHOLE] * 4, [PART] * 4, WHOLE, 2 * PART),
    "allgather": ([PART] * 4, [WHOLE] * 4, 2 * PART, WHOLE),
}


def four_hosts(**arguments):
    return topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, **arguments)


def inputs_of(collective, elements=PACKETS * 64):
    generator = np.random.default_rng(7)
    own = elements // RANKS if collective == "allgather" else elements
    return [generator.integers(-(2**31), 2**31, own, np.int32) for _ in range(RANKS)]


def wire_bytes(with_lanes, packets=PACKETS):
    return with_lanes * LANES + (packets - with_lanes) * HEADER


def sent_bytes(fabric):
    return {name: sum(port.transmitted_by_kind().values()) for name, port in fabric.lab._transmit_ports().items()}


@pytest.mark.parametrize("collective", MATRIX)
def test_each_link_carries_what_the_collective_needs_and_headers(collective):
    up, down, leaf_up, leaf_down = MATRIX[collective]
    topology = four_hosts()
    with Fabric(topology, clock="virtual", int_telemetry=False) as fabric:
        fabric.lab.count_loads()
        run = fabric.run(CollectiveRequest(collective, inputs_of(collective), "in-network", root=ROOT))
        sent = sent_bytes(fabric)
    assert run.result.ok
    nics = [host.nics[0] for host in topology.hosts]
    assert [sent[f"{host.name}:0"] for host in topology.hosts] == [wire_bytes(each) for each in up]
    assert [sent[f"{nic.switch}:{nic.switch_port}"] for nic in nics] == [wire_bytes(each) for each in down]
    leaf = topology.switch("p0l0")
    (uplink,) = (port for port in leaf.ports if not port.peer_is_host)
    assert sent[f"p0l0:{uplink.number}"] == wire_bytes(leaf_up)
    assert sent[f"{uplink.peer.node}:{uplink.peer.port}"] == wire_bytes(leaf_down)


def test_a_barrier_is_a_header_up_and_down_each_link():
    topology = four_hosts(host_rate_bps=10**11, delay_ps=600_000)
    with Fabric(topology, clock="virtual", int_telemetry=False) as fabric:
        fabric.lab.count_loads()
        run = fabric.run(CollectiveRequest("barrier", [np.zeros(1, np.int32)] * RANKS, "in-network"))
        sent = sent_bytes(fabric)
    assert set(sent.values()) == {HEADER}
    header_ps = topologies.serialisation_ps(HEADER, 10**11)
    assert run.result.time_ps == 4 * (header_ps + 600_000)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("collective", [*MATRIX, "barrier"])
def test_under_loss_on_every_link_results_are_as_right(collective, dtype):
    sizes = [] if collective == "barrier" else ["50KB"]
    traffic = {
        "collective": collective, "algorithms": ["in-network"], "dtype": dtype, "sizes": sizes, "root": 3
    }  # fmt: skip
    fabric = {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 3}
    scenario = {"clock": "virtual", "fabric": fabric, "traffic": [traffic], "faults": {"loss": 0.02}}
    (run,) = run_scenario(parse_scenario(scenario)).collectives
    assert run.ok
    assert run.verified
    assert run.retransmissions > 0 or collective == "barrier"


def test_every_type_and_operation_is_right_under_loss_and_overflows_are_counted():
    """Random integers of the whole range overflow in sums; nothing else leaves its type's range."""
    traffic = [
        {"collective": "allreduce", "algorithms": ["in-network"], "dtype": dtype.value,
         "operation": operation.name.lower(), "sizes": ["5KB"]}
        for dtype in DataType
        for operation in Operation
        if not (dtype.is_float and operation.is_bitwise)
    ]  # fmt: skip
    fabric = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2}
    scenario = {"clock": "virtual", "fabric": fabric, "traffic": traffic, "faults": {"loss": 0.02}}
    runs = run_scenario(parse_scenario(scenario)).collectives
    assert len(runs) == 33
    assert all(run.ok and run.verified for run in runs)
    assert sum(run.retransmissions for run in runs) > 0
    for run in runs:
        overflows = run.dtype.startswith("int") and run.operation in ("sum", "average")
        assert (run.overflowed_packets > 0) == overflows, (run.dtype, run.operation)


def test_ranks_in_any_order_get_what_is_theirs():
    """A group's ranks are not in the order of the tree."""
    topology = topologies.leaf_spine(planes=1, leaves=3, spines=1, hosts_per_leaf=3)
    ranks = [7, 0, 3, 8, 1, 4]
    generator = np.random.default_rng(3)
    inputs = [generator.integers(-(2**31), 2**31, 1200, np.int32) for _ in ranks]
    with Fabric(topology, clock="virtual") as fabric:
        for collective in ("reduce", "reducescatter", "broadcast", "allgather"):
            root = 4 if collective in ("reduce", "broadcast") else 0
            assert fabric.run(CollectiveRequest(collective, inputs, "in-network", ranks=ranks, root=root)).result.ok


@pytest.mark.parametrize("planes", [1, 2])
@pytest.mark.parametrize("collective", [*MATRIX])
def test_a_failure_in_the_middle_moves_what_is_left(collective, planes):
    """Another spine takes the tree over, or where there is none another plane; workers' numbers may change."""
    topology = topologies.leaf_spine(planes=planes, leaves=2, spines=3 - planes, hosts_per_leaf=2, delay_ps=10**6)
    control = ControlSection(latency=10**7, detection=5 * 10**6)
    inputs = inputs_of(collective, 100_000)
    with Fabric(topology, clock="virtual", control=control) as fabric:
        assert fabric.run(CollectiveRequest(collective, inputs, "in-network", root=ROOT)).result.ok
        (job,) = fabric.lab.controller.jobs
        root = job.trees[0].tree.root.switch
        for name in ("p0l0", "p0l1"):
            fabric.schedule_link(name, root, "down", 60 * 10**6)
        assert fabric.run(CollectiveRequest(collective, inputs, "in-network", root=ROOT)).result.ok
        resumed = [each for each in fabric.lab.link_events.results if each.resumed_ps is not None]
    assert len(resumed) == 1


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_topology_that_has_trees_brings_results_where_they_belong(path):
    fabric = load_scenario(path).fabric.build()
    name = "nvls" if fabric.is_scale_up else "in-network"
    refused = objections(fabric, COLLECTIVE_KINDS["reducescatter"])[name]
    assert bool(refused) == (path.stem == "rail_only")
    if refused:
        return
    traffic = [
        {"collective": each, "algorithms": ["in-network"], "sizes": ["8KB"], "root": fabric.rank_count - 1}
        for each in ("reduce", "reducescatter")
    ]
    scenario = scenario_of(path, "virtual", routings_of(path)[0], traffic=traffic, observe={})
    assert all(run.ok and run.verified for run in run_scenario(scenario).collectives)
