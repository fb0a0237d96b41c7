"""Queue pairs of UET: whatever the wire does, each byte arrives once; PDCs open, close and run out."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import (
    MS,
    PATIENT,
    US,
    WiredPair,
    cabled_pair,
    fixed_window,
    ideal_wire,
    path_choice,
    random_bytes,
    wired_pair,
)
from tests.transport.test_selective_repeat import done, post
from weft.engine import CompletionQueue, Engine, Link, Nic, TransmitPort, UetQueuePair, _core, parse_uet
from weft.wire.code_points import DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP

MTU = 256
UET: dict[str, Any] = {
    "uet_options": {"pdc_idle_ps": 30 * US},
    "path_mtu_bytes": MTU,
    "retransmission_timeout_ps": 50 * US,
    "reordering_window_ps": 3 * US,
}
ROD: dict[str, Any] = {**UET, "uet_options": {"service": "rod", "pdc_idle_ps": 30 * US}, "reordering_window_ps": 0}
CREDITS: dict[str, Any] = {
    **UET,
    "uet_options": {"pdc_idle_ps": 30 * US, "receiver_credits": True, "advance_bytes": 400},
}
SERVICES = pytest.mark.parametrize("options", [UET, ROD, CREDITS], ids=["rud", "rod", "rccc"])
UDP_AT = 14 + 40
REQUEST_TYPES = (2, 3, 4, 6, 13)


def headers_of(frame: bytes) -> list[dict[str, Any]]:
    return [{"name": name, **fields} for name, fields in parse_uet(frame[UDP_AT + 8 :])[0]]


def type_of(frame: bytes) -> int:
    return frame[UDP_AT + 8] >> 3


def with_dscp(frame: bytes, dscp: int) -> bytes:
    """Return the frame, over IPv6, with another code point."""
    first = (6 << 12 | dscp << 6 | (frame[14] << 8 | frame[15]) & 0x3F).to_bytes(2)
    return frame[:14] + first + frame[16:]


def trimmed(frame: bytes, dscp: int = DSCP_TRIMMED) -> bytes:
    """Return what a switch leaves of a request, or of RUDI's data of a READ, over IPv6 that it trims."""
    headers = {4: 8 + 44, 5: 8 + 20, 6: 4 + 44, 13: 16 + 44}.get(type_of(frame), 12 + 44)
    return with_dscp(frame, dscp)[: UDP_AT + 8 + headers]


def is_rudi_data(frame: bytes) -> bool:
    """Return whether it is RUDI's answer with data of a READ, over IPv6."""
    at = UDP_AT + 8
    return type_of(frame) == 5 and int.from_bytes(frame[at : at + 2], "big") >> 7 & 15 == 5


def marked(frame: bytes) -> bytes:
    """Return the frame, over IPv6, with congestion experienced."""
    return frame[:15] + bytes([frame[15] | 0x30]) + frame[16:]


class Wire:
    """Does this to the first frames, and delivers all others: two ways with one list."""

    def __init__(self, actions: Iterable[str]) -> None:
        self._left = list(actions)
        self._held: dict[str, list[bytes]] = {"a": [], "b": []}

    def __call__(self, sender: str, frame: bytes) -> list[bytes]:
        action = self._left.pop(0) if self._left else "deliver"
        if action == "drop":
            return []
        if action == "trim" and (type_of(frame) in REQUEST_TYPES or is_rudi_data(frame)):
            return [trimmed(frame)]
        if action == "mark":
            return [marked(frame)]
        if action == "hold":
            self._held[sender].append(frame)
            return []
        late, self._held[sender] = self._held[sender], []
        return [frame, *late, *([frame] if action == "duplicate" else [])]


def arrives_once_and_in_order(pair: WiredPair, wire: Wire, sizes: list[int]) -> None:
    """Send messages of these sizes, and check what both ends then have."""
    source, target = post(pair, sizes)
    pair.run(wire, done(pair, len(sizes)))
    assert np.array_equal(source, target)
    arrived = pair.b.completions.poll()
    assert [each["immediate"] for each in arrived] == list(range(len(sizes)))
    assert [each["length_bytes"] for each in arrived] == sizes
    assert pair.b.queue_pair.stats()["data_bytes_received"] == sum(sizes)
    stats = pair.a.queue_pair.stats()
    assert stats["in_flight_bytes"] == stats["outstanding_requests"] == 0


def is_closed(pair: WiredPair) -> bool:
    return pair.a.queue_pair.pdc_state == "closed" and not pair.b.queue_pair.has_target_pdc


ACTIONS = ("deliver", "drop", "duplicate", "hold", "trim")


@SERVICES
@pytest.mark.parametrize("length", [4, pytest.param(6, marks=pytest.mark.slow)])
def test_every_fate_of_the_first_frames_ends_well(length: int, options: dict[str, Any]) -> None:
    """Requests, ACKs, NACKs and control packets alike; the next ones are sent by what became of these."""
    for actions in product(ACTIONS, repeat=length):
        arrives_once_and_in_order(wired_pair(**options, version=6, **PATIENT), Wire(actions), [2 * MTU, 1])


@SERVICES
@pytest.mark.parametrize("length", [4, pytest.param(6, marks=pytest.mark.slow)])
def test_every_fate_of_a_closing_pdc_ends_well(length: int, options: dict[str, Any]) -> None:
    """From the moment that it is idle on; the next message goes over another one."""
    for actions in product(("deliver", "drop", "duplicate", "hold"), repeat=length):
        pair = wired_pair(**options, version=6, **PATIENT)
        arrives_once_and_in_order(pair, Wire([]), [MTU])
        wire = Wire(actions)
        pair.run(wire, lambda pair=pair: is_closed(pair))  # type: ignore[misc]
        arrives_once_and_in_order_again(pair, wire)


def arrives_once_and_in_order_again(pair: WiredPair, wire: Wire) -> None:
    """Send a second message over a pair that has sent one, on the wire with what is left of it."""
    source, target = post(pair, [3 * MTU])
    pair.run(wire, done(pair, 1))
    assert np.array_equal(source, target)
    assert [each["length_bytes"] for each in pair.b.completions.poll()] == [3 * MTU]
    assert pair.a.queue_pair.uet_stats()["pdcs_opened"] == pair.b.queue_pair.uet_stats()["pdcs_accepted"] == 2


GIVES_UP_EARLY: dict[str, Any] = {"retry_limit": 0, "timeout_backoff_limit": 0}
"""For a target: after 130 us of silence."""


def given_up_pair(options: dict[str, Any], lost_acks: int) -> tuple[WiredPair, Any, Any]:
    """Return a pair whose target has given up a PDC in the middle of messages, and source and destination of these.

    Of its answers only the first ones, so many, arrived, and each third request was lost."""
    pair = wired_pair(**options, **GIVES_UP_EARLY, version=6, sender=PATIENT, window_bytes=4 * MTU)
    seen = {"a": 0, "b": 0}

    def wire(sender: str, frame: bytes) -> list[bytes]:
        seen[sender] += sender == "b" or type_of(frame) in REQUEST_TYPES
        if pair.b.queue_pair.stats()["data_packets_received"] >= 6:
            return []
        lost = seen["b"] > lost_acks if sender == "b" else seen["a"] % 3 == 0
        return [] if lost else [frame]

    source, target = post(pair, [7 * MTU, 4 * MTU, 1])
    pair.run(wire, lambda: pair.b.queue_pair.uet_stats()["pdcs_given_up"] == 1)
    assert not pair.b.queue_pair.has_target_pdc
    return pair, source, target


@SERVICES
@pytest.mark.parametrize("lost_acks", [1, 4])
@pytest.mark.parametrize("length", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_every_fate_of_a_pdc_that_its_target_has_given_up_ends_well(
    length: int, lost_acks: int, options: dict[str, Any]
) -> None:
    """The initiator was there after all: it opens another PDC, and nothing arrives twice."""
    for actions in product(ACTIONS, repeat=length):
        pair, source, target = given_up_pair(options, lost_acks)
        pair.run(Wire(actions), done(pair, 3))
        assert np.array_equal(source, target)
        assert [each["immediate"] for each in pair.b.completions.poll()] == [0, 1, 2]
        assert pair.b.queue_pair.stats()["data_bytes_received"] == 11 * MTU + 1
        assert pair.a.queue_pair.uet_stats()["pdcs_reopened"] == 1
        assert pair.a.queue_pair.stats()["in_flight_bytes"] == 0
        pair.run(Wire([]), lambda pair=pair: is_closed(pair))  # type: ignore[misc]


@SERVICES
def test_a_close_command_reaches_a_target_that_has_given_the_pdc_up(options: dict[str, Any]) -> None:
    pair = wired_pair(**options, **GIVES_UP_EARLY, version=6, sender=PATIENT)
    arrives_once_and_in_order(pair, Wire([]), [MTU])
    pair.run(lambda _sender, _frame: [], lambda: pair.b.queue_pair.uet_stats()["pdcs_given_up"] == 1)
    assert pair.a.queue_pair.pdc_state == "closing"
    arrives_once_and_in_order_again(pair, Wire([]))
    assert pair.a.queue_pair.uet_stats()["pdcs_closed"] == 1


@SERVICES
@given(
    actions=st.lists(
        st.sampled_from(["deliver", "deliver", "deliver", "drop", "duplicate", "hold", "trim", "mark"]), max_size=80
    ),
    sizes=st.lists(st.integers(0, 5 * MTU), min_size=1, max_size=8),
    psn=st.sampled_from([0, 0xFFFFFD]),
    ack_interval=st.sampled_from([1, 3]),
)
@settings(max_examples=100, deadline=None)
def test_whatever_the_wire_does_all_arrives_once_and_in_order(
    options: dict[str, Any], actions: list[str], sizes: list[int], psn: int, ack_interval: int
) -> None:
    pair = wired_pair(**options, version=6, initial_psn=psn, **PATIENT, ack_interval_packets=ack_interval)
    arrives_once_and_in_order(pair, Wire(actions), sizes)


@SERVICES
@pytest.mark.parametrize("version", [4, 6])
def test_faults_of_a_link_cost_time_and_nothing_else(version: int, options: dict[str, Any]) -> None:
    faults = {"loss": 0.01, "duplicate": 0.01, "delay_probability": 0.02, "extra_delay_ps": 5 * US}
    pair = cabled_pair(**options, **PATIENT, version=version, faults=faults, window_bytes=64 * 1024)
    sources = {}
    for one, other in ((pair.a, pair.b), (pair.b, pair.a)):
        source = random_bytes(300_000, one.index)
        target = np.zeros_like(source)
        rkey = other.register(target).rkey
        one.queue_pair.post_write(one.register(source), 0, len(source), 0, rkey, immediate=1, work_id=1)
        sources[one.index] = source, target
    pair.engine.run_for(50 * MS)
    for source, target in sources.values():
        assert np.array_equal(source, target)
    stats = pair.a.queue_pair.stats()
    assert stats["outstanding_requests"] == 0
    assert stats["retransmitted_packets"] > 0
    assert pair.a.queue_pair.pdc_state == "closed"


def test_data_comes_with_syn_until_the_target_has_answered() -> None:
    """Only psn_offset says where the PDC began."""
    pair = wired_pair(**UET, version=6, window_bytes=8 * MTU)
    seen = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        seen.append((sender, headers_of(frame)))
        return [frame]

    post(pair, [20 * MTU])
    pair.run(wire, done(pair, 1))
    requests = [headers for sender, headers in seen if sender == "a"]
    names = [headers[0]["name"] for headers in requests]
    syns = names.count("UETSynRequest")
    assert 1 <= syns < 20
    assert names == ["UETSynRequest"] * syns + ["UETRequest"] * (20 - syns)
    assert [headers[0]["psn_offset"] for headers in requests[:syns]] == list(range(syns))
    answers = [headers for sender, headers in seen if sender == "b"]
    assert {headers[0]["dpdcid"] for headers in answers} == {requests[0][0]["spdcid"]}
    assert {headers[0]["dpdcid"] for headers in requests[syns:]} == {answers[0][0]["spdcid"]}
    assert [headers[1]["name"] for headers in requests] == ["UETStandard"] + ["UETContinuation"] * 19
    assert requests[-1][1]["eom"]
    # Nothing of what is acknowledged needs a response kept for it.
    assert all(headers[0]["clear_psn_offset"] < 0 for headers in requests)


@given(
    actions=st.lists(st.sampled_from(["deliver", "deliver", "drop", "duplicate", "hold"]), max_size=80),
    packets=st.integers(1, 150),
)
@settings(max_examples=60, deadline=None)
def test_an_ack_claims_what_has_arrived_and_the_packet_that_it_answers(actions: list[str], packets: int) -> None:
    pair = wired_pair(**UET, version=6, initial_psn=0xFFFFF0, **PATIENT)
    wire = Wire(actions)
    arrived: set[int] = set()

    def watched(sender: str, frame: bytes) -> list[bytes]:
        delivered = wire(sender, frame)
        if sender == "a":
            arrived.update(headers_of(each)[0]["psn"] for each in delivered if type_of(each) in REQUEST_TYPES)
            return delivered
        ack, extension = headers_of(frame)[:2]
        if ack["name"] != "UETAck":
            return delivered
        cack = ack["cack_psn"]
        first = cack + extension["sack_psn_offset"]
        claimed = {first + bit for bit in range(64) if extension["sack_bitmap"] >> bit & 1}
        assert claimed | set(range(0xFFFFF0, cack + 1)) <= arrived
        assert first > cack
        if not ack["probe"]:
            answered = cack + ack["ack_psn_offset"]
            assert answered <= cack or answered in claimed
        return delivered

    source, target = post(pair, [packets * MTU])
    pair.run(watched, done(pair, 1))
    assert np.array_equal(source, target)


@pytest.mark.parametrize(("dscp", "code"), [(DSCP_TRIMMED, 1), (DSCP_TRIMMED_LASTHOP, 2)])
def test_a_trimmed_packet_is_sent_again_at_once(dscp: int, code: int) -> None:
    pair = wired_pair(**UET, version=6, path_choice=path_choice("spray", 1))
    codes = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        header = headers_of(frame)[0]
        if header["name"] == "UETNack":
            codes.append(header["nack_code"])
        first = sender == "a" and type_of(frame) in REQUEST_TYPES and not header["retx"]
        return [trimmed(frame, dscp)] if first and not codes else [frame]

    source, target = post(pair, [MTU])
    pair.run(wire, done(pair, 1))
    assert np.array_equal(source, target)
    assert codes == [code]
    stats = pair.a.queue_pair.stats() | pair.a.queue_pair.uet_stats()
    assert stats["trim_nacks_received"] == stats["retransmitted_packets"] == 1
    assert stats["timeouts"] == stats["probes_sent"] == 0


CLOSE, PROBE = 4, 6
"""`ctl_type` of control packets."""


def kind_of(sender: str, frame: bytes) -> str:
    """Name what a frame does: one of a request, a command or a probe, or its answer."""
    header = headers_of(frame)[0]
    if header["name"] == "UETControl":
        return {CLOSE: "close", PROBE: "probe"}.get(header["ctl_type"], "control")
    if header["name"] == "UETAck" and header["probe"]:
        return "answer"
    return "request" if type_of(frame) in REQUEST_TYPES else f"ack of {sender}"


class Losing:
    """Loses the first frames of each of these kinds, so many, and counts all frames by kind."""

    def __init__(self, **losses: int) -> None:
        self._left = losses
        self.seen: dict[str, int] = {}

    def __call__(self, sender: str, frame: bytes) -> list[bytes]:
        kind = kind_of(sender, frame)
        self.seen[kind] = self.seen.get(kind, 0) + 1
        left = self._left.get(kind.split()[0], 0)
        self._left[kind.split()[0]] = left - 1
        return [] if left > 0 else [frame]


SLOW_TO_TIME_OUT: dict[str, Any] = {"retransmission_timeout_ps": MS}
"""400 times the round trip of `WiredPair`: whatever ends much sooner has not waited for it."""


@SERVICES
@pytest.mark.parametrize("losses", [{}, {"probe": 1}, {"probe": 3}, {"answer": 2}], ids=str)
def test_a_lost_last_packet_is_asked_for_until_an_answer_comes(losses: dict[str, int], options: dict[str, Any]) -> None:
    """The PDC is open; each two round trips without news there is another probe."""
    pair = wired_pair(**options | SLOW_TO_TIME_OUT, version=6)
    arrives_once_and_in_order(pair, Wire([]), [MTU])
    wire = Losing(request=1, **losses)
    source, target = post(pair, [MTU])
    pair.run(wire, done(pair, 1), limit_steps=100)
    assert np.array_equal(source, target)
    assert wire.seen["request"] == 2
    assert wire.seen["probe"] >= sum(losses.values()) + 1
    assert pair.a.queue_pair.stats()["timeouts"] == 0
    assert pair.a.queue_pair.uet_stats()["pdcs_opened"] == 1


@SERVICES
@pytest.mark.parametrize("losses", [{"request": 1}, {"request": 2}, {"ack": 1}, {"request": 1, "ack": 1}], ids=str)
@pytest.mark.parametrize("is_first", [True, False])
def test_what_opens_a_pdc_is_repeated_before_the_timeout(
    is_first: bool, losses: dict[str, int], options: dict[str, Any]
) -> None:
    """Its target cannot be asked, for want of an identifier. With the first PDC no round trip is known."""
    pair = wired_pair(**options | SLOW_TO_TIME_OUT, version=6)
    if not is_first:
        arrives_once_and_in_order(pair, Wire([]), [MTU])
        pair.run(Wire([]), lambda: is_closed(pair))
    wire = Losing(**losses)
    source, target = post(pair, [MTU])
    pair.run(wire, done(pair, 1), limit_steps=900 if is_first else 60)
    assert np.array_equal(source, target)
    assert wire.seen["request"] == sum(losses.values()) + 1
    assert "probe" not in wire.seen
    assert pair.a.queue_pair.stats()["timeouts"] == 0
    assert pair.a.queue_pair.uet_stats()["pdcs_opened"] == 1 + (not is_first)
    assert pair.b.queue_pair.stats()["data_bytes_received"] == MTU * (1 + (not is_first))


@SERVICES
def test_of_many_packets_that_open_a_pdc_and_are_lost_the_oldest_is_repeated(options: dict[str, Any]) -> None:
    """The others are found by its answer, and by a probe."""
    pair = wired_pair(**options | SLOW_TO_TIME_OUT, version=6)
    arrives_once_and_in_order(pair, Wire([]), [MTU])
    pair.run(Wire([]), lambda: is_closed(pair))
    count = 1 if "receiver_credits" in options["uet_options"] else 4
    wire = Losing(request=count)
    source, target = post(pair, [6 * MTU])
    pair.run(wire, done(pair, 1), limit_steps=200)
    assert np.array_equal(source, target)
    assert pair.a.queue_pair.stats()["timeouts"] == 0


@SERVICES
@pytest.mark.parametrize("losses", [{"close": 1}, {"close": 2}, {"ack": 1}, {"close": 1, "ack": 1}], ids=str)
def test_what_closes_a_pdc_is_repeated_before_the_timeout(losses: dict[str, int], options: dict[str, Any]) -> None:
    """A target that has closed it answers no probe, but the command. What is posted meanwhile does not wait."""
    pair = wired_pair(**options | SLOW_TO_TIME_OUT, version=6)
    arrives_once_and_in_order(pair, Wire([]), [MTU])
    wire = Losing(**losses)
    pair.run(wire, lambda: pair.a.queue_pair.pdc_state == "closing", limit_steps=60)
    source, target = post(pair, [MTU])
    pair.run(wire, done(pair, 1), limit_steps=60)
    assert np.array_equal(source, target)
    assert wire.seen["close"] == sum(losses.values()) + 1
    assert "probe" not in wire.seen
    assert pair.a.queue_pair.stats()["timeouts"] == 0
    assert pair.a.queue_pair.uet_stats()["pdcs_closed"] == 1


@SERVICES
@pytest.mark.parametrize("state", ["syn", "established", "closing"])
def test_questions_do_not_keep_a_silent_peer_alive(state: str, options: dict[str, Any]) -> None:
    """The connection fails after the timeouts of `retry_limit`, however often the initiator has asked."""
    timeout_us = 200
    pair = wired_pair(**options | {"retransmission_timeout_ps": timeout_us * US, "retry_limit": 2}, version=6)
    arrives_once_and_in_order(pair, Wire([]), [MTU])
    if state == "syn":
        pair.run(Wire([]), lambda: is_closed(pair))
    elif state == "closing":
        pair.run(Wire([]), lambda: pair.a.queue_pair.pdc_state == state)
    pair.a.queue_pair.post_write(None, 0, MTU, 0, 1, work_id=7)
    wire = Losing(request=1 << 20, close=1 << 20, probe=1 << 20)
    pair.run(wire, lambda: pair.a.queue_pair.stats()["error"] != "success", limit_steps=(1 + 2 + 4) * timeout_us + 40)
    assert pair.a.queue_pair.stats()["error"] == "retry_exceeded"
    assert pair.a.queue_pair.stats()["timeouts"] == 3
    repeated = {"syn": "request", "established": "probe", "closing": "close"}[state]
    assert wire.seen[repeated] > 3 * 2


class Slow:
    """Delivers what `sender` sends so much later."""

    def __init__(self, pair: WiredPair, sender: str, delay_us: int) -> None:
        self._pair, self._sender, self._delay_ps = pair, sender, delay_us * US
        self._held: list[tuple[int, bytes]] = []

    def __call__(self, sender: str, frame: bytes) -> list[bytes]:
        if sender != self._sender:
            return [frame]
        self._held.append((self._pair.engine.now_ps + self._delay_ps, frame))
        return []

    def deliver_due(self) -> None:
        """To be called after every step."""
        now = self._pair.engine.now_ps
        for due_ps, frame in self._held:
            if due_ps <= now:
                self._pair.engine.inject(self._pair.a.nic if self._sender == "b" else self._pair.b.nic, 0, frame)
        self._held = [each for each in self._held if each[0] > now]


@SERVICES
def test_a_round_trip_that_has_grown_is_seen_although_packets_are_repeated(options: dict[str, Any]) -> None:
    """The answer to a packet that was sent twice tells no round trip, so repetitions become rarer until one does."""
    pair = wired_pair(**options | SLOW_TO_TIME_OUT, version=6)
    arrives_once_and_in_order(pair, Wire([]), [MTU])
    pair.run(Wire([]), lambda: is_closed(pair))
    slow = Slow(pair, "b", 40)
    repeated: list[int] = []
    for number in range(8):
        before = pair.a.queue_pair.stats()["retransmitted_packets"]
        source, target = post(pair, [MTU])
        for _ in range(400):
            pair.step(slow)
            slow.deliver_due()
            if is_closed(pair) and pair.a.queue_pair.stats()["outstanding_requests"] == 0:
                break
        assert np.array_equal(source, target), number
        repeated.append(pair.a.queue_pair.stats()["retransmitted_packets"] - before)
    assert repeated[0] > 0
    assert repeated[-2:] == [0, 0]
    assert pair.a.queue_pair.stats()["timeouts"] == 0


def test_a_silent_peer_ends_the_connection() -> None:
    pair = wired_pair(**UET, version=6, retry_limit=2)
    pair.a.queue_pair.post_write(None, 0, MTU, 0, 1, work_id=7)
    pair.run(lambda _sender, _frame: [], lambda: pair.a.queue_pair.stats()["error"] != "success")
    assert [(each["work_id"], each["status"]) for each in pair.a.completions.poll()] == [(7, "retry_exceeded")]
    assert pair.a.queue_pair.pdc_state == "closed"


def test_memory_that_is_not_the_peer_s_is_refused() -> None:
    """By a response, which the initiator then clears; both ends have failed."""
    pair = wired_pair(**UET, version=6)
    rkey = pair.b.register(np.zeros(MTU, np.uint8)).rkey
    pair.a.queue_pair.post_write(None, 0, MTU + 1, 0, rkey, work_id=1)
    pair.a.queue_pair.post_write(None, 0, MTU, 0, rkey, work_id=2)
    responses, commands = [], []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        headers = headers_of(frame)
        responses.extend(each["return_code"] for each in headers if each["name"] == "UETResponse")
        commands.extend(each["ctl_type"] for each in headers if each["name"] == "UETControl")
        return [frame]

    pair.run(wire, lambda: pair.a.queue_pair.stats()["outstanding_requests"] == 0)
    pair.step(wire)
    assert [each["status"] for each in pair.a.completions.poll()] == ["remote_access_error", "flushed"]
    assert pair.b.queue_pair.stats()["responder_error"] == "remote_access_error"
    assert responses[-1] == 23
    assert commands == [2]


def test_a_packet_of_the_past_opens_no_pdc() -> None:
    """Whoever sends an old request with syn again gets an ACK, and the message is not delivered again."""
    pair = wired_pair(**UET, version=6)
    kept = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        if sender == "a" and not kept:
            kept.append(frame)
        return [frame]

    post(pair, [MTU])
    pair.run(wire, done(pair, 1))
    pair.run(wire, lambda: is_closed(pair))
    pair.b.completions.poll()
    pair.engine.inject(pair.b.nic, 0, kept[0])
    for _ in range(10):
        pair.step(wire)
    assert not pair.b.queue_pair.has_target_pdc
    assert pair.b.completions.poll() == []
    assert pair.b.queue_pair.uet_stats()["pdcs_accepted"] == 1
    assert pair.a.queue_pair.uet_stats()["late_packets"] == 1


def many_to_one(
    senders: int, both: dict[str, Any] | None = None, **uet_options: Any
) -> tuple[Engine, list[Any], list[Any], int]:
    """Return queue pairs of one host, their peers at another host, and the key of that one's memory."""
    engine = Engine(seed=1)
    links = [Link(engine, name=name, delay_ps=US) for name in ("a-b", "b-a")]
    nics, ports, completions = [], [], CompletionQueue(engine)
    for index, link in enumerate(links, 1):
        nic = Nic(engine, f"h{index}")
        ports.append(TransmitPort(engine, link, rate_bps=10**11))
        nic.add_port(ports[-1], mac=f"02:00:00:00:00:0{index}", addresses=[f"10.0.0.{index}"])
        nics.append(nic)
    links[0].connect(nics[1], 0)
    links[1].connect(nics[0], 0)
    made: list[list[Any]] = [[], []]
    for number in range(senders):
        for side in (0, 1):
            made[side].append(
                UetQueuePair(
                    nics[side],
                    0,
                    completions,
                    queue_pair=0x100 + number,
                    remote_queue_pair=0x100 + number,
                    destination_mac=f"02:00:00:00:00:0{2 - side}",
                    destination_ip=f"10.0.0.{2 - side}",
                    congestion_control=fixed_window(),
                    retransmission_timeout_ps=50 * US,
                    uet_options={"pdc_idle_ps": 20 * US, **(both or {}), **(uet_options if side else {})},
                )
            )
    return engine, made[0], made[1], nics[1].register_sink(1 << 30).rkey


def test_a_host_holds_no_more_pdcs_than_it_may() -> None:
    """Its peer's requests are refused with NACKs and come again when another PDC has been closed."""
    engine, senders, receivers, _ = many_to_one(6, max_pdcs=2)
    for queue_pair in senders:
        queue_pair.post_write(None, 0, 0, 0, 1, work_id=1)
    most = 0
    for _ in range(1000):
        engine.run_for(US)
        most = max(most, sum(each.has_target_pdc for each in receivers))
    assert most == 2
    assert all(each.stats()["outstanding_requests"] == 0 for each in senders)
    assert sum(each.uet_stats()["pdc_nacks_received"] for each in senders) >= 4
    assert sum(each.uet_stats()["pdcs_accepted"] for each in receivers) == 6


def test_an_initiator_waits_for_a_pdc_of_its_own_nic() -> None:
    engine, senders, receivers, _ = many_to_one(4, max_pdcs=1)
    for queue_pair in receivers:  # whose NIC may have one as initiator, too
        queue_pair.post_write(None, 0, 0, 0, 1, work_id=1)
    engine.run_for(MS)
    assert all(each.stats()["outstanding_requests"] == 0 for each in receivers)
    assert sum(each.uet_stats()["pdc_waits"] for each in receivers) >= 3
    assert all(each.uet_stats()["pdcs_accepted"] == 1 for each in senders)


def test_an_initiator_sends_what_it_has_credit_for() -> None:
    """Cumulative credit, in ACKs and control packets, is never exceeded by more than the advance."""
    pair = wired_pair(**CREDITS, version=6, window_bytes=10**6)
    size = 40 * MTU
    sent, granted = 0, 0

    def wire(sender: str, frame: bytes) -> list[bytes]:
        nonlocal sent, granted
        for header in headers_of(frame):
            if header["name"] == "UETCreditState":
                granted = max(granted, header["credit"] * 256)
            if header["name"] == "UETControl" and header["ctl_type"] == 7:
                granted = max(granted, header["ctl_payload"] * 256)
            if header["name"] == "UETRequestCCState":
                sent += len(frame)
                assert sent <= granted + 400
                assert header["credit_target"] * 256 <= size * 2
        return [frame]

    source, target = post(pair, [size])
    pair.run(wire, done(pair, 1))
    assert np.array_equal(source, target)
    assert granted >= size
    stats = pair.a.queue_pair.uet_stats()
    assert stats["credits_received"] > 0
    assert stats["credit_waits"] > 0
    assert pair.a.queue_pair.stats()["timeouts"] == 0


def test_a_target_grants_all_initiators_alike() -> None:
    """Of one port, in turn, together at its rate."""
    credits = {"receiver_credits": True, "advance_bytes": 2000}
    engine, senders, receivers, rkey = many_to_one(4, both=credits)
    for queue_pair in senders:
        queue_pair.post_write_as_length(400_000, 0, rkey)
    engine.run_for(60 * US)
    received = [each.stats()["data_bytes_received"] for each in receivers]
    assert max(received) - min(received) <= 5 * 4096
    assert sum(received) > 0.7 * 60e-6 * 1e11 / 8


def test_a_silent_initiator_gets_no_more_credit_and_loses_its_pdc() -> None:
    engine, senders, receivers, rkey = many_to_one(2, both={"receiver_credits": True})
    for queue_pair in senders:
        queue_pair.post_write_as_length(1 << 30, 0, rkey)
    engine.run_for(200 * US)
    senders[0].flush()
    engine.run_for(200 * US)  # more than a retransmission timeout
    before = receivers[1].stats()["data_bytes_received"]
    engine.run_for(100 * US)
    received = receivers[1].stats()["data_bytes_received"] - before
    assert received > 0.9 * 100e-6 * 1e11 / 8
    assert receivers[0].has_target_pdc
    # Two times 8 timeouts of 50 us, which double 5 times, and 20 us.
    engine.run_for(2 * (63 + 2 * 32) * 50 * US + 20 * US)
    assert not receivers[0].has_target_pdc
    assert receivers[0].uet_stats()["pdcs_given_up"] == 1
    assert receivers[1].uet_stats()["pdcs_given_up"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"uet_options": {"service": "udp"}}, "service is 'udp' .valid: 'rud', 'rod', 'rudi', 'uud'"),
        ({"uet_options": {"max_pdcs": 0}}, "max_pdcs is 0 .valid: 1 to 32767"),
        ({"uet_options": {"pdc_idle_ps": 0}}, "pdc_idle_ps is 0 .valid: above 0"),
        ({"uet_options": {"data_dscp": 12}}, "data_dscp is 12"),
        ({"retransmission": "go-back-n"}, "go-back-n does not go with services rud, rudi and uud"),
        ({"uet_options": {"service": "rod"}, "retransmission": "selective-repeat"}, "does not go with service rod"),
        ({"telemetry": True}, "telemetry .INT. does not go with UET"),
        ({"segment_packets": 2}, "segment_packets above 1"),
    ],
)
def test_what_does_not_go_with_uet_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wired_pair(**{**UET, **options})


def over_ipv4(frame: bytes, headers: list[tuple[str, dict[str, Any]]]) -> bytes:
    """Return a frame that goes where this one goes, with other headers of UET; UDP has no checksum."""
    datagram = _core.build_uet(headers)
    address = bytearray(frame[14:34])
    address[2:4] = (28 + len(datagram)).to_bytes(2)
    address[10:12] = bytes(2)
    total = sum(int.from_bytes(address[at : at + 2]) for at in range(0, 20, 2))
    total = (total & 0xFFFF) + (total >> 16)
    address[10:12] = (~((total & 0xFFFF) + (total >> 16)) & 0xFFFF).to_bytes(2)
    return frame[:14] + address + frame[34:38] + (8 + len(datagram)).to_bytes(2) + bytes(2) + datagram


def test_acks_that_contradict_the_order_of_rod_stop_nothing() -> None:
    pair = wired_pair(**ROD)
    source, target = post(pair, [8 * MTU])
    answers: list[bytes] = []

    def silent(sender: str, frame: bytes) -> list[bytes]:
        answers.extend([frame] if sender == "b" else [])
        return [frame] if sender == "a" else []

    for _ in range(6):
        pair.step(silent)
    real = answers[-1]
    found: list[tuple[str, dict[str, Any]]] = [(name, dict(fields)) for name, fields in parse_uet(real[42:])[0]]
    ack = found[0][1]
    assert ack["cack_psn"] == 7
    ends = {"spdcid": ack["spdcid"], "dpdcid": ack["dpdcid"]}
    gap = ("UETNack", {"type": 10, "nack_code": 0x0D, "nack_psn": 0, **ends})
    all_at_once = [(name, dict(fields)) for name, fields in found]
    all_at_once[0][1].update(cack_psn=0xFFFFFFFF, ack_psn_offset=0)
    all_at_once[1][1].update(sack_psn_offset=1, sack_bitmap=0xFF)
    for frame in (over_ipv4(real, [gap]), over_ipv4(real, all_at_once), real):
        pair.engine.inject(pair.a.nic, 0, frame)
    pair.run(ideal_wire, done(pair, 1))
    region = pair.a.register(source)
    rkey = pair.b.register(target, virtual_address=1 << 40).rkey
    pair.a.queue_pair.post_write(region, 0, MTU, 1 << 40, rkey, work_id=1)
    pair.run(ideal_wire, done(pair, 1))


def test_malformed_packets_are_dropped_and_counted() -> None:
    """Whatever byte of a frame is wrong: UDP's checksum or the headers say so, and nothing arrives twice."""
    pair = wired_pair(**UET, version=6)
    frames = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        frames.append((sender, frame))
        return [frame]

    post(pair, [MTU + 1])
    pair.run(wire, done(pair, 1))
    received = pair.b.queue_pair.stats()["data_packets_received"]
    random = np.random.default_rng(5)
    for _ in range(300):
        sender, frame = frames[random.integers(len(frames))]
        bad = bytearray(frame)
        bad[random.integers(UDP_AT, len(bad))] ^= 1 << random.integers(8)
        cut = bytes(bad[: random.integers(UDP_AT, len(bad) + 1)])
        for damaged in (bytes(bad), cut, with_dscp(cut, DSCP_TRIMMED)):
            pair.engine.inject((pair.b if sender == "a" else pair.a).nic, 0, damaged)
        pair.step(ideal_wire)
    assert pair.b.queue_pair.stats()["data_packets_received"] == received
    assert pair.a.queue_pair.stats()["error"] == pair.b.queue_pair.stats()["error"] == "success"


@pytest.mark.parametrize(("messages", "size_bytes"), [(1, 2**31 - 1), (3, 2**30)])
def test_credit_is_asked_for_in_steps_that_its_counter_can_tell(messages: int, size_bytes: int) -> None:
    """The counter of credit wraps at 4 GiB: more than half of it ahead would look as if it were behind."""
    pair = cabled_pair(
        path_mtu_bytes=4096,
        uet_options={"receiver_credits": True},
        window_bytes=1 << 20,
        retransmission_timeout_ps=100 * US,
        reordering_window_ps=3 * US,
    )
    region = pair.b.nic.register_sink(size_bytes, virtual_address=1 << 40)
    for number in range(messages):
        pair.a.queue_pair.post_write_as_length(size_bytes, 1 << 40, region.rkey, immediate=number, work_id=number)
    pair.engine.run_for(1000 * US)
    assert pair.b.queue_pair.stats()["data_bytes_received"] > 10_000_000
