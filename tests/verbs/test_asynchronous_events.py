"""Asynchronous events of queue pairs: InfiniBand specification volume 1, 11.6.3, and what Linux's drivers call them."""

from __future__ import annotations

import mmap
from collections.abc import Iterator

import pytest

from tests.verbs.played import AsynchronousEvent, Client, Nics, Piece, Send, pair_of
from weft.traffic.verbs.states import Access, Attribute, Kind, State

# `enum ibv_event_type`, `enum ibv_wr_opcode` and `enum ibv_wc_status`.
FATAL, REQUEST_ERROR, ACCESS_ERROR, DRAINED, LAST_TAKEN = 1, 2, 3, 5, 16
WRITE, SEND = 0, 2
LENGTH_ERROR, FLUSHED, REMOTE_INVALID, REMOTE_ACCESS, REMOTE_OPERATION = 1, 5, 9, 10, 11
LOCAL_WRITE = 1
EVERYTHING = LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC


@pytest.fixture
def clients() -> Iterator[tuple[Client, Client]]:
    nics = Nics()
    with Client(nics, "a") as one, Client(nics, "b") as other:
        yield one, other
    nics.close()


def registered(client: Client, domain: int, address: int, length: int = 64) -> int:
    return client.value(
        "register_memory",
        domain=domain,
        address=address,
        virtual_address=address,
        length_bytes=length,
        access=EVERYTHING,
    )


@pytest.mark.parametrize(
    ("access", "key_error", "status", "event"),
    [
        (EVERYTHING, 1000, REMOTE_ACCESS, ACCESS_ERROR),
        (0, 0, REMOTE_INVALID, REQUEST_ERROR),
    ],
)
def test_a_peer_that_asks_for_what_it_may_not_have(
    clients: tuple[Client, Client], access: int, key_error: int, status: int, event: int
) -> None:
    one, other = clients
    (own, own_queue, _), (peer, peer_queue, domain) = pair_of(one, other, Kind.RC, access)
    key = registered(other, domain, other.base)
    other.post_receive(peer, 7, None)
    one.post_send(own, Send(1, WRITE, inline=b"12345678", remote_key=key + key_error, remote_address=other.base))
    one.nics.run()
    assert [(each.work_id, each.status) for each in own_queue.poll()] == [(1, status)]
    assert [(each.work_id, each.status) for each in peer_queue.poll()] == [(7, FLUSHED)]
    assert other.events() == [AsynchronousEvent(peer.cookie, event)]
    assert (one.events(), one.state(own), other.state(peer)) == ([], State.ERR, State.ERR)
    assert other.value("destroy_queue_pair", queue_pair=peer.handle) == 1  # that its program has to acknowledge


def test_memory_that_has_gone_is_a_catastrophe(clients: tuple[Client, Client]) -> None:
    one, other = clients
    (own, own_queue, _), (peer, _, domain) = pair_of(one, other, Kind.RC, EVERYTHING)
    gone = mmap.mmap(-1, mmap.PAGESIZE)
    address = Client.address_of(gone)
    key = registered(other, domain, address)
    gone.close()
    one.post_send(own, Send(1, WRITE, inline=b"12345678", remote_key=key, remote_address=address))
    one.nics.run()
    assert [each.status for each in own_queue.poll()] == [REMOTE_OPERATION]
    assert other.events() == [AsynchronousEvent(peer.cookie, FATAL)]


def test_an_error_that_a_completion_tells_raises_no_event(clients: tuple[Client, Client]) -> None:
    one, other = clients
    (own, own_queue, _), (peer, peer_queue, domain) = pair_of(one, other, Kind.RC, EVERYTHING)
    key = registered(other, domain, other.base)
    other.post_receive(peer, 7, Piece(other.base, 4, key))
    one.post_send(own, Send(1, SEND, inline=b"12345678"))
    one.nics.run()
    assert [each.status for each in own_queue.poll()] == [REMOTE_INVALID]
    assert [(each.work_id, each.status) for each in peer_queue.poll()] == [(7, LENGTH_ERROR)]
    assert other.events() == []


def test_the_last_receive_of_a_shared_queue_comes_after_the_reason(clients: tuple[Client, Client]) -> None:
    one, other = clients
    domain = other.value("create_domain")
    shared = other.shared_queue(domain)
    (own, _, _), (peer, _, _) = pair_of(one, other, Kind.RC, EVERYTHING, domain=domain, shared_queue=shared.handle)
    one.post_send(own, Send(1, WRITE, inline=b"12345678", remote_key=77, remote_address=other.base))
    one.nics.run()
    assert other.events() == [
        AsynchronousEvent(peer.cookie, ACCESS_ERROR),
        AsynchronousEvent(peer.cookie, LAST_TAKEN),
    ]


def test_a_drained_queue_pair_says_so_once_if_it_is_asked(clients: tuple[Client, Client]) -> None:
    one, other = clients
    (own, queue, _), (peer, _, domain) = pair_of(one, other, Kind.RC, EVERYTHING)
    key = registered(other, domain, other.base)
    write = Send(1, WRITE, inline=b"12345678", remote_key=key, remote_address=other.base)
    one.post_send(own, write)
    one.nics.run(1)  # it has been taken from its ring and has not arrived
    one.set_state(own, State.SQD, notifies=True)
    assert (one.events(), queue.poll()) == ([], [])
    one.post_send(own, write)
    one.nics.run()
    assert one.events() == [AsynchronousEvent(own.cookie, DRAINED)]
    assert len(queue.poll()) == 1  # the second waits
    one.set_state(own, State.RTS)
    one.nics.run()
    assert (one.events(), len(queue.poll())) == ([], 1)
    one.set_state(own, State.SQD)
    one.nics.run()
    assert one.events() == []
    one.modify(own, Attribute.CUR_STATE)
    assert one.events() == []
    assert other.events() == []
    assert other.state(peer) == State.RTS
