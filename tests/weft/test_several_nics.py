"""Hosts with several NICs in a plane: traffic uses all of them by their numbers."""

from __future__ import annotations

import numpy as np
import pytest

from weft import Fabric
from weft.errors import BadInputError
from weft.topologies import FabricSpec, LinkSpec
from weft.topologies.builder import FabricBuilder

LINK = LinkSpec(10**11, 10**6, 512 * 1024)


def two_each(planes: int) -> FabricSpec:
    """Two leaves of two hosts, two NICs of each host at its leaf, two links from each leaf to the spine."""
    builder = FabricBuilder()
    leaves = [[builder.add_switch(plane, "leaf") for _ in range(2)] for plane in range(planes)]
    for leaf in range(2):
        for _ in range(2):
            builder.add_host([of_plane[leaf] for of_plane in leaves for _ in range(2)], LINK)
    for plane, of_plane in enumerate(leaves):
        spine = builder.add_switch(plane, "spine")
        for each in of_plane:
            builder.add_link(each, spine, LINK)
            builder.add_link(each, spine, LINK)
    return builder.build({})


@pytest.mark.parametrize("planes", [1, 2])
def test_flows_and_collectives_go_over_all_nics(planes: int) -> None:
    buffers = [np.arange(1024, dtype=np.int32) + rank for rank in range(4)]
    with Fabric(two_each(planes), clock="virtual") as fabric:
        assert fabric.permutation(1 << 14).bytes_delivered == 4 * 2 * planes * (1 << 14)
        reduced = fabric.collective("allreduce", buffers, "ring").buffers
        assert all(np.array_equal(each, sum(buffers)) for each in reduced)
        with pytest.raises(BadInputError, match=rf"{2 * planes} NICs on {planes} planes .* one NIC a plane"):
            fabric.collective("allreduce", buffers, "in-network")
        reduced = fabric.collective("allreduce", buffers, "ring").buffers
        assert all(np.array_equal(each, sum(buffers)) for each in reduced)
