"""Messages that change rails inside hosts whose ranks are processes."""

from __future__ import annotations

import numpy as np
import pytest

from weft import Fabric
from weft.run.collectives import CollectiveRequest
from weft.topologies import with_scale_up
from weft.topologies.kinds.rail_only import rail_only

pytestmark = pytest.mark.mininet

RANKS = 4


def test_a_direct_all_to_all_arrives_over_rails_that_do_not_meet() -> None:
    rails = with_scale_up(rail_only(rails=2, hosts_per_leaf=2, host_rate_bps=10**10), 2, rail_optimised=True)
    sent = np.arange(RANKS * RANKS * 1000, dtype=np.int32).reshape(RANKS, RANKS, 1000)
    with Fabric(rails, clock="real", dilation=1000) as fabric:
        found = fabric.run(CollectiveRequest("alltoall", [each.ravel() for each in sent.copy()], "direct")).buffers
        relays = fabric.summary().relays
    assert all(
        np.array_equal(*pair) for pair in zip(found, (each.ravel() for each in sent.transpose(1, 0, 2)), strict=True)
    )
    # Each rank has one message for the rank of the other host and the other rail.
    assert {each.relay: each.messages for each in relays} == {f"h{rank}": 1 for rank in range(RANKS)}
