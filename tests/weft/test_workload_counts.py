"""A workload's queue pairs are counted and observed as all others are, though each lives as long as its flow."""

import numpy as np

from weft import topologies
from weft.run.fabric import Fabric
from weft.scenario import parse_scenario

TOPOLOGY = topologies.leaf_spine(
    planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=10**11, queue_capacity_bytes=100_000
)
MS = 10**9


def run(**tree):
    scenario = parse_scenario(tree)
    options = {"int_telemetry" if key == "int" else key: value for key, value in tree.items()}
    for key in tree:
        if key in ("transport", "ecn", "observe"):
            options[key] = getattr(scenario, key)
    with Fabric(TOPOLOGY, clock="virtual", seed=5, **options) as fabric:
        workload = fabric.workload("alibaba_storage", 0.9, MS // 2)
        stats = fabric.hosts.stats()
        return workload, fabric.summary(), stats


def test_totals_have_congestion_notifications_and_retransmissions():
    ecn = {"kmin": "5KB", "kmax": "50KB", "pmax": 0.5}
    workload, summary, hosts = run(transport={"congestion_control": "dcqcn"}, ecn=ecn)
    assert summary.planes[0].ecn_marked_packets > 0
    assert workload.cnps == summary.cnps > 0
    assert workload.retransmissions == summary.retransmissions > 0
    sent = sum(host["totals"]["data_bytes_sent"] for host in hosts)
    received = sum(host["totals"]["data_bytes_received"] for host in hosts)
    assert received == workload.bytes_delivered < sent
    # Some are lost, or come when their flow is over.
    assert sum(host["totals"]["cnps_sent"] for host in hosts) >= summary.cnps


def test_receivers_keep_the_interval_between_notifications():
    ecn = {"kmin": "5KB", "kmax": "6KB", "pmax": 1.0}

    def workload(interval):
        return run(transport={"congestion_control": "dcqcn", "cnp_interval": interval}, ecn=ecn)[0]

    seldom, often = workload("100ms"), workload("1us")
    assert seldom.time_ps < 100 * MS
    assert 0 < seldom.cnps <= seldom.flows < often.cnps


def test_flows_and_int_are_recorded():
    workload, summary, _ = run(transport={"congestion_control": "hpcc"}, observe={"flows": True, "int": ["h1->h0"]})
    tables = summary.observations.tables
    flows, records = tables["flows"], workload.records
    assert sorted(flows["step"].tolist()) == records["flow"].tolist()
    assert set(flows["run"].tolist()) == {phase.run for phase in summary.phases}
    by_flow = np.argsort(flows["step"])
    for name in ("size_bytes", "plane", "retransmitted_packets"):
        assert np.array_equal(flows[name][by_flow], records[name]), name
    assert np.array_equal((flows["end_ps"] - flows["start_ps"])[by_flow], records["completion_ps"])
    assert np.array_equal(flows["source"].codes[by_flow], records["source"])
    assert np.array_equal(flows["destination"].codes[by_flow], records["destination"])
    stamps = tables["int"]
    assert len(stamps["time_ps"]) > 0
    assert (set(stamps["source"].texts()), set(stamps["destination"].texts())) == ({"h1"}, {"h0"})


def test_runs_are_numbered_alike_in_all_tables():
    """A run's number is the same on all hosts, whatever of the runs before they took part in."""
    observe = parse_scenario({"observe": {"flows": True, "timelines": True}}).observe
    with Fabric(TOPOLOGY, clock="virtual", observe=observe) as fabric:
        fabric.workload("alibaba_storage", 0.5, MS // 20)
        fabric.incast("h0", 10_000)
        fabric.permutation(20_000)
        summary = fabric.summary()
    sizes = {}
    flows = summary.observations.tables["flows"]
    for run_number, size in zip(flows["run"].tolist(), flows["size_bytes"].tolist(), strict=True):
        sizes.setdefault(run_number, set()).add(size)
    numbers = [phase.run for phase in summary.phases]
    assert len(set(numbers)) == 3
    assert (sizes[numbers[1]], sizes[numbers[2]]) == ({10_000}, {20_000})
