"""ECN marks and INT depths are really seen where a queue is really filled."""

from collections.abc import Iterator

import pytest

from weft import topologies
from weft.run.fabric import Fabric
from weft.scenario import EcnSection


@pytest.fixture(scope="module")
def marking_fabric() -> Iterator[Fabric]:
    """Three senders of one window each fill a queue of about 35 KB, so marking starts below that."""
    ecn = EcnSection(kmin=5_000, kmax=25_000, pmax=0.2)
    with Fabric(topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2), ecn=ecn) as fabric:
        yield fabric


@pytest.fixture(scope="module")
def after_incast(marking_fabric):
    flows = marking_fabric.incast("h0", 262144)
    return flows, marking_fabric.summary()


def test_the_incast_delivers_everything(after_incast):
    flows, _ = after_incast
    assert flows.flows == 3
    assert flows.bytes_delivered == 3 * 262144


def test_the_queue_towards_the_receiver_is_the_largest(after_incast, marking_fabric):
    _, summary = after_incast
    plane = summary.planes[0]
    leaf = marking_fabric.topology.hosts[0].nics[0]
    assert plane.largest_queue_port == f"{leaf.switch}:{leaf.switch_port}"
    assert 10_000 < plane.largest_queue_bytes <= leaf.link.queue_capacity_bytes


def test_marks_come_back_as_cnps(after_incast):
    _, summary = after_incast
    assert summary.planes[0].ecn_marked_packets > 0
    assert summary.cnps > 0


def test_int_names_each_hop_of_a_path(after_incast, marking_fabric):
    _, summary = after_incast
    path = summary.int_paths[0]
    source = marking_fabric.topology.host(path.source).nics[0].switch
    destination = marking_fabric.topology.host(path.destination).nics[0].switch
    assert [hop.switch for hop in path.hops] == [source, "p0s0", destination]
    assert all(hop.rate_bps == 10**10 for hop in path.hops)
    assert any(hop.tx_bytes > 0 for hop in path.hops)


def test_no_packet_was_dropped_by_the_way(after_incast):
    _, summary = after_incast
    assert summary.planes[0].tail_drops == 0
    assert summary.planes[0].injected_losses == 0
