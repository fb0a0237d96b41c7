"""What the responder of a READ learns of its responses: which arrived, which were marked, what INT says."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import MS, US, cabled_pair, fixed_window, random_bytes, wired_pair
from tests.transport.test_congestion_echo import Ears, with_ecn
from weft.engine import make_congestion_control, parse_packet

MTU = 1024
BOTH_RETRANSMISSIONS = pytest.mark.parametrize("retransmission", ["go-back-n", "selective-repeat"])


@BOTH_RETRANSMISSIONS
@given(marks=st.lists(st.booleans(), min_size=1, max_size=40), interval=st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_the_responder_learns_which_responses_were_marked(
    retransmission: str, marks: list[bool], interval: int
) -> None:
    ears = Ears()
    pair = wired_pair(
        retransmission=retransmission,
        ack_interval_packets=interval,
        retransmission_timeout_ps=MS,
        **ears.options(),
        sender={"congestion_control": fixed_window(), "path_choice": None},
    )
    memory = pair.b.nic.register_memory(random_bytes(len(marks) * MTU), remote_read=True)
    pair.a.queue_pair.post_read(None, 0, len(marks) * MTU, 0, memory.rkey)

    def wire(sender: str, frame: bytes) -> list[bytes]:
        bth = parse_packet(frame)[0]["bth"]
        is_response = sender == "b" and bth["opcode"] in range(0x0D, 0x11)
        return [with_ecn(frame, 3 if marks[bth["psn"]] else 2) if is_response else frame]

    pair.run(wire, lambda: sum(packets for packets, _ in ears.covered) == len(marks))
    assert ears.marked == dict(enumerate(marks))
    assert sum(packets for packets, marked in ears.covered if marked) == sum(marks)
    assert pair.a.queue_pair.stats()["ce_marked_packets"] == sum(marks)


def test_marked_responses_slow_the_responder_down() -> None:
    def dcqcn() -> Any:
        return make_congestion_control(
            "dcqcn", line_rate_bps=100_000_000_000, base_round_trip_ps=2 * US, frame_bytes=1100
        )

    times = []
    for codepoint in (2, 3):
        pair = wired_pair(congestion_control=dcqcn(), sender={"congestion_control": dcqcn()})
        rkey = pair.b.nic.register_sink(1 << 20).rkey
        pair.a.queue_pair.post_read(None, 0, 1 << 20, 0, rkey)
        ended: list[int] = []

        def wire(sender: str, frame: bytes, codepoint: int = codepoint) -> list[bytes]:
            is_response = parse_packet(frame)[0]["bth"]["opcode"] in range(0x0D, 0x11)
            return [with_ecn(frame, codepoint) if is_response else frame]

        pair.run(
            wire,
            lambda pair=pair, ended=ended: bool(
                ended.extend(each["completed_ps"] for each in pair.a.completions.poll()) or ended
            ),
        )
        assert (pair.b.queue_pair.stats()["cnps_received"] > 0) == (codepoint == 3)
        times += ended
    assert times[1] > 1.5 * times[0]


@BOTH_RETRANSMISSIONS
def test_int_of_responses_is_echoed_and_all_packets_are_accounted_for(retransmission: str) -> None:
    pair = cabled_pair(
        retransmission=retransmission,
        telemetry=True,
        faults={"loss": 0.02, "duplicate": 0.02},
        retry_limit=50,
    )
    source, target = random_bytes(200_000), np.zeros(200_000, np.uint8)
    rkey = pair.b.nic.register_memory(source, remote_read=True).rkey
    pair.a.queue_pair.post_read(pair.a.register(target), 0, len(source), 0, rkey)
    pair.engine.run_for(10 * US)
    assert pair.engine.packet_conservation()["missing"] == {"packets": 0, "bytes": 0}
    pair.engine.run()
    assert np.array_equal(source, target)
    assert pair.engine.packet_conservation()["missing"] == {"packets": 0, "bytes": 0}
    echoed = pair.b.queue_pair.last_telemetry
    assert echoed is not None
    assert echoed["echo"]
