"""Flows that several queue pairs share: they run whole under the virtual clock, and each has one row."""

from __future__ import annotations

import numpy as np
import pytest

from tests.refusals import refused
from weft import BadInputError, Fabric
from weft.run.runner import run_scenario
from weft.scenario import TransportSection, parse_scenario
from weft.topologies import FabricSpec, leaf_spine
from weft.traffic.extensions import ExtensionError, TrafficPattern, flows_of
from weft.traffic.host_runs import flows_of_writes
from weft.traffic.patterns import Flow

FABRIC = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2}


def test_a_flow_lasts_from_the_first_writes_start_to_the_last_ones_end() -> None:
    writes = [(0, 10, 90, 1), (1, 12, 80, 0), (2, 10, 95, 2), (3, 10, 20, 0)]
    ended = flows_of_writes({0: 7, 1: 8, 2: 7, 3: 9, 4: 9}, writes)
    # Node 4 is not done, so flow 9 is not.
    assert ended.flow == (7, 8)
    assert (ended.started_ps, ended.finished_ps) == ((10, 12), (95, 80))
    assert ended.retransmitted_packets == (3, 0)


@pytest.mark.parametrize("size_bytes", [4, 65_537])
def test_divided_flows_deliver_every_byte_over_so_many_queue_pairs(size_bytes: int) -> None:
    with Fabric(leaf_spine(**FABRIC), clock="virtual") as fabric:
        result = fabric.permutation(size_bytes, queue_pairs=4)
        queue_pairs = {len(host["connections"]) for host in fabric.hosts.stats()}
        incast = fabric.incast("h0", size_bytes, queue_pairs=2)
    assert result.pattern == "permutation over 4 queue pairs a flow"
    assert (result.flows, result.bytes_delivered) == (4, 4 * size_bytes)
    assert len(result.records["flow"]) == 4
    # To one host, and from one that may be another.
    assert queue_pairs <= {4, 8}
    assert (incast.flows, incast.bytes_delivered) == (3, 3 * size_bytes)


@pytest.mark.parametrize("protocol", ["rc", "uet"])
def test_flows_between_the_same_hosts_share_a_queue_pair(protocol: str) -> None:
    """So a flow waits for those that start before it, as docs/traffic.md says; one to another host does not."""
    flows = [Flow(0, 2, 1_000_000), Flow(0, 2, 100, start_ps=10**6), Flow(0, 3, 100, start_ps=10**6)]
    transport = TransportSection(protocol=protocol)
    with Fabric(leaf_spine(**FABRIC), clock="virtual", int_telemetry=False, transport=transport) as fabric:
        records = fabric.run_flows("flows", flows).records
    ends_ps = records["start_ps"] + records["completion_ps"]
    assert ends_ps[0] <= ends_ps[1] < ends_ps[0] + 10**6
    assert ends_ps[2] < ends_ps[0] // 2


def test_scenarios_divide_flows() -> None:
    traffic = [{"permutation": "64KiB", "queue_pairs": 4}, {"incast": "h0", "queue_pairs": 2}]
    scenario = parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": traffic})
    permutation, incast = run_scenario(scenario).flows
    assert permutation.bytes_delivered == 4 * 65536
    assert incast.pattern == "incast on h0, plane 0 over 2 queue pairs a flow"


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (
            {"permutation": "3B", "queue_pairs": 4},
            ["traffic[0].queue_pairs", "4 for flows of 3 B (valid: 1 to 3)"],
        ),
        (
            {"incast": "h0", "bytes_per_sender": 1, "queue_pairs": 2},
            ["traffic[0].queue_pairs", "valid: 1 to 1"],
        ),
        ({"permutation": "1MiB", "queue_pairs": 0}, ["traffic[0].queue_pairs", "1 to 256"]),
        ({"permutation": "1MiB", "queue_pairs": 257}, ["traffic[0].queue_pairs", "1 to 256"]),
    ],
)
def test_scenarios_with_too_many_queue_pairs_are_refused(item: dict[str, object], words: list[str]) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": [item]})
    for word in words:
        assert word in str(caught.value)


def test_flows_with_too_many_queue_pairs_are_refused() -> None:
    with Fabric(leaf_spine(**FABRIC), clock="virtual") as fabric:
        with refused(BadInputError, valid="1 to 3", problem="a flow of 3 B over 4 queue pairs"):
            fabric.permutation(3, queue_pairs=4)
        with pytest.raises(BadInputError, match="queue pairs"):
            fabric.run_flows("none", [Flow(0, 1, 100, queue_pairs=0)])
        with refused(ValueError, valid="1", problem="a workload's flow over 2 queue"):
            fabric.hosts.prepare_workload([Flow(0, 1, 100, queue_pairs=2)])


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        (Flow(0, 1, 3, queue_pairs=4), "flow 0 has 3 bytes for 4 queue pairs"),
        (Flow(0, 1, 1000, queue_pairs=257), "queue_pairs is 257 .valid: whole numbers from 1 to 256"),
    ],
)
def test_patterns_with_too_many_queue_pairs_are_refused(flow: Flow, words: str) -> None:
    class Divided(TrafficPattern):
        def flows(self, fabric: FabricSpec, rng: np.random.Generator) -> list[Flow]:
            return [flow]

    with pytest.raises(ExtensionError, match=words):
        flows_of(Divided(), leaf_spine(**FABRIC), seed=1)
