"""Switches inside hosts whose ranks are processes: each adds up the terms of its own results."""

from __future__ import annotations

import numpy as np
import pytest

from weft import Fabric, topologies
from weft.run.collectives import CollectiveRequest

pytestmark = pytest.mark.mininet

RANKS, SIZE_BYTES = 4, 1 << 18


@pytest.mark.parametrize("algorithm", ["nvls", "nvls-tree", "nvls-in-network"])
def test_hosts_of_processes_all_reduce_as_one_switch_does(algorithm: str) -> None:
    network = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=10**9)
    fabric = topologies.with_scale_up(network, 2, 10**10, 5_000_000, rail_optimised=True, reductions=True)
    inputs = [np.random.default_rng(rank).integers(-(2**31), 2**31, SIZE_BYTES // 4, np.int32) for rank in range(RANKS)]
    with Fabric(fabric, clock="real", dilation=1000) as running:
        found = running.run(CollectiveRequest("allreduce", inputs, algorithm))
        stats = [each["scale_up"] for each in running.hosts.stats()]
    assert found.result.ok
    exact = np.add.reduce(inputs, dtype=np.int32)
    assert all(np.array_equal(each, exact) for each in found.buffers)
    for each in stats:
        assert each is not None
        assert each["sent_bytes"] == each["received_bytes"] == SIZE_BYTES * 3 // 2
