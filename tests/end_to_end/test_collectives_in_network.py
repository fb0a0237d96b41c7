"""Collectives by switches that run p4/fabric.p4, over real links, checked against NumPy."""

import numpy as np
import pytest

from end_to_end_data import buffers
from weft.run.collectives import CollectiveRequest
from weft.traffic.collectives import COLLECTIVE_KINDS

COLLECTIVES = [
    name for name, kind in COLLECTIVE_KINDS.items() if any(each.name == "in-network" for each in kind.algorithms)
]


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_ranks_hold_what_numpy_computes(small_fabric, collective, dtype):
    count = 1 if collective == "barrier" else 1000
    root = 2 if COLLECTIVE_KINDS[collective].has_root else 0
    run = small_fabric.run(CollectiveRequest(collective, buffers(dtype, count, 4), "in-network", root=root))
    assert run.result.ok
    assert run.result.packets_aggregated > 0


def test_barriers_by_hosts_and_by_switches(small_fabric):
    for algorithm in ("dissemination", "in-network"):
        run = small_fabric.run(CollectiveRequest("barrier", buffers(np.int32, 1, 4), algorithm, repetitions=3))
        assert run.result.ok
