"""What RDMA programs lose without hearing of it is counted for their host's device."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.verbs.cm_ends import gid_of
from tests.verbs.played import Client, Nics, Send, pair_of
from weft.engine import _core
from weft.traffic.verbs.cm import ConnectionManager
from weft.traffic.verbs.states import Access, Kind
from weft.verbs.counters import DEVICE_COUNTERS, MANAGEMENT_LOSSES, MESSAGE_COUNTERS

SEND = 2
MANAGEMENT_QKEY = 0x80010000
REQ = _core.build_cm({"message": "req"})


@pytest.fixture
def nics() -> Iterator[Nics]:
    made = Nics()
    yield made
    made.close()


@pytest.fixture
def manager(nics: Nics) -> ConnectionManager:
    return ConnectionManager(nics.hosts["b"], nics.ports["b"], node_guid=2, virtual=None)


def counted(nics: Nics) -> dict[str, int]:
    """Return host b's counters that are not 0."""
    return {name: value for name, value in nics.hosts["b"].device_counts.values().items() if value}


def test_a_host_without_a_device_counts_nothing_for_it(nics: Nics) -> None:
    assert nics.hosts["b"].device_counts.values() == {}


def test_names_are_those_that_are_declared(nics: Nics, manager: ConnectionManager) -> None:
    assert set(manager.counters()) == {*MANAGEMENT_LOSSES, *MESSAGE_COUNTERS}
    assert tuple(nics.hosts["b"].device_counts.values()) == DEVICE_COUNTERS
    assert nics.hosts["b"].stats()["device"] == nics.hosts["b"].device_counts.values()


def test_messages_of_uc_that_nobody_waits_for(nics: Nics, manager: ConnectionManager) -> None:
    """They stay counted when the queue pair is gone, and when the host's other counters are reset."""
    with Client(nics, "a") as one, Client(nics, "b") as other:
        (own, queue, _), (peer, _, _) = pair_of(one, other, Kind.UC, Access.REMOTE_WRITE)
        for number in range(3):
            one.post_send(own, Send(number, SEND, inline=b"lost"))
            nics.run()
            assert [each.status for each in queue.poll()] == [0]
            if number == 1:
                nics.hosts["b"].reset_stats()
        assert counted(nics) == {"uc_messages_without_receive": 3}
        other.ask("destroy_queue_pair", queue_pair=peer.handle)
        assert counted(nics) == {"uc_messages_without_receive": 3}


def datagram(one: Client, number: int, qkey: int, data: bytes) -> None:
    """Send one from a new queue pair of a client to host b."""
    domain, queue = one.value("create_domain"), one.completion_queue()
    own = one.queue_pair(domain, Kind.UD, queue, queue)
    one.open_datagrams(own, qkey)
    handle = one.address_handle(domain, "b")
    one.post_send(
        own, Send(1, SEND, inline=data, address_handle=handle, remote_number=number, remote_qkey=qkey & 0x7FFFFFFF)
    )
    one.nics.run()


def test_datagrams_that_are_dropped(nics: Nics, manager: ConnectionManager) -> None:
    """At a client's queue pair, and at queue pair 1."""
    with Client(nics, "a") as one, Client(nics, "b") as other:
        queue = other.completion_queue()
        receiver = other.queue_pair(other.value("create_domain"), Kind.UD, queue, queue)
        other.open_datagrams(receiver, 0x11)
        datagram(one, receiver.number, 0x11, b"nobody waits")
        datagram(one, receiver.number, 0x22, b"wrong key")
        datagram(one, 1, 0x33, b"wrong key")
        assert counted(nics) == {"ud_datagrams_without_receive": 1, "ud_bad_q_key": 2}


def test_messages_of_connection_management(nics: Nics, manager: ConnectionManager) -> None:
    own, peer = gid_of("10.0.0.2"), gid_of("10.0.0.1")
    manager._native.receive(1, own, peer, b"no message")
    for _ in range(300):  # of which each is refused
        manager._native.receive(1, own, peer, REQ)
    manager.take_messages()
    assert {name: value for name, value in counted(nics).items() if name.startswith("cm_")} == {
        "cm_unreadable": 1,
        "cm_rx_msgs/req": 300,
        "cm_tx_msgs/rej": 300,
        "cm_sends_without_place": 300 - 256,
    }


def test_answers_that_the_port_cannot_send(nics: Nics, manager: ConnectionManager) -> None:
    """It has no address of IPv6."""
    manager._native.receive(1, gid_of("10.0.0.2"), gid_of("fd00::1"), REQ)
    manager.take_messages()
    assert counted(nics)["cm_sends_refused"] == 1
