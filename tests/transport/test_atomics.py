"""Compare-and-swap and fetch-and-add: each is done once, whatever the wire does, and where it may be."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import PATIENT, RdmaPair, WiredPair, cabled_pair, wired_pair
from weft.engine import parse_packet

BASE = 1 << 40
BOTH_RETRANSMISSIONS = pytest.mark.parametrize("retransmission", ["go-back-n", "selective-repeat"])


def memory_of_b(pair: RdmaPair | WiredPair, numbers: list[int], **access: bool) -> tuple[Any, int]:
    memory = np.array(numbers, np.uint64)
    options = {"remote_write": False, "remote_atomic": True} | access
    return memory, pair.b.nic.register_memory(memory, virtual_address=BASE, **options).rkey


@BOTH_RETRANSMISSIONS
def test_what_was_there_comes_back_and_what_is_there_changes(retransmission: str) -> None:
    pair = cabled_pair(retransmission=retransmission)
    memory, rkey = memory_of_b(pair, [7, 2**64 - 1])
    found = np.zeros(4, np.uint64)
    region = pair.a.nic.register_memory(found)
    pair.a.queue_pair.post_compare_swap(region, 0, BASE, rkey, compare=7, swap=99, work_id=1)
    pair.a.queue_pair.post_compare_swap(region, 8, BASE, rkey, compare=7, swap=5, work_id=2)
    pair.a.queue_pair.post_fetch_add(region, 16, BASE + 8, rkey, add=3, work_id=3)
    pair.a.queue_pair.post_fetch_add(None, 0, BASE, rkey, add=1, work_id=4)
    pair.engine.run()
    assert found.tolist() == [7, 99, 2**64 - 1, 0]
    assert memory.tolist() == [100, 2]
    completions = [(each["work_id"], each["kind"], each["status"]) for each in pair.a.completions.poll()]
    kinds = ["compare_swap", "compare_swap", "fetch_add", "fetch_add"]
    assert completions == [(number, kind, "success") for number, kind in enumerate(kinds, 1)]


def test_the_packets_are_those_of_the_specification() -> None:
    pair = wired_pair(initial_psn=5)
    sent: list[Any] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        sent.append(parse_packet(frame)[0])
        return [frame]

    _, rkey = memory_of_b(pair, [40])
    pair.a.queue_pair.post_compare_swap(None, 0, BASE, rkey, compare=40, swap=41)
    pair.run(wire, lambda: bool(pair.a.completions.poll()))
    pair.a.queue_pair.post_fetch_add(None, 0, BASE, rkey, add=2)
    pair.run(wire, lambda: bool(pair.a.completions.poll()))
    assert [(each["bth"]["opcode"], each["bth"]["psn"]) for each in sent] == [
        (0x13, 5),
        (0x12, 5),
        (0x14, 6),
        (0x12, 6),
    ]
    swap, swapped, add, added = sent
    assert swap["atomic_eth"] == {"virtual_address": BASE, "rkey": rkey, "swap_or_add": 41, "compare": 40}
    assert add["atomic_eth"]["swap_or_add"] == 2
    assert (swapped["atomic_ack_original"], swapped["aeth"]["msn"]) == (40, 1)
    assert (added["atomic_ack_original"], added["aeth"]["msn"]) == (41, 2)


@BOTH_RETRANSMISSIONS
@given(
    actions=st.lists(st.sampled_from(["deliver", "deliver", "drop", "duplicate"]), max_size=60),
    steps=st.lists(st.sampled_from(["add", "swap", "read", "write"]), min_size=1, max_size=12),
    limit=st.sampled_from([1, 2, 16]),
)
@settings(max_examples=80, deadline=None)
def test_each_atomic_is_done_once(retransmission: str, actions: list[str], steps: list[str], limit: int) -> None:
    pair = wired_pair(retransmission=retransmission, path_mtu_bytes=256, **PATIENT, max_outstanding_reads=limit)
    left = list(actions)

    def wire(_sender: str, frame: bytes) -> list[bytes]:
        action = left.pop(0) if left else "deliver"
        return {"deliver": [frame], "drop": [], "duplicate": [frame, frame]}[action]

    memory, rkey = memory_of_b(pair, [10, *range(200)], remote_read=True, remote_write=True)
    found = np.full(len(steps), 2**63, np.uint64)
    region = pair.a.nic.register_memory(found)
    read = pair.a.register(np.zeros(1600, np.uint8))
    value, expected = 10, []
    for index, step in enumerate(steps):
        if step == "add":
            pair.a.queue_pair.post_fetch_add(region, 8 * index, BASE, rkey, add=index + 1)
            expected.append(value)
            value += index + 1
        elif step == "swap":
            swap = 1000 + index
            pair.a.queue_pair.post_compare_swap(region, 8 * index, BASE, rkey, compare=value, swap=swap)
            expected.append(value)
            value = swap
        else:
            post = pair.a.queue_pair.post_read if step == "read" else pair.a.queue_pair.post_write
            post(read, 0, 1000, BASE + 8, rkey)
            expected.append(2**63)
    statuses: list[str] = []
    pair.run(
        wire,
        lambda: bool(
            statuses.extend(each["status"] for each in pair.a.completions.poll()) or len(statuses) == len(steps)
        ),
    )
    assert set(statuses) == {"success"}
    assert found.tolist() == expected
    assert memory[0] == value


@BOTH_RETRANSMISSIONS
@pytest.mark.parametrize(
    ("access", "address", "status"),
    [
        ({}, BASE + 4, "remote_invalid_request"),
        ({}, BASE + 16, "remote_access_error"),
        ({"remote_atomic": False, "remote_write": True}, BASE, "remote_access_error"),
    ],
)
def test_misaligned_and_forbidden_atomics_are_refused(
    access: dict[str, bool], address: int, status: str, retransmission: str
) -> None:
    pair = cabled_pair(retransmission=retransmission)
    memory, rkey = memory_of_b(pair, [1, 2], **access)
    pair.a.queue_pair.post_fetch_add(None, 0, address, rkey, add=1)
    pair.engine.run()
    assert [each["status"] for each in pair.a.completions.poll()] == [status]
    assert memory.tolist() == [1, 2]


def test_what_atomics_write_to_must_be_writable_here() -> None:
    pair = cabled_pair()
    region = pair.a.nic.register_memory(np.zeros(1, np.uint64), remote_write=False)
    with pytest.raises(ValueError, match="without local_write"):
        pair.a.queue_pair.post_fetch_add(region, 0, 0, 1, add=1)
    with pytest.raises(ValueError, match="bytes 1 to 9 of a memory region of 8"):
        pair.a.queue_pair.post_compare_swap(
            pair.a.nic.register_memory(np.zeros(1, np.uint64)), 1, 0, 1, compare=1, swap=1
        )
    with pytest.raises(BufferError):
        pair.a.nic.register_memory(bytes(8), remote_write=False, remote_atomic=True)
