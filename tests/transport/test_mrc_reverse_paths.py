"""Paths for MRC's answers: receivers probe them once a round trip, SACKs leave dead ones, forgeries fool nobody."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.transport.rdma_pair import US, WiredPair, ideal_wire, random_bytes, wired_pair
from tests.transport.test_mrc_queue_pair import MRC, MTU, opcode_of
from tests.transport.test_selective_repeat import done, post
from weft.engine import _core, parse_packet

SACK, REQUEST, RESPONSE = 0xDC, 0xD8, 0xD9
EV_PROBE = 1


def port_of(frame: bytes) -> int:
    return parse_packet(frame)[0]["source_udp_port"]


def endpoint_stats(host: Any) -> dict[str, int]:
    return dict(_core.mrc_endpoint_stats(host.nic))


def steps(pair: WiredPair, wire: Callable[[str, bytes], list[bytes]], count: int) -> None:
    for _ in range(count):
        pair.step(wire)


def test_acknowledgements_leave_a_dead_path_within_some_round_trips() -> None:
    """The path back that SACKs take is cut time and again; each time only those of some round trips are lost."""
    pair = wired_pair(**MRC, version=6)
    dead: set[int] = set()
    taken: list[int] = []
    lost: list[int] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        if sender == "a":
            return [frame]
        if opcode_of(frame) == SACK:
            taken.append(port_of(frame))
        if port_of(frame) not in dead:
            return [frame]
        lost.append(opcode_of(frame))
        return []

    source, target = post(pair, [8000 * MTU])
    steps(pair, wire, 100)
    for _ in range(4):
        dead.add(taken[-1])
        steps(pair, wire, 15)  # a round trip takes two or three
        before = lost.count(SACK)
        steps(pair, wire, 15)
        assert lost.count(SACK) == before
    assert SACK in lost
    pair.run(wire, done(pair, 1))
    assert np.array_equal(source, target)
    assert pair.a.queue_pair.stats()["timeouts"] == 0
    # An unanswered EV probe says nothing of the path there: that is for data and reliability probes to tell.
    assert {each["state"] for each in pair.b.queue_pair.evs()} == {"good"}


def test_one_path_back_suffices() -> None:
    pair = wired_pair(**MRC, version=6)
    works = pair.b.queue_pair.evs()[7]["value"] >> 16

    def wire(sender: str, frame: bytes) -> list[bytes]:
        return [frame] if sender == "a" or port_of(frame) == works else []

    source, target = post(pair, [400 * MTU])
    pair.run(wire, done(pair, 1))
    assert np.array_equal(source, target)


def test_a_receiver_probes_once_a_round_trip() -> None:
    pair = wired_pair(**MRC, version=6)
    post(pair, [8000 * MTU])
    steps(pair, ideal_wire, 60)
    before = endpoint_stats(pair.b)
    steps(pair, ideal_wire, 100)
    after = endpoint_stats(pair.b)
    assert 100 // 4 <= after["ev_probes_sent"] - before["ev_probes_sent"] <= 100 // 2
    assert after["ev_probes_answered"] >= after["ev_probes_sent"] - 2
    assert after["ev_probe_responses_refused"] == 0
    assert endpoint_stats(pair.a)["ev_probes_sent"] == 0
    assert endpoint_stats(pair.a)["ev_probes_received"] >= after["ev_probes_answered"]
    assert pair.b.queue_pair.mrc_stats()["probes_sent"] == 0


def test_short_messages_and_data_both_ways_need_no_probes() -> None:
    pair = wired_pair(**MRC, version=6)
    post(pair, [4 * MTU])
    pair.run(ideal_wire, done(pair, 1))
    steps(pair, ideal_wire, 100)
    assert endpoint_stats(pair.b)["ev_probes_sent"] == 0
    for one, other in ((pair.a, pair.b), (pair.b, pair.a)):
        source = random_bytes(4000 * MTU, 2)
        rkey = other.register(np.zeros_like(source)).rkey
        one.queue_pair.post_write(one.register(source), 0, len(source), 0, rkey, work_id=7)
    steps(pair, ideal_wire, 200)
    assert endpoint_stats(pair.a)["ev_probes_sent"] == endpoint_stats(pair.b)["ev_probes_sent"] == 0


def test_an_operator_s_probes_measure_each_path_even_denied_ones() -> None:
    pair = wired_pair(**MRC, version=6)
    queue_pair = pair.a.queue_pair
    dead = queue_pair.evs()[2]["value"] >> 16
    queue_pair.deny_ev(1)
    queue_pair.probe_evs([0, 1, 2, 1])
    assert queue_pair.probed_round_trips() == {0: None, 1: None, 2: None}
    steps(pair, lambda _, frame: [] if port_of(frame) == dead else [frame], 20)
    found = queue_pair.probed_round_trips()
    assert found[2] is None
    assert all(0 < found[ev] <= 3 * US for ev in (0, 1))
    assert queue_pair.evs()[1]["state"] == "denied"
    queue_pair.probe_evs([5])
    assert queue_pair.probed_round_trips() == {5: None}
    with pytest.raises(ValueError, match=r"no entropy value 20 \(valid: 0 to 19"):
        queue_pair.probe_evs([3, 20])
    assert queue_pair.probed_round_trips() == {5: None}


def test_the_last_entropy_value_cannot_be_denied() -> None:
    pair = wired_pair(**MRC, version=6)
    queue_pair = pair.a.queue_pair
    for ev in range(19):
        queue_pair.deny_ev(ev)
    with pytest.raises(ValueError, match="the last that is not denied"):
        queue_pair.deny_ev(19)
    source, target = post(pair, [64 * MTU])
    pair.run(ideal_wire, done(pair, 1))
    assert np.array_equal(source, target)


@pytest.mark.parametrize("forged", ["nothing", "id", "timestamp", "operation", "source"])
def test_answers_that_are_not_the_peer_s_are_counted_and_not_believed(forged: str) -> None:
    pair = wired_pair(**MRC, version=6)
    requests: list[bytes] = []

    def wire(_sender: str, frame: bytes) -> list[bytes]:
        if opcode_of(frame) == REQUEST:
            requests.append(frame)
        return []

    pair.a.queue_pair.probe_evs([4])
    steps(pair, wire, 3)
    headers, _ = parse_packet(requests[0])
    number = headers["bth"]["psn"] & 0xFFFF
    answer = headers | {
        "source_mac": headers["destination_mac"],
        "destination_mac": headers["source_mac"],
        "source_ip": "fd00::77" if forged == "source" else headers["destination_ip"],
        "destination_ip": headers["source_ip"],
        "bth": headers["bth"] | {"opcode": RESPONSE, "psn": number ^ (forged == "id")},
        "mrc": {
            "eeth": {
                "op": EV_PROBE ^ (forged == "operation"),
                "tx_timestamp": headers["mrc"]["erth"]["tx_timestamp"] ^ (forged == "timestamp"),
            }
        },
    }
    frame = _core.build_packet(answer)
    for _ in range(2):  # the second comes too late in any case
        pair.engine.inject(pair.a.nic, 0, frame)
        pair.engine.run_for(US)
    believed = forged == "nothing"
    assert (pair.a.queue_pair.probed_round_trips()[4] is not None) == believed
    stats = endpoint_stats(pair.a)
    assert stats["ev_probes_answered"] == believed
    refused = {"nothing": 1, "id": 2, "timestamp": 2, "operation": 0, "source": 0}[forged]
    assert stats["ev_probe_responses_refused"] == refused
    assert stats["endpoint_packets_refused"] == (2 if forged == "source" else 0)
    assert stats["port_updates_confirmed"] == 0
