"""In Mininet: queue pairs of UET between processes and over real interfaces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft import topologies
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.scenario import TransportSection, TrimmingSection

pytestmark = pytest.mark.slow
TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=1, host_rate_bps=10**8)


def made(topology: topologies.FabricSpec = TOPOLOGY, **options: Any) -> Fabric:
    return Fabric(topology, clock="real", int_telemetry=False, **options)


def totals(fabric: Fabric) -> dict[str, int]:
    each = [host["totals"] for host in fabric.hosts.stats()]
    return {name: sum(one[name] for one in each) for name in each[0]}


@pytest.mark.parametrize(
    ("ip_version", "transport"), [(4, {}), (6, {"service": "rod"}), (6, {"receiver_credits": True})]
)
def test_an_all_reduce_between_processes_is_right(ip_version: int, transport: dict[str, Any]) -> None:
    inputs = [np.random.default_rng(rank).integers(-99, 99, 50_000, np.int32) for rank in range(2)]
    with made(ip_version=ip_version, transport=TransportSection(protocol="uet", **transport)) as fabric:
        run = fabric.run(CollectiveRequest("allreduce", inputs, "ring"))
        found = totals(fabric)
    assert run.result.ok
    for output in run.buffers:
        np.testing.assert_array_equal(output, np.sum(inputs, axis=0))
    assert found["pdcs_opened"] >= 2
    assert found["pdcs_accepted"] == found["pdcs_opened"]


def test_flows_between_processes_close_their_pdcs() -> None:
    with made(transport=TransportSection(protocol="uet")) as fabric:
        fabric.permutation(400_000)
        fabric.workload("fb_hadoop", 0.5, 20 * 10**9)
        found = totals(fabric)
    assert found["pdcs_opened"] == found["pdcs_accepted"] > 2
    assert found["data_bytes_received"] > 800_000


def test_a_switch_trims_what_an_incast_leaves_no_room_for() -> None:
    crowded = topologies.leaf_spine(
        planes=1, leaves=1, spines=1, hosts_per_leaf=4, host_rate_bps=10**8, queue_capacity_bytes=8 << 10
    )
    with made(crowded, transport=TransportSection(protocol="uet"), trimming=TrimmingSection(classes=[3])) as fabric:
        fabric.incast("h0", 200_000)
        found = totals(fabric)
    assert found["trim_nacks_sent"] > 0
    assert found["trim_nacks_received"] > 0
    assert found["other_nacks_sent"] == 0
