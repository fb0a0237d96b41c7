"""A lab whose fabric is no tree: nodes in a ring with parallel links, hierarchical addresses, hosts of two NICs."""

from __future__ import annotations

import numpy as np
import pytest

from weft import Fabric
from weft.run.collectives import CollectiveRequest
from weft.topologies import FabricSpec, LinkSpec
from weft.topologies.builder import FabricBuilder

pytestmark = pytest.mark.mininet
LINK = LinkSpec(10**9, 10**5, 512 * 1024)


def ring() -> FabricSpec:
    """Three nodes; two links join the first two."""
    builder = FabricBuilder()
    nodes = [builder.add_switch(0, "node", coordinates=(at, 0)) for at in range(3)]
    for node in nodes:
        builder.add_host([node, node], LINK)
    for a, b in ((0, 1), (0, 1), (1, 2), (2, 0)):
        builder.add_link(nodes[a], nodes[b], LINK)
    return builder.build({})


def test_a_ring_reduces_pings_and_goes_round_one_of_two_links() -> None:
    topology = ring()
    buffers = [np.arange(512, dtype=np.int32) * (rank + 1) for rank in range(3)]
    with Fabric(topology, dilation=200, links="veth") as fabric:
        for down in (None, "p0n0:3"):
            if down is not None:
                event = fabric.schedule_link(down, "p0n1", "down")
                fabric.run(CollectiveRequest("allreduce", buffers, "ring"))
                assert event.link == "p0n0:3<->p0n1:3"
            reduced = fabric.run(CollectiveRequest("allreduce", buffers, "ring")).buffers
            assert all(np.array_equal(each, sum(buffers)) for each in reduced)
            network = fabric.lab.network
            for target in topology.hosts[1:]:
                for address in (target.nic(1).ipv4.ip, target.nic(1).ipv6.ip):
                    ping = network.popen("h0", ["ping", "-c", "1", "-W", "5", str(address)], stdout=-1)
                    assert ping.wait(timeout=10) == 0, address
