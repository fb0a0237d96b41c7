"""Queue pairs of UET with service UUD: datagrams take receives in turn, and what is dropped is counted."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import US, Recording, WiredPair, cabled_pair, ideal_wire, random_bytes, wired_pair
from tests.transport.test_uet_queue_pair import MTU, UDP_AT, Wire, headers_of, trimmed, type_of, with_dscp
from weft.wire.code_points import DSCP_TRIMMED

UUD: dict[str, Any] = {
    "uet_options": {"service": "uud"},
    "path_mtu_bytes": MTU,
    "retransmission_timeout_ps": 50 * US,
}
ROOMS = 12


def posted(pair: WiredPair, sizes: list[int]) -> tuple[list[Any], Any]:
    """Post a receive of a packet for each room and datagrams of these sizes; return what is sent, and the rooms."""
    rooms = np.zeros((ROOMS, MTU), np.uint8)
    region = pair.b.register(rooms.reshape(-1))
    for number in range(ROOMS):
        pair.b.queue_pair.post_receive(region, number * MTU, MTU, work_id=100 + number)
    sent = [random_bytes(size, number) for number, size in enumerate(sizes)]
    for number, data in enumerate(sent):
        source = pair.a.register(data) if data.size else None
        pair.a.queue_pair.post_send(source, 0, len(data), immediate=number, work_id=number)
    return sent, rooms


@given(
    actions=st.lists(st.sampled_from(["deliver", "deliver", "drop", "duplicate", "hold", "trim", "mark"]), max_size=12),
    sizes=st.lists(st.integers(1, MTU), min_size=1, max_size=8),
)
@settings(max_examples=100, deadline=None)
def test_a_datagram_arrives_whole_as_often_as_the_wire_delivers_it(actions: list[str], sizes: list[int]) -> None:
    pair = wired_pair(**UUD, version=6)
    delivered: list[int] = []
    cut = 0
    wire = Wire(actions)

    def watched(sender: str, frame: bytes) -> list[bytes]:
        nonlocal cut
        assert sender == "a"  # nothing is answered
        frames = wire(sender, frame)
        whole = [each for each in frames if len(each) >= UDP_AT and each[14:16] != with_dscp(each, DSCP_TRIMMED)[14:16]]
        cut += len(frames) - len(whole)
        delivered.extend(headers_of(each)[1]["header_data"] for each in whole)
        return frames

    sent, rooms = posted(pair, sizes)
    for _ in range(5):
        pair.step(watched)
    assert [each["work_id"] for each in pair.a.completions.poll()] == list(range(len(sizes)))
    arrived = pair.b.completions.poll()
    taken = delivered[:ROOMS]
    assert [each["work_id"] for each in arrived] == [100 + place for place in range(len(taken))]
    assert [each["immediate"] for each in arrived] == taken
    assert [each["length_bytes"] for each in arrived] == [sizes[number] for number in taken]
    for room, number in zip(rooms, taken, strict=False):
        assert np.array_equal(room[: sizes[number]], sent[number])
    counted = pair.b.queue_pair.uet_stats()
    assert counted["datagrams_without_receive"] == len(delivered) - len(taken)
    assert counted["datagrams_trimmed"] == cut
    assert pair.a.queue_pair.stats()["retransmitted_packets"] == 0


@pytest.mark.parametrize("version", [4, 6])
def test_a_program_may_answer_from_its_receives(version: int) -> None:
    pair = cabled_pair(**UUD, version=version)
    heard = np.zeros(MTU, np.uint8)
    pair.b.queue_pair.post_receive(pair.b.register(heard), 0, MTU)
    said = random_bytes(100)
    pair.a.queue_pair.post_send(pair.a.register(said), 0, 100)
    pair.engine.run_for(10 * US)
    assert np.array_equal(heard[:100], said)
    back = np.zeros(MTU, np.uint8)
    pair.a.queue_pair.post_receive(pair.a.register(back), 0, MTU)
    pair.b.queue_pair.post_send(pair.b.register(heard), 0, 100)
    pair.engine.run_for(10 * US)
    assert np.array_equal(back[:100], said)
    (done, received) = pair.a.completions.poll()
    assert (done["kind"], done["status"], received["kind"]) == ("send", "success", "receive")
    assert received["immediate"] is None


def test_headers_are_those_of_a_datagram() -> None:
    pair = wired_pair(**UUD, version=6)
    wire = Recording()

    posted(pair, [MTU])
    pair.step(wire)
    (frame,) = wire.frames
    assert type_of(frame) == 6
    delivery, request = headers_of(frame)
    assert (delivery["name"], request["name"], request["opcode"]) == ("UETUud", "UETStandard", 7)
    assert len(frame) == UDP_AT + 8 + 4 + 44 + MTU


def test_a_datagram_without_room_is_dropped_and_the_receive_stays() -> None:
    pair = wired_pair(**UUD, version=6)
    memory = np.zeros(10, np.uint8)
    pair.b.queue_pair.post_receive(pair.b.register(memory), 0, 10, work_id=1)
    for size in (11, 10, 10):
        pair.a.queue_pair.post_send(pair.a.register(np.ones(size, np.uint8)), 0, size)
    for _ in range(3):
        pair.step(ideal_wire)
    assert [(each["work_id"], each["length_bytes"]) for each in pair.b.completions.poll()] == [(1, 10)]
    counted = pair.b.queue_pair.uet_stats()
    assert (counted["datagrams_too_long"], counted["datagrams_without_receive"]) == (1, 1)


def test_what_is_posted_to_a_failed_queue_pair_is_flushed() -> None:
    pair = wired_pair(**UUD)
    pair.a.queue_pair.post_receive(None, 0, MTU, work_id=1)
    pair.a.queue_pair.flush()
    pair.a.queue_pair.post_receive(None, 0, MTU, work_id=2)
    pair.a.queue_pair.post_send(None, 0, 1, work_id=3)
    pair.step(ideal_wire)
    flushed = [(each["work_id"], each["kind"], each["status"]) for each in pair.a.completions.poll()]
    assert flushed == [(1, "receive", "flushed"), (2, "receive", "flushed"), (3, "send", "flushed")]


def test_what_uud_does_not_carry_is_refused() -> None:
    pair = wired_pair(**UUD)
    with pytest.raises(ValueError, match=f"datagram of {MTU + 1} bytes .valid: at most a packet, {MTU}"):
        pair.a.queue_pair.post_send(None, 0, MTU + 1)
    with pytest.raises(ValueError, match=r"UUD carries no write .valid: SEND"):
        pair.a.queue_pair.post_write(None, 0, 1, 0, 1)
    assert pair.a.queue_pair.stats()["outstanding_requests"] == 0
    with pytest.raises(ValueError, match="receiver_credits need service rud or rod"):
        wired_pair(**{**UUD, "uet_options": {"service": "uud", "receiver_credits": True}})


def test_malformed_packets_are_dropped_and_counted() -> None:
    pair = wired_pair(**UUD, version=6)
    wire = Recording()

    posted(pair, [MTU, 3])
    pair.step(wire)
    random = np.random.default_rng(5)
    for _ in range(300):
        frame = wire.frames[random.integers(len(wire.frames))]
        bad = bytearray(frame)
        bad[random.integers(UDP_AT, len(bad))] ^= 1 << random.integers(8)
        cut = bytes(bad[: random.integers(UDP_AT, len(bad) + 1)])
        for damaged in (bytes(bad), cut, with_dscp(cut, DSCP_TRIMMED), trimmed(frame)):
            pair.engine.inject(pair.b.nic, 0, damaged)
        pair.step(ideal_wire)
    stats = pair.b.queue_pair.stats()
    assert (stats["data_packets_received"], stats["error"]) == (2, "success")
    assert pair.b.queue_pair.uet_stats()["datagrams_trimmed"] >= 300
