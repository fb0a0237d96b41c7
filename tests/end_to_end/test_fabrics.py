"""Fabrics of other kinds than the small one: planes, internal links, links with faults."""

import numpy as np
import pytest
from end_to_end_data import ALGORITHMS, buffers

import topologies
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
