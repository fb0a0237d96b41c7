"""Retransmission, paths, acknowledgements and NIC costs as a scenario chooses them."""

import numpy as np
import pytest

from weft import topologies
from weft.engine import serialisation_ps
from weft.errors import BadInputError
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.scenario import FaultsSection, NicSection, TransportSection, parse_scenario

SELECTIVE = {"retransmission": "selective-repeat"}


def run(topology, transport, flow_bytes=0, **options):
    """Run a permutation or, without `flow_bytes`, a ring all-reduce; return its figures and the fabric's."""
    with Fabric(topology, clock="virtual", transport=TransportSection(**transport), **options) as fabric:
        if flow_bytes:
            found = fabric.permutation(flow_bytes)
        else:
            inputs = [np.arange(30_000, dtype=np.int32) * (rank + 1) for rank in range(len(topology.hosts))]
            found = fabric.run(CollectiveRequest("allreduce", inputs, "ring")).result
            assert found.ok
        connections = [each for host in fabric.hosts.stats() for each in host["connections"]]
        switches = fabric.lab.switch_stats()["switches"]
    return found, connections, switches


def four_spines(**options):
    return topologies.leaf_spine(planes=1, leaves=2, spines=4, hosts_per_leaf=4, host_rate_bps=10**11, **options)


@pytest.mark.parametrize("path", ["flow", "flowlet", "spray"])
@pytest.mark.parametrize("loss", [0.0, 0.02])
def test_sums_are_right_whatever_the_paths_and_losses(path, loss):
    _, connections, _ = run(four_spines(), {**SELECTIVE, "path": path}, faults=FaultsSection(loss=loss))
    again = sum(each["retransmitted_packets"] for each in connections)
    assert (again > 0) == (loss > 0)


def test_spraying_uses_all_spines_alike_and_is_sooner_done():
    times = {}
    for path in ("flow", "spray"):
        found, connections, switches = run(four_spines(), {**SELECTIVE, "path": path}, flow_bytes=400_000)
        times[path] = found.time_ps
        uplinks = [
            port["transmit"]["transmitted"]["bytes"]
            for number, port in switches["p0l0"]["ports"].items()
            if int(number) > 4
        ]
        reordered = sum(each["out_of_sequence_packets"] for each in connections)
        assert (reordered > 0) == (path == "spray")
        assert sum(each["retransmitted_packets"] for each in connections) == 0
    assert max(uplinks) < 1.5 * min(uplinks)
    assert times["spray"] < times["flow"]


def test_selective_repeat_sends_less_again_than_go_back_n():
    again = {}
    for retransmission in ("go-back-n", "selective-repeat"):
        found, connections, _ = run(
            four_spines(),
            {"retransmission": retransmission},
            flow_bytes=300_000,
            faults=FaultsSection(loss=0.01),
        )
        again[retransmission] = found.retransmissions
        assert sum(each["data_bytes_received"] for each in connections) == 8 * 300_000
    assert 0 < again["selective-repeat"] < again["go-back-n"] / 2


def test_nic_costs_add_to_a_flow_what_they_are():
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2, host_rate_bps=10**11)
    costs = NicSection(
        pcie_rate="400Gbps", dma_latency="700ns", per_message_overhead="250ns", per_packet_overhead="5ns"
    )
    times = {}
    for name, section in (("free", NicSection()), ("costly", costs)):
        with Fabric(topology, clock="virtual", nic=section, transport=TransportSection(ack_interval=1000)) as fabric:
            times[name] = fabric.incast("h0", 100 * 1024).time_ps
            assert fabric.summary().as_dict()["made_by"]["nic"]["dma_latency"] == section.dma_latency
    packet_ps = 5_000 + serialisation_ps(1024, 4 * 10**11)
    assert times["costly"] - times["free"] == 250_000 + 2 * (packet_ps + 700_000)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"transport": {"path": "spray"}}, "needs retransmission: selective-repeat"),
        ({"transport": {"path": "sprays"}}, r"no choice of path 'sprays' \(valid: flow, flowlet, plb"),
        ({"transport": {"ack_interval": 0}}, "transport.ack_interval"),
        ({"nic": {"pcie_rate": "0Gbps"}}, "nic.pcie_rate"),
        ({"nic": {"dma": "1us"}}, "unknown key 'nic.dma'; valid: dma_latency"),
    ],
)
def test_what_does_not_go_together_is_reported(section, words):
    with pytest.raises(BadInputError, match=words):
        parse_scenario(section, "s.yaml")
