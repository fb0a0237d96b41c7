"""Lossless graphs of any kind: a verified all-reduce under credits, on routes that cannot deadlock."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from tests.topologies.test_builder import LINK
from weft import Fabric
from weft.run.collectives import CollectiveRequest
from weft.scenario import ControlSection, CreditsSection, RoutingSection
from weft.topologies import FabricSpec
from weft.topologies.builder import FabricBuilder
from weft.topologies.kinds.dragonfly import dragonfly
from weft.topologies.kinds.dragonfly_plus import dragonfly_plus
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
    "dragonfly_plus": dragonfly_plus(hosts_per_leaf=1),
    "random": random_regular(),
}


def lossless_fabric(fabric: FabricSpec, routing: str, classes: list[int]) -> Fabric:
    """Its buffers are small enough to fill, and failures are found late enough to cost packets."""
    return Fabric(
        fabric,
        clock="virtual",
        routing=RoutingSection(kind=routing),
        credits=CreditsSection(classes=classes, buffer=2560),
        control=ControlSection(detection=100_000_000),
    )


@pytest.mark.parametrize(("routing", "classes"), [("up_down", [3]), ("layered", [3, 4])])
@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS)
def test_an_all_reduce_under_credits_is_right_and_loses_nothing(
    fabric: FabricSpec, routing: str, classes: list[int]
) -> None:
    buffers = [np.arange(20_000, dtype=np.int32) * (rank + 1) for rank in range(len(fabric.hosts))]
    with lossless_fabric(fabric, routing, classes) as lossless:
        done = lossless.run(CollectiveRequest("allreduce", buffers, "ring"))
    assert all(np.array_equal(each, sum(buffers)) for each in done.buffers)
    assert done.result.retransmissions == 0


def test_packets_go_in_the_lanes_of_their_layers() -> None:
    """Class 3 is lane 0, class 4 lane 1; each packet of a message stays in the one that its first switch chose."""
    ranks = len(FABRICS["torus"].hosts)
    buffers = [np.arange(ranks * 512, dtype=np.int32) + rank for rank in range(ranks)]
    with lossless_fabric(FABRICS["torus"], "layered", [3, 4]) as lossless:
        exchanged = lossless.run(CollectiveRequest("alltoall", buffers, "direct")).buffers
        stats = lossless.lab.switch_stats()
    assert stats is not None
    for rank, received in enumerate(exchanged):
        expected = [sent[rank * 512 : (rank + 1) * 512] for sent in buffers]
        assert np.array_equal(received, np.concatenate(expected))
    used = {
        number
        for switch in stats["switches"].values()
        for port in switch["buffer"]["ports"].values()
        for number, of_class in enumerate(port["ingress"])
        if number in (3, 4, 5) and of_class["max_own_used_bytes"]
    }
    assert used == {3, 4}


@pytest.mark.parametrize(("routing", "classes"), [("up_down", [3]), ("layered", [3, 4])])
def test_a_link_that_fails_is_passed_and_new_routes_have_no_cycle(routing: str, classes: list[int]) -> None:
    fabric = FABRICS["torus"]
    buffers = [np.arange(40_000, dtype=np.int32) * (rank + 1) for rank in range(len(fabric.hosts))]
    with lossless_fabric(fabric, routing, classes) as lossless:
        lossless.schedule_link("p0n0", "p0n1", "down", 600_000_000)
        done = lossless.run(CollectiveRequest("allreduce", buffers, "ring"))
        (event,) = lossless.summary().link_events
    assert all(np.array_equal(each, sum(buffers)) for each in done.buffers)
    assert event.route_cycle == ""
    assert event.reprogrammed_ps is not None
    assert event.last_recovery_ps is not None
    assert 0 < event.switches_written < len(fabric.switches)
