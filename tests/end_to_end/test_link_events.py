"""Links that fail and come back in Mininet: the kernel notifies the switches, the controller reprograms them."""

import pytest

from weft import topologies
from weft.run.fabric import Fabric
from weft.scenario import ControlSection, EventSection

MS = 10**9


def transmitted(fabric: Fabric, switch: str, peer: str) -> int:
    port = next(port for port in fabric.topology.switch(switch).ports if port.peer.node == peer)
    stats = fabric.lab.switch_stats()
    assert stats is not None
    count: int = stats["switches"][switch]["ports"][str(port.number)]["transmit"]["transmitted"]["packets"]
    return count


@pytest.mark.slow
def test_a_link_fails_and_comes_back_and_connections_go_on():
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=1)
    events = [EventSection(link="p0l1<->p0s1", state="down")]
    with Fabric(topology, clock="real", events=events, control=ControlSection(detection=100_000)) as fabric:
        fabric.permutation(200_000)
        assert transmitted(fabric, "p0s1", "p0l1") == transmitted(fabric, "p0l0", "p0s1") == 0
        up = fabric.schedule_link("p0l1", "p0s1", "up")
        down = fabric.schedule_link("p0l0", "p0s0", "down", 500_000_000)
        flows = fabric.permutation(3_000_000)
        assert flows.bytes_delivered == 6_000_000
        summary = fabric.summary()
        assert transmitted(fabric, "p0s1", "p0l1") > 0
    assert [event.link for event in summary.link_events] == ["p0l1<->p0s1", "p0l1<->p0s1", "p0l0<->p0s0"]
    for event in (up, down):
        assert event.happened_ps < event.detected_ps < event.reprogrammed_ps
        assert event.in_flight is None
    assert summary.packet_conservation is None
