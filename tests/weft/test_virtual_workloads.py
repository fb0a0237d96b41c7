"""Workloads of many flows: exact ideal times, slowdowns, tables, the same every time."""

import csv
import json

import numpy as np
import pytest

from tests.refusals import refused
from weft import BadInputError, Fabric, topologies
from weft.recording.ideal_times import Framing, IdealTimes
from weft.run.runner import run_scenario
from weft.scenario import EcnSection, TransportSection, parse_scenario
from weft.traffic.flow_sizes import FlowSizes

WORKLOAD = {"flow_sizes": "fb_hadoop", "load": 0.6, "duration": "300us"}
SCENARIO = {
    "clock": "virtual",
    "int": False,
    "seed": 3,
    "fabric": {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "host_rate": "25Gbps"},
    "traffic": [{"workload": WORKLOAD}],
}


@pytest.mark.parametrize("rates_bps", [(10e9, 40e9, 40e9), (40e9, 10e9, 100e9), (100e9, 100e9, 25e9)])
@pytest.mark.parametrize("telemetry", [False, True])
@pytest.mark.parametrize("size_bytes", [1, 1024, 1025, 2048, 2500, 50_000])
def test_the_ideal_time_is_a_lone_flows(rates_bps, telemetry, size_bytes):
    """To the picosecond, through three tiers whose links differ, whichever is the slowest."""
    host, fabric_rate, core = rates_bps
    topology = topologies.fat_tree(
        pods=2,
        leaves_per_pod=1,
        spines_per_pod=1,
        cores_per_spine=1,
        hosts_per_leaf=1,
        host_rate_bps=host,
        fabric_rate_bps=fabric_rate,
        core_rate_bps=core,
    )
    transport = TransportSection(parameters={"window": "10MB"})  # one that holds nothing back
    framing = Framing(1024, telemetry, 4, transport.settings().ack_interval_in_force)
    ideal_ps = IdealTimes(topology, framing).of(*columns((1, 0, 0, size_bytes)))
    with Fabric(topology, clock="virtual", int_telemetry=telemetry, transport=transport) as running:
        assert running.incast("h0", size_bytes).time_ps == ideal_ps[0]


def columns(*flows):
    """Sources, destinations, planes and sizes of flows."""
    return np.array(flows, np.int64).reshape(-1, 4).T


def test_ideal_times_of_many_flows_are_those_of_each():
    """Over unequal links, in both planes, within a leaf and beyond it; one has no payload, one is twice there."""
    topology = topologies.leaf_spine(
        planes=2, leaves=2, spines=2, hosts_per_leaf=2, host_rate_bps=10**10, fabric_rate_bps=25 * 10**9
    )
    flows = [
        (0, 3, 0, 70_000),
        (0, 1, 0, 70_000),
        (3, 0, 1, 1),
        (2, 1, 1, 0),
        (1, 2, 0, 3000),
        (0, 3, 0, 70_000),
    ]
    ideal = IdealTimes(topology, Framing(1024, True, 4, 2), switch_latency_ps=450_000)
    together = ideal.of(*columns(*flows)).tolist()
    assert together == [ideal.of(*columns(flow))[0] for flow in flows]
    assert together[0] == together[5] > together[1]
    assert ideal.of(*columns()).tolist() == []


@pytest.fixture(scope="module")
def results():
    return [run_scenario(parse_scenario(SCENARIO)) for _ in range(2)]


def test_every_flow_ends_and_none_is_faster_than_alone(results):
    workload = results[0].workloads[0]
    records = workload.records
    assert workload.flows == len(records["flow"]) > 30
    assert np.all(records["slowdown"] >= 1 - 1e-12)
    assert sum(each.flows for each in workload.bins) == workload.flows
    assert workload.bins[-1].upper_bytes <= 10_000_000
    assert all(each.slowdown == tuple(sorted(each.slowdown)) for each in workload.bins)
    assert set(records["plane"]) == {0, 1}


def test_two_runs_write_the_same_files(results, tmp_path):
    written = []
    for number, result in enumerate(results):
        result.save(tmp_path / str(number))
        written.append(
            [(tmp_path / str(number) / name).read_bytes() for name in ("results.json", "workload-0-flows.csv")]
        )
    assert written[0] == written[1]
    saved = json.loads(written[0][0])["workloads"][0]
    assert saved["flow_sizes"] == "fb_hadoop"
    assert "records" not in saved
    rows = list(csv.DictReader(written[0][1].decode().splitlines()))
    assert len(rows) == saved["flows"]
    assert int(rows[0]["completion_ps"]) >= int(rows[0]["ideal_ps"])


def test_the_time_counts_from_the_first_start_of_the_workload():
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    small = FlowSizes("small", (100, 200), (0, 100))
    with Fabric(topology, clock="virtual") as fabric:
        workload = fabric.workload(small, 0.1, 10**8)
    assert workload.bytes_delivered == workload.records["size_bytes"].sum()
    last_ps = (workload.records["start_ps"] + workload.records["completion_ps"]).max()
    assert workload.time_ps == last_ps


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"flow_sizes": "web"}, ["flow_sizes", "websearch"]),
        ({"load": 0}, ["load"]),
        ({"duration": "0us"}, ["duration"]),
        ({"rate": 1}, ["unknown key", "rate"]),
    ],
)
def test_what_makes_no_sense_is_refused(change, words):
    with pytest.raises(BadInputError) as refused:
        parse_scenario(SCENARIO | {"traffic": [{"workload": WORKLOAD | change}]})
    assert all(word in str(refused.value) for word in words), refused.value


@pytest.mark.parametrize("preset", ["hpcc-comparison", "connectx"])
def test_notifications_of_flows_that_are_over_are_not_sent(preset):
    """A flow's last acknowledgement removes the sender's queue pair: what came later would count as lost."""
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=4, host_rate_bps=100e9)
    options = {
        "transport": TransportSection(congestion_control="dcqcn", preset=preset),
        "ecn": EcnSection(kmin=1_000, kmax=2_000, pmax=1.0),
    }
    with Fabric(topology, clock="virtual", seed=2, **options) as fabric:
        fabric.workload(FlowSizes("short", (20_000, 80_000), (0, 100)), 0.8, 10**8)
        assert fabric.summary().drops == {}


def test_a_workload_without_a_flow_says_so():
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    with Fabric(topology, clock="virtual") as fabric, refused(BadInputError, problem="no flow starts"):
        fabric.workload("websearch", 0.001, 1000)
