"""All-to-all-v and NCCL's choices under the real clock: hosts in other processes get sizes and schedules alike."""

import numpy as np

from weft import Fabric, topologies
from weft.run.collectives import CollectiveRequest
from weft.traffic.pair_sizes import PairSizes

MATRIX = np.array([[0, 40_000, 4, 0], [8, 400, 0, 64_000], [1024, 1024, 0, 0], [0, 0, 90_000, 0]])


def test_results_under_the_real_clock_are_those_of_the_virtual_clock():
    topology = topologies.leaf_spine(planes=2, leaves=2, spines=1, hosts_per_leaf=2)
    sizes = PairSizes(MATRIX)
    inputs = [np.arange(sizes.size_bytes // 4, dtype=np.int32) + 1_000_000 * rank for rank in range(4)]
    requests = [
        *(CollectiveRequest(f"alltoallv:{sizes.parameters}", inputs, each) for each in ("direct", "pairwise")),
        CollectiveRequest("allreduce", inputs, "nccl"),
    ]
    found = {}
    for clock in ("real", "virtual"):
        with Fabric(topology, clock=clock) as fabric:
            runs = [fabric.run(each) for each in requests]
        assert all(each.result.ok and each.result.verified for each in runs)
        found[clock] = runs
    for real, virtual in zip(found["real"], found["virtual"], strict=True):
        assert real.result.nccl == virtual.result.nccl
        for ours, theirs in zip(real.buffers, virtual.buffers, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert [each.nbytes for each in found["real"][0].buffers] == MATRIX.sum(axis=0).tolist()
    assert found["real"][2].result.nccl.algorithm in ("ring", "tree")
