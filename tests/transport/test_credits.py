"""End-to-end credits: SENDs wait for receives, so that none is refused for want of one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import PATIENT, US, cabled_pair, random_bytes, wired_pair
from weft.engine import parse_packet

MTU = 256
CREDITS: dict[str, Any] = {"end_to_end_credits": True, "path_mtu_bytes": MTU}


@given(
    actions=st.lists(st.sampled_from(["deliver", "deliver", "drop", "duplicate"]), max_size=60),
    sizes=st.lists(st.integers(0, 4 * MTU), min_size=1, max_size=10),
    posted=st.lists(st.integers(0, 3), max_size=10),
)
@settings(max_examples=60, deadline=None)
def test_whatever_the_wire_does_each_send_finds_a_receive(
    actions: list[str], sizes: list[int], posted: list[int]
) -> None:
    pair = wired_pair(**CREDITS, **PATIENT)
    source, target = random_bytes(sum(sizes)), np.zeros((len(sizes), 4 * MTU), np.uint8)
    here, there = pair.a.register(source), pair.b.nic.register_memory(target)
    offset = receives = 0
    for size in sizes:
        pair.a.queue_pair.post_send(here, offset, size)
        offset += size
    left, steps = list(actions), [*posted, len(sizes)]

    def wire(_sender: str, frame: bytes) -> list[bytes]:
        nonlocal receives
        for _ in range(min(steps.pop(0) if steps else 0, len(sizes) - receives)):
            pair.b.queue_pair.post_receive(there, receives * 4 * MTU, 4 * MTU)
            receives += 1
        action = left.pop(0) if left else "deliver"
        return {"deliver": [frame], "drop": [], "duplicate": [frame, frame]}[action]

    statuses: list[str] = []
    pair.run(
        wire,
        lambda: bool(
            statuses.extend(each["status"] for each in pair.a.completions.poll()) or len(statuses) == len(sizes)
        ),
    )
    assert set(statuses) == {"success"}
    assert [each["length_bytes"] for each in pair.b.completions.poll()] == sizes
    offset = 0
    for row, size in zip(target, sizes, strict=True):
        assert np.array_equal(row[:size], source[offset : offset + size])
        offset += size


def test_acknowledgements_say_how_many_receives_there_are() -> None:
    pair = wired_pair(**CREDITS)
    codes: list[int] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        headers = parse_packet(frame)[0]
        if sender == "b":
            codes.append(headers["aeth"]["syndrome"])
        return [frame]

    pair.b.queue_pair.post_receive(None, 0, 10)
    pair.step(wire)
    for _ in range(14):
        pair.b.queue_pair.post_receive(None, 0, 10)
    for _ in range(11):
        pair.a.queue_pair.post_send(None, 0, 10)
        pair.run(wire, lambda: bool(pair.a.completions.poll()))
    # 14 receives after the first SEND, said as 12; 4 after the last.
    assert codes == [1, 7, 7, 7, 6, 6, 6, 6, 5, 5, 4, 4]


def test_without_credits_one_packet_asks_and_the_rest_waits() -> None:
    pair = cabled_pair(**CREDITS, rnr_timer_code=4)
    pair.a.queue_pair.post_send(None, 0, 20 * MTU)
    pair.engine.run_for(30 * US)
    assert pair.a.queue_pair.stats()["data_packets_sent"] == 1
    assert pair.b.queue_pair.stats()["rnr_naks_sent"] == 1
    pair.b.queue_pair.post_receive(None, 0, 20 * MTU)
    pair.engine.run()
    assert [each["status"] for each in pair.a.completions.poll()] == ["success"]
    assert pair.a.queue_pair.stats()["data_packets_sent"] == 21


def test_writes_need_no_credits() -> None:
    pair = cabled_pair(**CREDITS)
    rkey = pair.b.nic.register_sink(1000).rkey
    pair.a.queue_pair.post_write(None, 0, 1000, 0, rkey, immediate=1)
    pair.engine.run()
    assert [each["status"] for each in pair.a.completions.poll()] == ["success"]


def test_selective_repeat_has_no_credits() -> None:
    with pytest.raises(ValueError, match="end_to_end_credits"):
        cabled_pair(**CREDITS, retransmission="selective-repeat")
