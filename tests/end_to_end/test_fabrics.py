"""Fabrics of other kinds than the small one: planes, internal links, links with faults."""

import numpy as np
import pytest
from scapy.layers.inet6 import IPv6
from scapy.utils import rdpcap

import topologies
from end_to_end_data import ALGORITHMS, buffers
from traffic.layers import BTH, icrc_is_valid
from weft.fabric import Fabric
from weft.scenario import FaultsSection


@pytest.mark.slow
def test_two_planes_and_ecmp():
    topology = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=1)
    with Fabric(topology) as fabric:
        for algorithm in ALGORITHMS:
            assert fabric.collective("allreduce", buffers(np.int32, 4096, 2), algorithm).result.ok
        planes = fabric.summary().planes
        assert all(plane.packets_aggregated > 0 for plane in planes)


@pytest.mark.slow
def test_connections_over_ipv6(tmp_path):
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
    with Fabric(topology, ip_version=6) as fabric:
        fabric.capture("h0", 0, tmp_path / "h0.pcap")
        assert fabric.collective("allreduce", buffers(np.float32, 3000, 2), "ring").result.ok
        summary = fabric.summary()
        assert len(summary.int_paths[0].hops) == 3
        assert summary.retransmissions == 0
    packets = [packet for packet in rdpcap(str(tmp_path / "h0.pcap")) if BTH in packet]
    assert packets
    assert all(IPv6 in packet and icrc_is_valid(bytes(packet)) for packet in packets)


@pytest.mark.slow
def test_links_inside_the_engine():
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
    with Fabric(topology, links="internal") as fabric:
        for algorithm in ALGORITHMS:
            assert fabric.collective("allreduce", buffers(np.int32, 1024, 2), algorithm).result.ok


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
def test_both_algorithms_are_exact_over_bad_links(faults):
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2)
    # Few slots, so that every slot goes through many rounds.
    with Fabric(topology, faults=faults, slots=8) as fabric:
        for algorithm in ALGORITHMS:
            for dtype in (np.int32, np.float32):
                run = fabric.collective("allreduce", buffers(dtype, 8000, 4), algorithm)
                assert run.result.ok
        summary = fabric.summary()
        assert summary.planes[0].injected_losses > 0
        assert summary.retransmissions > 0
