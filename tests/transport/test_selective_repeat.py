"""Selective repeat, and packets that take many paths: nothing but what was lost is sent again."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engine import build_packet, parse_packet

if TYPE_CHECKING:
    from weft.engine.records import RoceHeaders
from tests.transport.rdma_pair import (
    PATIENT,
    US,
    Bytes,
    WiredPair,
    cabled_pair,
    flowlet,
    ideal_wire,
    random_bytes,
    spray,
    wired_pair,
)

MTU = 256
SELECTIVE: dict[str, Any] = {"retransmission": "selective-repeat", "path_mtu_bytes": MTU}


def post(pair: WiredPair, sizes: list[int], seed: int = 0) -> tuple[Bytes, Bytes]:
    """Post WRITEs with immediate, one after the other through one buffer; returns source and target."""
    source = random_bytes(sum(sizes), seed)
    target = np.zeros_like(source)
    rkey = pair.b.register(target, virtual_address=1 << 40).rkey
    region, offset = pair.a.register(source), 0
    for number, size in enumerate(sizes):
        pair.a.queue_pair.post_write(region, offset, size, (1 << 40) + offset, rkey, immediate=number, work_id=number)
        offset += size
    return source, target


def done(pair: WiredPair, count: int) -> Any:
    seen: list[int] = []

    def finished() -> bool:
        seen.extend(each["work_id"] for each in pair.a.completions.poll() if each["status"] == "success")
        return len(seen) == count

    return finished


class DropOnce:
    """Drops the data packets of these numbers in their first transmission."""

    def __init__(self, numbers: set[int]) -> None:
        self.numbers = numbers
        self.seen: set[int] = set()

    def __call__(self, sender: str, frame: bytes) -> list[bytes]:
        headers, _ = parse_packet(frame)
        psn = headers["bth"]["psn"]
        if sender == "b" or psn in self.seen:
            return [frame]
        self.seen.add(psn)
        return [] if psn in self.numbers else [frame]


@given(lost=st.sets(st.integers(0, 97), max_size=40), window=st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_exactly_what_was_lost_is_sent_again(lost: set[int], window: int) -> None:
    pair = wired_pair(**SELECTIVE, window_bytes=window * (MTU + 80), retransmission_timeout_ps=50 * US)
    source, target = post(pair, [98 * MTU, MTU])  # what comes after the last loss shows it
    pair.run(DropOnce(lost), done(pair, 2))
    assert np.array_equal(source, target)
    stats = pair.a.queue_pair.stats()
    assert stats["retransmitted_packets"] == len(lost)
    assert pair.b.queue_pair.stats()["duplicate_packets"] == 0


def test_go_back_n_sends_more() -> None:
    lost = {5, 20, 21, 70}
    sent = {}
    for retransmission in ("go-back-n", "selective-repeat"):
        pair = wired_pair(
            retransmission=retransmission,
            path_mtu_bytes=MTU,
            window_bytes=30 * MTU,
            retransmission_timeout_ps=50 * US,
        )
        source, target = post(pair, [99 * MTU])
        pair.run(DropOnce(lost), done(pair, 1))
        assert np.array_equal(source, target)
        sent[retransmission] = pair.a.queue_pair.stats()["retransmitted_packets"]
    assert sent["selective-repeat"] == len(lost)
    assert sent["go-back-n"] > 5 * len(lost)


@given(
    drops=st.lists(st.sampled_from(["deliver", "deliver", "deliver", "drop", "duplicate", "hold"]), max_size=80),
    sizes=st.lists(st.integers(0, 5 * MTU), min_size=1, max_size=8),
    psn=st.sampled_from([0, 0xFFFFFD]),
    window_us=st.sampled_from([0, 3]),
)
@settings(max_examples=120, deadline=None)
def test_whatever_the_wire_does_all_arrives_once_and_in_order(
    drops: list[str], sizes: list[int], psn: int, window_us: int
) -> None:
    pair = wired_pair(
        **SELECTIVE,
        initial_psn=psn,
        **PATIENT,
        reordering_window_ps=window_us * US,
        ack_interval_packets=3,
        path_choice=spray(1, 64),
    )
    actions, held = list(drops), {"a": [], "b": []}  # type: dict[str, list[bytes]]

    def wire(sender: str, frame: bytes) -> list[bytes]:
        action = actions.pop(0) if actions else "deliver"
        if action == "drop":
            return []
        if action == "hold":
            held[sender].append(frame)
            return []
        late, held[sender] = held[sender], []
        return [frame, *late, *([frame] if action == "duplicate" else [])]

    source, target = post(pair, sizes)
    pair.run(wire, done(pair, len(sizes)))
    assert np.array_equal(source, target)
    arrived = pair.b.completions.poll()
    assert [each["immediate"] for each in arrived] == list(range(len(sizes)))
    assert [each["length_bytes"] for each in arrived] == sizes
    assert pair.b.queue_pair.stats()["data_bytes_received"] == sum(sizes)
    stats = pair.a.queue_pair.stats()
    assert stats["in_flight_bytes"] == stats["outstanding_requests"] == 0


def test_every_packet_says_where_it_goes_and_answers_name_it() -> None:
    pair = wired_pair(**SELECTIVE)
    data, answers = [], []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        headers, payload = parse_packet(frame)
        (data if sender == "a" else answers).append((headers, len(payload)))
        return [frame] if sender == "b" or headers["bth"]["psn"] != 1 or len(data) > 5 else []

    post(pair, [4 * MTU + 10])
    pair.run(wire, done(pair, 1))
    first = [headers for headers, _ in data[:5]]
    assert [each["bth"]["opcode"] for each in first] == [0x0A, 0x0A, 0x0A, 0x0A, 0x0B]
    assert [each["reth"]["virtual_address"] - (1 << 40) for each in first] == [MTU * i for i in range(5)]
    assert [each["reth"]["length_bytes"] for each in first] == [MTU] * 4 + [10]
    assert [each["bth"]["solicited"] for each in first] == [False] * 4 + [True]
    naks = [each for each, _ in answers if each["aeth"]["syndrome"] == 0x60]
    assert {each["bth"]["psn"] for each in naks} == {1}
    assert [each["aeth"]["msn"] for each in naks] == [2, 3, 4]
    assert [headers["bth"]["psn"] for headers, _ in data[5:]] == [1]


def test_spraying_arrives_exactly_over_links_that_reorder() -> None:
    faults = {"delay_probability": 0.3, "extra_delay_ps": 2 * US}
    pair = cabled_pair(
        faults=faults,
        **SELECTIVE,
        path_choice=spray(3, 1 << 14),
        reordering_window_ps=5 * US,
        retransmission_timeout_ps=99 * US,
    )
    source = random_bytes(300_000)
    target = np.zeros_like(source)
    pair.a.queue_pair.post_write(pair.a.register(source), 0, len(source), 0, pair.b.register(target).rkey, immediate=7)
    pair.engine.run()
    assert np.array_equal(source, target)
    assert pair.b.queue_pair.stats()["out_of_sequence_packets"] > 100
    assert pair.a.queue_pair.stats()["retransmitted_packets"] == 0
    [arrived] = pair.b.completions.poll()
    assert (arrived["immediate"], arrived["length_bytes"]) == (7, len(source))


def test_a_packet_far_ahead_of_a_gap_is_dropped_and_counted() -> None:
    pair = wired_pair(**SELECTIVE)
    rkey = pair.b.nic.register_sink(10).rkey

    def write_of(psn: int) -> bytes:
        headers: RoceHeaders = {
            "source_mac": pair.a.mac,
            "destination_mac": pair.b.mac,
            "source_ip": pair.a.ip(4),
            "destination_ip": pair.b.ip(4),
            "bth": {"opcode": 0x0A, "destination_qp": 0x102, "psn": psn},
            "reth": {"virtual_address": 0, "rkey": rkey, "length_bytes": 4},
        }
        return build_packet(headers, b"abcd")

    for psn in (1 << 16, (1 << 16) - 1, 1):
        pair.engine.inject(pair.b.nic, 0, write_of(psn))
    pair.step(ideal_wire)
    stats = pair.b.queue_pair.stats()
    assert (stats["out_of_window_packets"], stats["out_of_sequence_packets"]) == (1, 2)
    assert stats["sequence_naks_sent"] == 2


def test_what_selective_repeat_does_not_do_is_refused() -> None:
    pair = wired_pair(**SELECTIVE)
    with pytest.raises(ValueError, match="no SENDs"):
        pair.a.queue_pair.post_send(None, 0, 10)
    with pytest.raises(ValueError, match="receive_for_immediate"):
        wired_pair(**SELECTIVE, receive_for_immediate=True)
    with pytest.raises(ValueError, match="retransmission is 'never'"):
        wired_pair(retransmission="never")


def test_a_wrong_key_fails_the_queue_pair_with_selective_repeat_too() -> None:
    pair = wired_pair(**SELECTIVE)
    pair.a.queue_pair.post_write(None, 0, 3 * MTU, 0, 0xBAD)
    seen: list[str] = []
    pair.run(ideal_wire, lambda: bool(seen.extend(c["status"] for c in pair.a.completions.poll()) or seen))
    assert seen == ["remote_access_error"]


def test_paths_follow_from_the_seed() -> None:
    def ports(choice: Any, times: list[int]) -> list[int]:
        return [choice.entropy(now, index) for index, now in enumerate(times)]

    quick = [US * index for index in range(200)]
    assert ports(spray(5, 1 << 14), quick) == ports(spray(5, 1 << 14), quick) != ports(spray(6, 1 << 14), quick)
    assert len(set(ports(spray(5, 1 << 14), quick))) > 190
    assert len(set(ports(spray(5, 8), quick))) == 8
    assert len(set(ports(flowlet(5, 2 * US), quick))) == 1
    paused = [now + 10 * US * (index // 50) for index, now in enumerate(quick)]
    assert len(set(ports(flowlet(5, 2 * US), paused))) == 4
    with pytest.raises(ValueError, match="paths is 0"):
        spray(1, 0)
    with pytest.raises(ValueError, match="gap_ps is 0"):
        flowlet(1, 0)
