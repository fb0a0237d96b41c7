"""A link that loses packets in Mininet is found by the counters of its two ends, and cordoned."""

import pytest

from weft import topologies
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.scenario import (
    ControllerSection,
    FaultsOfLinks,
    FaultsSection,
    LinkWatchSection,
    TransportSection,
)


@pytest.mark.slow
def test_a_lossy_link_is_cordoned():
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=1, host_rate_bps=10e9)
    with Fabric(
        topology,
        clock="real",
        faults=FaultsSection(links=[FaultsOfLinks(link="p0l0->p0s1", loss=0.2)]),
        controller=ControllerSection(link_watch=LinkWatchSection(loss=0.02, least_packets=500)),
        transport=TransportSection(retransmission="selective-repeat", path="spray"),
    ) as fabric:
        fabric.permutation(4_000_000)
        summary = fabric.summary()
        assert fabric.lab.operations.cordoned == ("p0l0<->p0s1",)
    # A busy machine may lose packets on another link, too.
    events = {(event.kind, event.element): event for event in summary.controller_events}
    assert events["lossy", "p0l0<->p0s1"].detail.startswith("p0l0 → p0s1: ")
    assert ("cordoned", "p0l0<->p0s1") in events


@pytest.mark.slow
def test_a_spare_takes_the_place_of_a_host_that_loses_packets():
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=10e9)
    with Fabric(
        topologies.with_spares(topology),
        clock="real",
        faults=FaultsSection(links=[FaultsOfLinks(link="h1->p0l0", loss=0.2)]),
        controller=ControllerSection(link_watch=LinkWatchSection(loss=0.02, least_packets=500)),
        transport=TransportSection(retransmission="selective-repeat"),
    ) as fabric:
        while not fabric.lab.operations.cordoned:
            fabric.run(CollectiveRequest("allreduce", 1_000_000, "ring"))
        fabric.run(CollectiveRequest("allreduce", 100_000, "ring"))
        summary = fabric.summary()
    events = {(event.kind, event.element): event for event in summary.controller_events}
    assert events["lossy", "h1<->p0l0"].detail.startswith("h1 → p0l0: ")
    assert {("cordoned", "h1"), ("swapped", "h1")} <= events.keys()
