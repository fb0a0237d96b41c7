"""Acknowledgements report CE marks to the sender, and which packets had them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import MS, Bytes, WiredPair, random_bytes, wired_pair
from weft.engine import (
    Acknowledgement,
    build_packet,
    parse_packet,
    python_congestion_control,
    python_path_choice,
)

MTU = 1024
ACKNOWLEDGE = 0x11


class Ears:
    """The marks that a sender receives, by the packets' entropies, which are their numbers."""

    def __init__(self) -> None:
        self.marked: dict[int, bool] = {}
        self.covered: list[tuple[int, bool]] = []

    def options(self) -> dict[str, Any]:
        return {
            "congestion_control": python_congestion_control(
                "Ears",
                window_bytes=lambda: 1 << 20,
                pacing_rate_bps=None,
                next_deadline_ps=None,
                on_packet_sent=None,
                on_acknowledgement=self.on_acknowledgement,
                on_congestion_notification=None,
                on_loss=None,
                on_deadline=None,
            ),
            "path_choice": python_path_choice(
                "Ears",
                entropy=lambda _now, sequence, _again: sequence,
                on_delivered=self.on_delivered,
                on_lost=None,
                on_congestion_notification=None,
            ),
        }

    def on_acknowledgement(self, event: Acknowledgement) -> None:
        self.covered.append((event.acknowledged_packets, event.congestion_experienced))

    def on_delivered(self, _now_ps: int, entropy: int, _round_trip_ps: int, marked: bool) -> None:
        assert entropy not in self.marked
        self.marked[entropy] = marked


def start(pair: WiredPair, packets: int) -> Bytes:
    source = random_bytes(packets * MTU)
    target = np.zeros_like(source)
    rkey = pair.b.register(target).rkey
    pair.a.queue_pair.post_write(pair.a.register(source), 0, len(source), 0, rkey)
    return target


def with_ecn(frame: bytes, codepoint: int) -> bytes:
    headers, payload = parse_packet(frame)
    return build_packet({**headers, "ecn": codepoint}, payload)


@given(
    marks=st.lists(st.booleans(), min_size=1, max_size=40),
    shuffles=st.integers(0, 2**32 - 1),
    interval=st.integers(1, 9),
    selective=st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_the_sender_learns_which_packets_were_marked(
    marks: list[bool], shuffles: int, interval: int, selective: bool
) -> None:
    """Without loss every mark is reported, however packets are grouped in acknowledgements and ordered."""
    ears = Ears()
    pair = wired_pair(
        sender=ears.options(),
        retransmission="selective-repeat" if selective else "go-back-n",
        reordering_window_ps=MS if selective else 0,
        retransmission_timeout_ps=10 * MS,
        ack_interval_packets=interval,
        cnp_interval_ps=MS,
    )
    start(pair, len(marks))
    rng = np.random.default_rng(shuffles)
    held: list[bytes] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        psn = parse_packet(frame)[0]["bth"]["psn"]
        if sender == "b":
            return [frame]
        if not selective:
            return [with_ecn(frame, 3 if marks[psn] else 2)]
        held.append(with_ecn(frame, 3 if marks[psn] else 2))
        if len(held) < min(4, len(marks)) and psn + 1 < len(marks):
            return []
        released = [held[int(place)] for place in rng.permutation(len(held))]
        held.clear()
        return released

    pair.run(wire, lambda: bool(pair.a.completions.poll()))
    assert ears.marked == dict(enumerate(marks))
    assert sum(packets for packets, _ in ears.covered) == len(marks)
    assert sum(packets for packets, marked in ears.covered if marked) == sum(marks)


@pytest.mark.parametrize("retransmission", ["go-back-n", "selective-repeat"])
def test_packets_that_are_marked_alike_are_acknowledged_together(retransmission: str) -> None:
    """Eight ask for one answer; the third and fourth are marked, so that there are three."""
    pair = wired_pair(sender=Ears().options(), retransmission=retransmission, ack_interval_packets=8)
    start(pair, 8)
    answers: list[tuple[int, bool]] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        bth = parse_packet(frame)[0]["bth"]
        if sender == "a":
            return [with_ecn(frame, 3 if bth["psn"] in (2, 3) else 2)]
        if bth["opcode"] == ACKNOWLEDGE:
            answers.append((bth["psn"], bth["becn"]))
        return [frame]

    pair.run(wire, lambda: bool(pair.a.completions.poll()))
    assert answers == [(1, False), (3, True), (7, False)]
