"""SENDs of UET: whatever the wire does, each one arrives once, whole, in one receive."""

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from tests.transport.rdma_pair import PATIENT, Bytes, WiredPair, ideal_wire, random_bytes, wired_pair
from tests.transport.test_selective_repeat import done
from tests.transport.test_uet_queue_pair import ACTIONS, MTU, ROD, SERVICES, UDP_AT, UET, Wire, headers_of
from weft.engine import build_uet

FATES = st.lists(
    st.sampled_from(["deliver", "deliver", "deliver", "drop", "duplicate", "hold", "trim", "mark"]), max_size=80
)


@dataclass
class Sends:
    """SENDs from a to b with their numbers as immediates, and receives for them, each as long as the longest."""

    pair: WiredPair
    sizes: list[int]
    messages: list[Bytes] = field(init=False)
    buffers: list[Bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.messages = [random_bytes(size, number) for number, size in enumerate(self.sizes)]

    def post_receives(self, count: int) -> None:
        for _ in range(count):
            buffer = np.zeros(max([*self.sizes, 1]), np.uint8)
            region = self.pair.b.register(buffer)
            self.pair.b.queue_pair.post_receive(region, 0, len(buffer), work_id=len(self.buffers))
            self.buffers.append(buffer)

    def post(self) -> None:
        for number, message in enumerate(self.messages):
            region = self.pair.a.register(message) if len(message) else None
            self.pair.a.queue_pair.post_send(region, 0, len(message), immediate=number, work_id=number)

    def all_arrived(self, *, in_order: bool) -> None:
        """Check what b's program sees."""
        arrived = self.pair.b.completions.poll()
        assert {(each["kind"], each["status"]) for each in arrived} == {("receive", "success")}
        numbers = [each["immediate"] for each in arrived]
        assert sorted(numbers) == list(range(len(self.sizes)))
        assert sorted(each["work_id"] for each in arrived) == list(range(len(self.sizes)))
        for each in arrived:
            message = self.messages[each["immediate"]]
            assert each["length_bytes"] == len(message)
            assert np.array_equal(self.buffers[each["work_id"]][: len(message)], message)
        if in_order:
            assert numbers == [each["work_id"] for each in arrived] == list(range(len(self.sizes)))


def sends_arrive_once(pair: WiredPair, wire: Wire, sizes: list[int], *, in_order: bool) -> None:
    sends = Sends(pair, sizes)
    sends.post_receives(len(sizes))
    sends.post()
    pair.run(wire, done(pair, len(sizes)))
    sends.all_arrived(in_order=in_order)
    assert pair.b.queue_pair.stats()["data_bytes_received"] == sum(sizes)
    stats = pair.a.queue_pair.stats()
    assert stats["in_flight_bytes"] == stats["outstanding_requests"] == stats["rnr_naks_received"] == 0


@SERVICES
@pytest.mark.parametrize("length", [4, pytest.param(6, marks=pytest.mark.slow)])
def test_every_fate_of_the_first_frames_of_sends_ends_well(length: int, options: dict[str, Any]) -> None:
    for actions in product(ACTIONS, repeat=length):
        pair = wired_pair(**options, version=6, **PATIENT)
        sends_arrive_once(pair, Wire(actions), [2 * MTU, 1], in_order=options is ROD)


@SERVICES
@given(
    actions=FATES,
    sizes=st.lists(st.integers(0, 5 * MTU), min_size=1, max_size=8),
    psn=st.sampled_from([0, 0xFFFFFD]),
    ack_interval=st.sampled_from([1, 3]),
)
@settings(max_examples=100, deadline=None)
def test_whatever_the_wire_does_sends_arrive_once(
    options: dict[str, Any], actions: list[str], sizes: list[int], psn: int, ack_interval: int
) -> None:
    pair = wired_pair(**options, version=6, initial_psn=psn, **PATIENT, ack_interval_packets=ack_interval)
    sends_arrive_once(pair, Wire(actions), sizes, in_order=options is ROD)


@SERVICES
@given(
    actions=FATES,
    sizes=st.lists(st.integers(0, 5 * MTU), min_size=1, max_size=6),
    posted=st.lists(st.integers(0, 120), min_size=6, max_size=6),
)
@settings(max_examples=60, deadline=None)
def test_sends_wait_for_receives(
    options: dict[str, Any], actions: list[str], sizes: list[int], posted: list[int]
) -> None:
    """The receiver's program posts them some microseconds later, one by one."""
    pair = wired_pair(**options, version=6, **PATIENT, rnr_timer_code=1)
    sends = Sends(pair, sizes)
    sends.post()
    wire, finished = Wire(actions), done(pair, len(sizes))
    for now in range(121):
        sends.post_receives(posted[: len(sizes)].count(now))
        pair.step(wire)
    pair.run(wire, finished)
    sends.all_arrived(in_order=options is ROD)


@SERVICES
def test_a_send_waits_for_its_receive_and_both_ends_count(options: dict[str, Any]) -> None:
    pair = wired_pair(**options, version=6, rnr_timer_code=1)
    sends = Sends(pair, [3 * MTU])
    sends.post()
    codes = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        codes.extend(each["nack_code"] for each in headers_of(frame) if each["name"] == "UETNack")
        return [frame]

    for _ in range(200):
        pair.step(wire)
    assert pair.a.queue_pair.stats()["outstanding_requests"] == 1
    sends.post_receives(1)
    pair.run(wire, done(pair, 1))
    sends.all_arrived(in_order=True)
    assert 0x09 in codes
    assert set(codes) <= {0x09, 0x0D}
    refused, told = (each.queue_pair.stats() for each in (pair.b, pair.a))
    assert refused["rnr_naks_sent"] == told["rnr_naks_received"] > 1


def test_a_send_fails_if_no_receive_comes_in_all_retries() -> None:
    for options in (UET, ROD):
        pair = wired_pair(**options, version=6, rnr_timer_code=1, rnr_retry_limit=2)
        pair.a.queue_pair.post_send(None, 0, 3 * MTU, work_id=4)
        pair.run(ideal_wire, lambda pair=pair: pair.a.queue_pair.stats()["error"] != "success")  # type: ignore[misc]
        assert [(each["work_id"], each["status"]) for each in pair.a.completions.poll()] == [(4, "rnr_retry_exceeded")]


@SERVICES
def test_a_send_longer_than_its_receive_is_refused(options: dict[str, Any]) -> None:
    """Both ends fail, as RC's do; the receive says what was wrong."""
    pair = wired_pair(**options, version=6)
    for work_id, size in enumerate((MTU, 2 * MTU, MTU)):
        pair.b.queue_pair.post_receive(None, 0, size, work_id=work_id)
    for work_id, size in enumerate((MTU, 2 * MTU + 1, 1)):
        pair.a.queue_pair.post_send(None, 0, size, work_id=work_id)
    codes = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        codes.extend(each["return_code"] for each in headers_of(frame) if each["name"] == "UETResponse")
        return [frame]

    pair.run(wire, lambda: pair.a.queue_pair.stats()["outstanding_requests"] == 0)
    assert codes[-1] == 34
    assert [each["status"] for each in pair.b.completions.poll()] == ["success", "local_length_error", "flushed"]
    assert [each["status"] for each in pair.a.completions.poll()][1:] == ["remote_invalid_request", "flushed"]
    assert pair.b.queue_pair.stats()["responder_error"] == "remote_invalid_request"


def test_receives_of_a_failed_queue_pair_are_flushed() -> None:
    pair = wired_pair(**UET, version=6)
    pair.b.queue_pair.post_receive(None, 0, 1, work_id=1)
    pair.b.queue_pair.flush()
    pair.b.queue_pair.post_receive(None, 0, 1, work_id=2)
    assert [(each["work_id"], each["status"]) for each in pair.b.completions.poll()] == [(1, "flushed"), (2, "flushed")]


@SERVICES
@given(actions=FATES, kinds=st.lists(st.sampled_from(["write", "send"]), min_size=2, max_size=8))
@settings(max_examples=60, deadline=None)
def test_writes_and_sends_mix(options: dict[str, Any], actions: list[str], kinds: list[str]) -> None:
    pair = wired_pair(**options, version=6, **PATIENT)
    target = np.zeros(len(kinds) * 2 * MTU, np.uint8)
    rkey, source = pair.b.register(target).rkey, random_bytes(len(kinds) * 2 * MTU)
    region, buffers = pair.a.register(source), {}
    for number, kind in enumerate(kinds):
        at, size = number * 2 * MTU, MTU + 1 + number
        if kind == "send":
            buffers[len(buffers)] = np.zeros(2 * MTU, np.uint8)
            pair.b.queue_pair.post_receive(
                pair.b.register(buffers[len(buffers) - 1]), 0, 2 * MTU, work_id=len(buffers) - 1
            )
            pair.a.queue_pair.post_send(region, at, size, immediate=number, work_id=number)
        else:
            pair.a.queue_pair.post_write(region, at, size, at, rkey, immediate=number, work_id=number)
    pair.run(Wire(actions), done(pair, len(kinds)))
    arrived = pair.b.completions.poll()
    assert sorted(each["immediate"] for each in arrived) == list(range(len(kinds)))
    for each in arrived:
        number, size = each["immediate"], each["length_bytes"]
        at = number * 2 * MTU
        there = buffers[each["work_id"]][:size] if each["kind"] == "receive" else target[at : at + size]
        assert each["kind"] == ("receive" if kinds[number] == "send" else "write_immediate")
        assert np.array_equal(there, source[at : at + size])


def rebuilt(frame: bytes, changes: dict[str, Any], payload: bytes | None = None) -> bytes:
    """Return a frame over IPv6 with other fields and the right checksum."""
    headers = [
        (each.pop("name"), {**each, **{name: value for name, value in changes.items() if name in each}})
        for each in headers_of(frame)
    ]
    end = UDP_AT + 8 + len(build_uet(headers, b""))
    packet = Ether(frame)
    body = build_uet(headers, frame[end:] if payload is None else payload)
    ip = IPv6(src=packet[IPv6].src, dst=packet[IPv6].dst, tc=packet[IPv6].tc, hlim=packet[IPv6].hlim)
    made = Ether(src=packet.src, dst=packet.dst) / ip / UDP(sport=packet[UDP].sport, dport=4793) / body
    return bytes(made)


def frames_of_sends(sizes: list[int]) -> list[bytes]:
    """Return the first frames that SENDs of these sizes make."""
    pair = wired_pair(**UET, version=6)
    frames: list[bytes] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        if sender == "a":
            frames.append(frame)
        return []

    for size in sizes:
        pair.a.queue_pair.post_send(None, 0, size)
    pair.run(wire, lambda: len(frames) >= sum(-(-size // MTU) for size in sizes))
    return frames


@pytest.mark.parametrize(
    ("first", "second", "changes"),
    [
        pytest.param(0, 1, {"request_length": 4 * MTU}, id="another length"),
        pytest.param(0, 1, {"message_id": 7}, id="another message"),
        pytest.param(2, 1, {"psn": 1, "message_offset": 2 * MTU}, id="before the first packet"),
        pytest.param(1, 3, {"psn": 2}, id="within another message"),
        pytest.param(3, 1, {"psn": 4, "message_offset": MTU}, id="begins with another's packet"),
        pytest.param(3, 2, {"message_offset": 1}, id="between packets"),
        pytest.param(0, 2, {"opcode": 7}, id="an operation that is not carried"),
    ],
)
def test_a_send_that_contradicts_itself_or_another_is_refused(first: int, second: int, changes: dict[str, Any]) -> None:
    """A peer cannot have messages arrive in each other's receives, nor keep receives for what will never be whole."""
    frames = frames_of_sends([3 * MTU, 3 * MTU])
    pair = wired_pair(**UET, version=6)
    for work_id in range(4):
        pair.b.queue_pair.post_receive(None, 0, 4 * MTU, work_id=work_id)
    for frame in (frames[first], rebuilt(frames[second], {**changes, "psn_offset": changes.get("psn", second)})):
        pair.engine.inject(pair.b.nic, 0, frame)
        pair.step(ideal_wire)
    assert pair.b.queue_pair.stats()["responder_error"] == "remote_invalid_request"
    assert [each["status"] for each in pair.b.completions.poll()] == ["flushed"] * 4


def test_partial_sends_take_no_more_than_the_receives() -> None:
    """However many messages a peer begins and leaves."""
    frames = frames_of_sends([3 * MTU])
    pair = wired_pair(**UET, version=6)
    for work_id in range(2):
        pair.b.queue_pair.post_receive(None, 0, 3 * MTU, work_id=work_id)
    for number in range(50):
        place = {"psn": 3 * number, "psn_offset": 3 * number, "message_id": number}
        pair.engine.inject(pair.b.nic, 0, rebuilt(frames[0], place))
        pair.step(ideal_wire)
    stats = pair.b.queue_pair.stats()
    assert stats["data_packets_received"] == 2
    assert stats["rnr_naks_sent"] == 48
    assert pair.b.completions.poll() == []
