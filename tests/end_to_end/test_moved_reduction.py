"""In Mininet: an uplink fails under a reduction in the network, which goes on over the other spine."""

from __future__ import annotations

import numpy as np
import pytest

from weft import topologies
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric

pytestmark = pytest.mark.slow
MS = 10**9
TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=1, host_rate_bps=1e9)


def test_a_reduction_outlives_its_uplink() -> None:
    elements = 1 << 18  # 8 ms at 1 Gb/s
    inputs = [
        np.random.default_rng(rank).integers(-(2**31), 2**31, elements, np.int32) for rank in range(TOPOLOGY.rank_count)
    ]
    exact = np.add.reduce(inputs, dtype=np.int32)
    with Fabric(TOPOLOGY, clock="real") as fabric:
        fabric.run(CollectiveRequest("allreduce", inputs, "in-network"))
        (job,) = fabric.lab.controller.jobs
        (tree,) = (planned.tree for planned in job.trees)
        fabric.schedule_link("p0l0", tree.root.switch, "down", 3 * MS)
        run = fabric.run(CollectiveRequest("allreduce", inputs, "in-network"))
        for sums in run.buffers:
            np.testing.assert_array_equal(sums, exact)
        (event,) = fabric.summary().link_events
        assert event.rebuilt_jobs == [1]
        assert event.resumed_ps is not None
