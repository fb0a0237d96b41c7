"""Lossless graphs of any kind: a verified all-reduce under credits, on routes that cannot deadlock."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from tests.topologies.test_builder import LINK
from weft import Fabric
from weft.scenario import CreditsSection, RoutingSection
from weft.topologies import FabricSpec
from weft.topologies.builder import FabricBuilder
from weft.topologies.kinds.dragonfly import dragonfly
from weft.topologies.kinds.torus import torus


def random_regular(switches: int = 10, degree: int = 3, seed: int = 1) -> FabricSpec:
    """Each switch has a host, and links to as many others (a Jellyfish, Singla et al. 2012)."""
    builder = FabricBuilder()
    nodes = [builder.add_switch(0, "node", coordinates=(each,)) for each in range(switches)]
    for node in nodes:
        builder.add_host([node], LINK)
    for a, b in sorted(networkx.random_regular_graph(degree, switches, seed).edges):
        builder.add_link(nodes[a], nodes[b], LINK)
    return builder.build({})


FABRICS = {
    "torus": torus(shape=(4, 4), hosts_per_switch=1),
    "dragonfly": dragonfly(groups=5, routers_per_group=2, global_links_per_router=2, hosts_per_switch=1),
    "random": random_regular(),
}


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS)
def test_an_all_reduce_under_credits_is_right_and_loses_nothing(fabric: FabricSpec) -> None:
    buffers = [np.arange(20_000, dtype=np.int32) * (rank + 1) for rank in range(len(fabric.hosts))]
    with Fabric(
        fabric,
        clock="virtual",
        routing=RoutingSection(kind="up_down"),
        credits=CreditsSection(classes=[3], buffer=2560),
    ) as lossless:
        done = lossless.collective("allreduce", buffers, "ring")
    assert all(np.array_equal(each, sum(buffers)) for each in done.buffers)
    assert done.result.retransmissions == 0
