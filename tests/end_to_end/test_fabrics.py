"""Fabrics of other kinds than the small one: planes, internal links, links with faults."""

import numpy as np
import pytest
from scapy.layers.inet6 import IPv6
from scapy.utils import rdpcap

from end_to_end_data import ALGORITHMS, buffers
from weft import topologies
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.scenario import FaultsOfLinks, FaultsSection, SwitchingSection
from weft.traffic.layers import BTH, AggregationHeader, icrc_is_valid


@pytest.mark.slow
def test_two_planes_and_ecmp():
    topology = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=1)
    with Fabric(topology) as fabric:
        for algorithm in ALGORITHMS:
            assert fabric.run(CollectiveRequest("allreduce", buffers(np.int32, 4096, 2), algorithm)).result.ok
        planes = fabric.summary().planes
        assert all(plane.packets_aggregated > 0 for plane in planes)


@pytest.mark.slow
def test_three_tiers():
    topology = topologies.fat_tree(pods=2, leaves_per_pod=1, spines_per_pod=1, hosts_per_leaf=2)
    with Fabric(topology, ip_version=6, faults=FaultsSection(loss=0.005)) as fabric:
        for algorithm in ALGORITHMS:
            assert fabric.run(CollectiveRequest("allreduce", buffers(np.int32, 8000, 4), algorithm)).result.ok
        summary = fabric.summary()
        assert len(summary.int_paths[0].hops) == 5
        assert summary.planes[0].injected_losses > 0


@pytest.mark.slow
def test_ipv6_is_all_that_an_ipv6_fabric_carries(tmp_path):
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
    with Fabric(topology, ip_version=6) as fabric:
        fabric.capture("h0", 0, tmp_path / "h0.pcap")
        for algorithm in ALGORITHMS:
            assert fabric.run(CollectiveRequest("allreduce", buffers(np.float32, 3000, 2), algorithm)).result.ok
        summary = fabric.summary()
        assert len(summary.int_paths[0].hops) == 3
        assert summary.retransmissions == 0
    packets = [packet for packet in rdpcap(str(tmp_path / "h0.pcap")) if BTH in packet]
    assert {AggregationHeader in packet for packet in packets} == {True, False}
    for packet in packets:
        assert packet[IPv6].fl != 0
        assert icrc_is_valid(bytes(packet))


@pytest.mark.slow
@pytest.mark.parametrize(
    "faults",
    [
        FaultsSection(loss=0.01),
        # Held back for several rounds: a round takes about one round trip of 12 µs.
        FaultsSection(loss=0.01, duplicate=0.02, delay_probability=0.02, extra_delay=60_000_000),
    ],
    ids=["loss", "loss-duplicates-delays"],
)
@pytest.mark.parametrize("links", ["veth", "internal"])
@pytest.mark.parametrize("ip_version", [4, 6])
def test_both_algorithms_are_exact_over_bad_links(ip_version, links, faults):
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2)
    # Few slots, so that every slot goes through many rounds.
    with Fabric(topology, ip_version=ip_version, links=links, faults=faults, slots=8) as fabric:
        for algorithm in ALGORITHMS:
            for dtype in (np.int32, np.float32):
                run = fabric.run(CollectiveRequest("allreduce", buffers(dtype, 8000, 4), algorithm))
                assert run.result.ok
        summary = fabric.summary()
        assert [hop.switch for hop in summary.int_paths[0].hops][1:2] == ["p0s0"]
        assert summary.planes[0].injected_losses > 0
        assert summary.retransmissions > 0


@pytest.mark.slow
@pytest.mark.parametrize("links", ["veth", "internal"])
def test_chosen_links_are_bad_and_switches_slow(links):
    """In real time, too, each fault occurs where it is configured, and a write waits for every switch's latency."""
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
    faults = FaultsSection(
        links=[
            FaultsOfLinks(link="p0l0->p0s0", bit_error_rate=2e-6),
            FaultsOfLinks(link="h1->p0l1", loss=0.02),
        ]
    )
    latency_ps = 20_000_000
    with Fabric(topology, links=links, faults=faults, switching=SwitchingSection(latency=latency_ps)) as fabric:
        for algorithm in ALGORITHMS:
            assert fabric.run(CollectiveRequest("allreduce", buffers(np.int32, 64_000, 2), algorithm)).result.ok
        # One packet and its acknowledgement pass three switches each.
        assert fabric.incast("h0", 64).time_ps >= 6 * latency_ps
        summary = fabric.summary()
    struck = {each.link: (each.lost_packets, each.corrupted_packets) for each in summary.link_faults}
    assert set(struck) == {"p0l0->p0s0", "h1->p0l1"}
    assert struck["p0l0->p0s0"][0] == struck["h1->p0l1"][1] == 0
    assert summary.planes[0].corrupted_packets == struck["p0l0->p0s0"][1] > 0
    assert summary.planes[0].injected_losses == struck["h1->p0l1"][0] > 0
