"""A lab whose packets go through other groups than their own and the destination's, on both targets."""

from __future__ import annotations

import shutil
from typing import Literal

import numpy as np
import pytest

from weft import Fabric
from weft.run.collectives import CollectiveRequest
from weft.scenario import RoutingSection, TransportSection
from weft.topologies.kinds.dragonfly import dragonfly
from weft.traffic.patterns import Flow

pytestmark = pytest.mark.mininet


@pytest.mark.parametrize("target", ["embedded", "bmv2"])
def test_packets_go_through_a_third_group(target: Literal["embedded", "bmv2"]) -> None:
    if target == "bmv2" and shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    topology = dragonfly(
        groups=3,
        routers_per_group=2,
        global_links_per_router=1,
        hosts_per_switch=1,
        host_rate_bps=20e6,
        delay_ps=0,
    )
    buffers = [np.arange(600, dtype=np.int32) * (rank + 1) for rank in range(6)]
    with Fabric(
        topology,
        target=target,
        dilation=1,
        mtu_bytes=256,
        routing=RoutingSection(kind="dragonfly_valiant"),
        transport=TransportSection(retransmission="selective-repeat"),
    ) as fabric:
        reduced = fabric.run(CollectiveRequest("allreduce", buffers, "ring")).buffers
        # From the first group to the second, of which none would pass the third.
        third = [switch.name for switch in topology.switches if switch.group == 2]
        before = received(fabric, third)
        fabric.run_flows("to the next group", [Flow(0, 2, 5000)])
        through = received(fabric, third) - before
        drops = fabric.summary().as_dict()["drops"]
    assert all(np.array_equal(each, sum(buffers)) for each in reduced)
    # All of its 20 packets and their acknowledgements are sent through it, and seen by one switch there or by both.
    assert through >= 40
    assert drops == {}


def received(fabric: Fabric, switches: list[str]) -> int:
    """Packets that switches have received."""
    return sum(count.packets for name in switches for count in fabric.read_counters(name, "port_received").values())
