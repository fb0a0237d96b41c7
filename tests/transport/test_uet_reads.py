"""READs of UET: whatever the wire does, all data arrive once, and nobody waits for ever."""

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
    Bytes,
    Host,
    WiredPair,
    cabled_pair,
    ideal_wire,
    random_bytes,
    wired_pair,
)
from tests.transport.test_selective_repeat import done
from tests.transport.test_uet_operations import FATES, Sends, rebuilt
from tests.transport.test_uet_queue_pair import (
    ACTIONS,
    MTU,
    ROD,
    SERVICES,
    SLOW_TO_TIME_OUT,
    UDP_AT,
    UET,
    Wire,
    headers_of,
    is_closed,
)
from weft.engine import MemoryRegion

BASE = 1 << 40
"""Address of the memory that is read."""


def readable(host: Host, data: Bytes) -> MemoryRegion:
    return host.nic.register_memory(data, virtual_address=BASE, remote_read=True)


def post_reads(pair: WiredPair, sizes: list[int], seed: int = 0) -> tuple[Bytes, Bytes]:
    """Have a read b's memory, in pieces of these sizes; return that memory and where it goes."""
    source = random_bytes(sum(sizes), seed)
    target = np.zeros_like(source)
    rkey = readable(pair.b, source).rkey if len(source) else 0
    region, offset = pair.a.register(target) if len(source) else None, 0
    for number, size in enumerate(sizes):
        pair.a.queue_pair.post_read(region if size else None, offset, size, BASE + offset, rkey, work_id=number)
        offset += size
    return source, target


def reads_arrive(pair: WiredPair, wire: Wire, sizes: list[int]) -> None:
    source, target = post_reads(pair, sizes)
    pair.run(wire, done(pair, len(sizes)))
    assert np.array_equal(source, target)
    assert pair.b.completions.poll() == []
    stats = pair.a.queue_pair.stats()
    assert stats["outstanding_requests"] == 0
    assert stats["data_bytes_received"] == sum(sizes)
    # The last acknowledgements may be lost; closing the PDC makes up for them.
    pair.run(wire, lambda: is_closed(pair))
    for host in (pair.a, pair.b):
        assert host.queue_pair.stats()["in_flight_bytes"] == 0
        assert host.queue_pair.stats()["error"] == "success"


@SERVICES
@pytest.mark.parametrize("length", [4, pytest.param(6, marks=pytest.mark.slow)])
def test_every_fate_of_the_first_frames_of_reads_ends_well(length: int, options: dict[str, Any]) -> None:
    """Requests, data, and what answers either."""
    for actions in product(ACTIONS, repeat=length):
        reads_arrive(wired_pair(**options, version=6, **PATIENT), Wire(actions), [2 * MTU, 1])


@SERVICES
@pytest.mark.parametrize("length", [4, pytest.param(6, marks=pytest.mark.slow)])
def test_every_fate_of_the_frames_after_the_data_ends_well(length: int, options: dict[str, Any]) -> None:
    """Acknowledgements of data and the closing of their PDC; the next READ goes over another one."""
    for actions in product(("deliver", "drop", "duplicate", "hold"), repeat=length):
        pair = wired_pair(**options, version=6, **PATIENT)
        source, target = post_reads(pair, [MTU])
        arrived = done(pair, 1)
        pair.run(Wire([]), arrived)
        assert np.array_equal(source, target)
        wire = Wire(actions)
        pair.run(wire, lambda pair=pair: is_closed(pair))  # type: ignore[misc]
        source, target = post_reads(pair, [3 * MTU], seed=1)
        pair.run(wire, done(pair, 1))
        assert np.array_equal(source, target)
        assert pair.a.queue_pair.uet_stats()["pdcs_opened"] == 2


@SERVICES
@given(
    actions=FATES,
    sizes=st.lists(st.integers(0, 5 * MTU), min_size=1, max_size=8),
    psn=st.sampled_from([0, 0xFFFFFD]),
    ack_interval=st.sampled_from([1, 3]),
    reads=st.sampled_from([1, 2, 16]),
)
@settings(max_examples=100, deadline=None)
def test_whatever_the_wire_does_reads_arrive(
    options: dict[str, Any], actions: list[str], sizes: list[int], psn: int, ack_interval: int, reads: int
) -> None:
    pair = wired_pair(
        **options,
        version=6,
        initial_psn=psn,
        **PATIENT,
        ack_interval_packets=ack_interval,
        max_outstanding_reads=reads,
    )
    reads_arrive(pair, Wire(actions), sizes)


@SERVICES
@given(actions=FATES, kinds=st.lists(st.sampled_from(["write", "send", "read"]), min_size=2, max_size=9))
@settings(max_examples=60, deadline=None)
def test_all_operations_mix_both_ways(options: dict[str, Any], actions: list[str], kinds: list[str]) -> None:
    """Each end posts them to the other; those of one end do not disturb the other's."""
    pair = wired_pair(**options, version=6, **PATIENT)
    slot, expected, memories = 2 * MTU, [], []
    for one, other in ((pair.a, pair.b), (pair.b, pair.a)):
        here, there = random_bytes(len(kinds) * slot, one.index), random_bytes(len(kinds) * slot, other.index + 7)
        memories.append((here, there))
        region, peer = one.register(here), readable(other, there)
        for number, kind in enumerate(kinds):
            at, size = number * slot, MTU + 1 + number
            if kind == "send":
                buffer = np.zeros(slot, np.uint8)
                other.queue_pair.post_receive(other.register(buffer), 0, slot, work_id=1000 + number)
                one.queue_pair.post_send(region, at, size, work_id=number)
                continue
            post = one.queue_pair.post_read if kind == "read" else one.queue_pair.post_write
            expected.append((len(memories) - 1, at, size, (there if kind == "read" else here)[at : at + size].copy()))
            post(region, at, size, BASE + at, peer.rkey, work_id=number)
    pair.run(Wire(actions), lambda: all(x.queue_pair.stats()["outstanding_requests"] == 0 for x in (pair.a, pair.b)))
    for host in (pair.a, pair.b):
        assert {each["status"] for each in host.completions.poll()} == {"success"}
    for which, at, size, data in expected:
        here, there = memories[which]
        assert np.array_equal(here[at : at + size], data)
        assert np.array_equal(there[at : at + size], data)


@SERVICES
@pytest.mark.parametrize("version", [4, 6])
def test_faults_of_a_link_cost_reads_time_and_nothing_else(version: int, options: dict[str, Any]) -> None:
    faults = {"loss": 0.01, "duplicate": 0.01, "delay_probability": 0.02, "extra_delay_ps": 5 * US}
    pair = cabled_pair(**options, **PATIENT, version=version, faults=faults, window_bytes=64 * 1024)
    found = []
    for one, other in ((pair.a, pair.b), (pair.b, pair.a)):
        source = random_bytes(300_000, one.index)
        target = np.zeros_like(source)
        rkey = readable(other, source).rkey
        one.queue_pair.post_read(one.register(target), 0, len(source), BASE, rkey)
        found.append((source, target))
    pair.engine.run_for(50 * MS)
    for source, target in found:
        assert np.array_equal(source, target)
    stats = pair.a.queue_pair.stats()
    assert stats["outstanding_requests"] == stats["in_flight_bytes"] == 0
    assert stats["retransmitted_packets"] > 0
    assert pair.a.queue_pair.pdc_state == "closed"


@SERVICES
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("lost", ["data", "ack"])
@pytest.mark.parametrize("is_first", [True, False])
def test_lost_data_of_a_read_are_repeated_before_the_timeout(
    is_first: bool, lost: str, times: int, options: dict[str, Any]
) -> None:
    """Their last packet, or its acknowledgement. With the first data the target knows no round trip."""
    pair = wired_pair(**options | SLOW_TO_TIME_OUT, version=6)
    if not is_first:
        reads_arrive(pair, Wire([]), [MTU])
    left = times

    def wire(sender: str, frame: bytes) -> list[bytes]:
        nonlocal left
        names = [header["name"] for header in headers_of(frame)]
        is_lost = "UETResponseData" in names if lost == "data" else sender == "a" and names[0] == "UETAck"
        if not (is_lost and left):
            return [frame]
        left -= 1
        return []

    source, target = post_reads(pair, [MTU], seed=1)
    limit = 900 if is_first else 60
    pair.run(wire, done(pair, 1), limit_steps=limit)
    assert np.array_equal(source, target)
    pair.run(wire, lambda: pair.b.queue_pair.stats()["in_flight_bytes"] == 0, limit_steps=limit)
    assert pair.a.queue_pair.stats()["timeouts"] == pair.b.queue_pair.stats()["timeouts"] == 0


def test_data_come_back_over_the_pdc_of_the_request() -> None:
    """With PSNs of their own, as answers to the message that asked."""
    pair = wired_pair(**UET, version=6, initial_psn=500)
    seen: dict[str, list[list[dict[str, Any]]]] = {"a": [], "b": []}

    def wire(sender: str, frame: bytes) -> list[bytes]:
        seen[sender].append(headers_of(frame))
        return [frame]

    pair.a.queue_pair.post_write(None, 0, 0, 0, 0)
    source, target = post_reads(pair, [2 * MTU + 5])
    pair.run(wire, done(pair, 2))
    assert np.array_equal(source, target)
    asked = [headers for headers in seen["a"] if headers[1]["name"] in ("UETStandard", "UETContinuation")][1:]
    data = [headers for headers in seen["b"] if headers[1]["name"] == "UETResponseData"]
    assert [headers[0]["psn"] for headers in asked] == [501, 502, 503]
    assert {headers[1]["opcode"] for headers in asked} == {2}
    assert [headers[1].get("payload_length") for headers in asked] == [None, MTU, 5]
    assert [headers[0]["psn"] for headers in data] == [500, 501, 502]
    assert [headers[1]["message_offset"] for headers in data] == [0, MTU, 2 * MTU]
    assert [headers[1]["payload_length"] for headers in data] == [MTU, MTU, 5]
    assert {headers[1]["read_request_message_id"] for headers in data} == {asked[0][1]["message_id"]}
    assert {headers[0]["dpdcid"] for headers in data} == {asked[0][0]["spdcid"]}
    answers = [headers[0] for headers in seen["a"] if headers[0]["name"] == "UETAck"]
    assert {each["dpdcid"] for each in answers} == {data[0][0]["spdcid"]}


@SERVICES
def test_no_more_reads_are_under_way_than_the_peer_has_room_for(options: dict[str, Any]) -> None:
    pair = wired_pair(**options, version=6, max_outstanding_reads=2)
    begun: set[int] = set()
    ended: set[int] = set()

    def wire(sender: str, frame: bytes) -> list[bytes]:
        for header in headers_of(frame):
            if header["name"] == "UETStandard":
                begun.add(header["message_id"])
            if header["name"] == "UETResponseData":
                ended.add(header["read_request_message_id"])
        assert len(begun - ended) <= 2
        return [frame]

    source, target = post_reads(pair, [MTU] * 9)
    pair.run(wire, done(pair, 9))
    assert np.array_equal(source, target)
    assert len(ended) == 9


@SERVICES
def test_memory_that_may_not_be_read_is_refused(options: dict[str, Any]) -> None:
    pair = wired_pair(**options, version=6)
    region = readable(pair.b, np.zeros(MTU, np.uint8))
    pair.a.queue_pair.post_read(None, 0, MTU, BASE, region.rkey, work_id=1)
    pair.a.queue_pair.post_read(None, 0, MTU + 1, BASE, region.rkey, work_id=2)
    pair.a.queue_pair.post_read(None, 0, MTU, BASE, region.rkey, work_id=3)
    pair.run(ideal_wire, lambda: pair.a.queue_pair.stats()["outstanding_requests"] == 0)
    statuses = [each["status"] for each in pair.a.completions.poll()]
    assert statuses[-2:] in (["remote_access_error", "flushed"], ["flushed", "flushed"])
    assert "remote_access_error" in statuses
    assert pair.b.queue_pair.stats()["responder_error"] == "remote_access_error"


@SERVICES
@given(actions=st.lists(st.sampled_from(["deliver", "drop", "hold"]), max_size=20), steps=st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_memory_that_goes_while_it_is_read_ends_the_connection(
    options: dict[str, Any], actions: list[str], steps: int
) -> None:
    """However much of it has gone out, and whatever becomes of the refusal."""
    pair = wired_pair(**options, version=6, window_bytes=2 * MTU, **PATIENT)
    source = random_bytes(40 * MTU)
    region = readable(pair.b, source)
    pair.a.queue_pair.post_read(None, 0, len(source), BASE, region.rkey, work_id=1)
    wire = Wire(actions)
    for _ in range(steps):
        pair.step(wire)
    region.deregister()
    pair.run(wire, lambda: pair.a.queue_pair.stats()["outstanding_requests"] == 0)
    [ended] = pair.a.completions.poll()
    assert ended["status"] in ("remote_access_error", "remote_operation_error")


@SERVICES
def test_a_peer_that_dies_after_it_has_taken_a_read_ends_the_connection(options: dict[str, Any]) -> None:
    pair = wired_pair(**options, version=6, retry_limit=2)
    lost = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        if sender == "b" and headers_of(frame)[1:2] and headers_of(frame)[1]["name"] == "UETResponseData":
            lost.append(frame)
            pair.b.queue_pair.flush()
            return []
        return [frame]

    post_reads(pair, [MTU])
    pair.run(wire, lambda: pair.a.queue_pair.stats()["error"] != "success")
    assert lost
    assert [each["status"] for each in pair.a.completions.poll()] == ["retry_exceeded"]


@pytest.mark.parametrize(
    "changes",
    [
        {"read_request_message_id": 9},
        {"message_offset": 1},
        {"message_offset": MTU},
        {"message_offset": 8 * MTU},
        {"payload_length": 3},
        {"return_code": 5},
        {"opcode": 1},
        {"dpdcid": 0x1234},
    ],
)
@pytest.mark.parametrize("options", [UET, ROD], ids=["rud", "rod"])
def test_data_that_nobody_has_asked_for_are_dropped(options: dict[str, Any], changes: dict[str, int]) -> None:
    """They go nowhere and end nothing; the right ones come after them."""
    pair = wired_pair(**options, version=6, **PATIENT)
    forged = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        headers = headers_of(frame)
        if sender == "b" and len(headers) > 1 and headers[1]["name"] == "UETResponseData" and not forged:
            forged.append(frame)
            return [rebuilt(frame, changes, b"\xff" * MTU)]
        return [frame]

    source, target = post_reads(pair, [MTU, MTU - 1])
    pair.run(wire, done(pair, 2))
    assert forged
    assert np.array_equal(source, target)
    stats = pair.a.queue_pair.uet_stats()
    assert stats["wrong_responses"] == (0 if "dpdcid" in changes else 1)


@SERVICES
def test_reads_as_lengths_move_no_bytes(options: dict[str, Any]) -> None:
    pair = cabled_pair(**options, version=4, window_bytes=1 << 20)
    region = pair.b.nic.register_sink(1 << 24, virtual_address=BASE)
    for number in range(3):
        pair.a.queue_pair.post_read_as_length(1 << 20, BASE, region.rkey, work_id=number)
    pair.engine.run_for(20 * MS)
    assert [each["status"] for each in pair.a.completions.poll()] == ["success"] * 3
    stats = pair.a.queue_pair.stats()
    assert stats["data_bytes_received"] == 3 << 20
    assert stats["timeouts"] == 0


def test_sends_and_reads_of_a_pair_survive_many_pdcs() -> None:
    """PSNs of both directions go on from one PDC to the next."""
    pair = wired_pair(**UET, version=6, **PATIENT)
    wire = Wire(["deliver", "drop", "deliver", "duplicate", "hold"] * 40)
    for round_ in range(12):
        sends = Sends(pair, [MTU + round_])
        sends.post_receives(1)
        sends.post()
        source, target = post_reads(pair, [2 * MTU + round_], seed=round_)
        pair.run(wire, done(pair, 2))
        sends.all_arrived(in_order=False)
        assert np.array_equal(source, target)
        pair.run(wire, lambda: is_closed(pair))
    assert pair.a.queue_pair.uet_stats()["pdcs_opened"] == 12


def with_word(frame: bytes, at: int, value: int) -> bytes:
    """Return a frame over IPv6 with another 16-bit word there, and UDP's checksum for it (RFC 1624)."""
    checksum = int.from_bytes(frame[UDP_AT + 6 : UDP_AT + 8])
    total = (checksum ^ 0xFFFF) + (int.from_bytes(frame[at : at + 2]) ^ 0xFFFF) + value
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    changed = frame[:at] + value.to_bytes(2) + frame[at + 2 :]
    return changed[: UDP_AT + 6] + (total ^ 0xFFFF).to_bytes(2) + changed[UDP_AT + 8 :]


def test_a_target_remembers_no_more_than_its_limit_of_reads() -> None:
    """A peer asks and asks, and acknowledges nothing."""
    most, more = 1 << 14, 50
    pair = wired_pair(**UET, version=6, window_bytes=MTU, **PATIENT)
    asked: list[bytes] = []
    codes: list[int] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        headers = headers_of(frame)
        if sender == "a" and len(headers) > 1 and headers[1]["name"] == "UETStandard":
            asked.append(frame)
        return [frame]

    def silent(sender: str, frame: bytes) -> list[bytes]:
        if sender == "b":
            codes.extend(each["nack_code"] for each in headers_of(frame) if each["name"] == "UETNack")
        return []

    for seed in (0, 1):  # the first one with syn
        post_reads(pair, [1], seed)
        pair.run(wire, done(pair, 1))
    assert headers_of(asked[1])[0]["psn"] == 1
    for number in range(most + more):
        pair.engine.inject(pair.b.nic, 0, with_word(asked[1], UDP_AT + 8 + 6, 2 + number))
        if number % 1024 == 0:
            pair.step(silent)
    for _ in range(20):
        pair.step(silent)
    assert codes == [0x0A] * more
    assert pair.b.queue_pair.uet_stats()["other_nacks_sent"] == more
