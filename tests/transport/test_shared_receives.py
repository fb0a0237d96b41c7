"""Shared receive queues: several queue pairs of RC take their receives from one."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import PATIENT, TIMEOUT_PS, US, Bytes, RdmaPair, cabled_pair, fixed_window, random_bytes
from weft.engine import RcQueuePair, SharedReceives

ROOM = 3000
TAKERS = 3
FIRST_NUMBER = 0x300


@dataclass
class Sharing:
    """Queue pairs of `b` that share receives, each connected with one of `a`."""

    options: dict[str, Any] = field(default_factory=dict)
    faults: dict[str, Any] = field(default_factory=dict)
    pair: RdmaPair = field(init=False)
    shared: SharedReceives = field(init=False)
    senders: list[RcQueuePair] = field(default_factory=list)
    takers: list[RcQueuePair] = field(default_factory=list)
    rooms: Bytes = field(init=False)

    def __post_init__(self) -> None:
        self.pair = cabled_pair(faults=self.faults)
        self.shared = SharedReceives(self.pair.b.nic)
        for number in range(FIRST_NUMBER, FIRST_NUMBER + TAKERS):
            for host, peer, made, more in (
                (self.pair.a, self.pair.b, self.senders, {}),
                (self.pair.b, self.pair.a, self.takers, {"shared_receives": self.shared}),
            ):
                options: dict[str, Any] = {
                    "queue_pair": number,
                    "remote_queue_pair": number,
                    "destination_mac": peer.mac,
                    "destination_ip": peer.ip(4),
                    "congestion_control": fixed_window(),
                    "retransmission_timeout_ps": TIMEOUT_PS,
                    "rnr_timer_code": 1,
                }
                made.append(RcQueuePair(host.nic, 0, host.completions, **(options | self.options | more)))

    def post(self, count: int, first: int = 0) -> None:
        self.rooms = np.zeros((count, ROOM), np.uint8)
        region = self.pair.b.register(self.rooms.reshape(-1))
        for place in range(count):
            self.shared.post_receive(region, place * ROOM, ROOM, work_id=first + place)


@given(
    sizes=st.lists(st.tuples(st.integers(0, TAKERS - 1), st.integers(0, ROOM)), min_size=1, max_size=12),
    loss=st.sampled_from([0.0, 0.1]),
)
@settings(max_examples=50, deadline=None)
def test_every_message_takes_one_receive_whichever_queue_pair_it_comes_over(
    sizes: list[tuple[int, int]], loss: float
) -> None:
    both = Sharing(PATIENT, {"loss": loss})
    both.post(len(sizes))
    data = [random_bytes(size, number) for number, (_, size) in enumerate(sizes)]
    for number, (sender, size) in enumerate(sizes):
        source = both.pair.a.register(data[number]) if size else None
        both.senders[sender].post_send(source, 0, size, immediate=number, work_id=number)
    both.pair.engine.run()
    assert sorted(each["work_id"] for each in both.pair.a.completions.poll()) == list(range(len(sizes)))
    arrived = both.pair.b.completions.poll()
    assert sorted(each["work_id"] for each in arrived) == list(range(len(sizes)))
    assert sorted(each["immediate"] or 0 for each in arrived) == list(range(len(sizes)))
    for each in arrived:
        assert each["immediate"] is not None
        sender, size = sizes[each["immediate"]]
        assert (each["queue_pair"], each["length_bytes"]) == (FIRST_NUMBER + sender, size)
        assert np.array_equal(both.rooms[each["work_id"]][:size], data[each["immediate"]])
    assert len(both.shared) == 0


def test_a_message_waits_until_there_is_a_receive() -> None:
    both = Sharing()
    both.senders[0].post_send(None, 0, 10)
    both.pair.engine.run_for(35 * US)
    assert both.takers[0].stats()["rnr_naks_sent"] >= 2
    both.post(2, first=7)
    both.pair.engine.run()
    assert [each["work_id"] for each in both.pair.b.completions.poll()] == [7]
    assert len(both.shared) == 1


def test_the_limit_is_reported_once_each_time_it_is_armed() -> None:
    both = Sharing()
    events: list[int] = []

    def on_limit() -> None:
        events.append(len(events))

    both.post(6)
    both.shared.arm(4, on_limit)

    def send(count: int) -> int:
        for number in range(count):
            both.senders[number % TAKERS].post_send(None, 0, 10)
        both.pair.engine.run()
        return len(events)

    assert send(2) == 0  # four are left
    assert send(1) == 1
    assert send(1) == 1
    both.shared.arm(3, on_limit)  # two are left: it needs one that is taken
    assert len(events) == 1
    assert send(1) == 2


def test_a_queue_pair_that_fails_takes_no_receive_but_that_of_its_message() -> None:
    both = Sharing()
    both.post(3)
    both.senders[0].post_send(None, 0, ROOM + 1)
    both.pair.engine.run()
    assert [(each["work_id"], each["status"]) for each in both.pair.b.completions.poll()] == [(0, "local_length_error")]
    both.takers[1].flush()
    assert len(both.shared) == 2
    both.senders[2].post_send(None, 0, 5)
    both.pair.engine.run()
    assert [(each["work_id"], each["status"]) for each in both.pair.b.completions.poll()] == [(1, "success")]


def test_what_does_not_go_with_it_is_refused() -> None:
    both = Sharing()
    with pytest.raises(ValueError, match="post them there"):
        both.takers[0].post_receive(None, 0, 10)
    with pytest.raises(ValueError, match="end_to_end_credits does not go with a shared receive queue"):
        Sharing({"end_to_end_credits": True})
