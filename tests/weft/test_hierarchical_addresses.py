"""Fabrics of hierarchical addresses carry what others do: both IP versions, failures, reductions in the network."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import pytest

from weft import Fabric
from weft.run.collectives import CollectiveRequest
from weft.topologies import FabricSpec, LinkSpec
from weft.topologies.builder import FabricBuilder

LINK = LinkSpec(10**11, 10**6, 512 * 1024)


def three_tiers() -> FabricSpec:
    """Two pods of two switches with hosts and two above, and two tops: roles that no octets are for."""
    builder = FabricBuilder()
    racks = [builder.add_switch(0, "rack", coordinates=(pod, at)) for pod in range(2) for at in range(2)]
    for rack in racks:
        builder.add_host([rack], LINK)
    tops = [builder.add_switch(0, "top", tier=2) for _ in range(2)]
    for pod, at in itertools.product(range(2), range(2)):
        middle = builder.add_switch(0, "middle", tier=1, coordinates=(pod, at), position=(at, pod))
        for rack in racks[2 * pod : 2 * pod + 2]:
            builder.add_link(rack, middle, LINK)
        builder.add_link(middle, tops[at], LINK)
    return builder.build({})


@pytest.mark.parametrize("version", [4, 6])
def test_traffic_and_reductions_before_and_after_a_failure(version: Literal[4, 6]) -> None:
    topology = three_tiers()
    assert topology.switches[0].networks is not None
    buffers = [np.arange(256, dtype=np.int32) * (rank + 1) for rank in range(4)]
    with Fabric(topology, clock="virtual", ip_version=version) as fabric:
        for down in (None, ("p0r0", "p0m0"), ("p0m2", "p0t0")):
            if down is not None:
                event = fabric.schedule_link(*down, "down")
                fabric.permutation(1 << 12)
                assert event.happened_ps is not None
            for algorithm in ("ring", "in-network"):
                reduced = fabric.run(CollectiveRequest("allreduce", buffers, algorithm)).buffers
                assert all(np.array_equal(each, sum(buffers)) for each in reduced), (down, algorithm)
            assert fabric.permutation(1 << 12).bytes_delivered == 4 * (1 << 12)
