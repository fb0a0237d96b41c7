"""RDMA READ: what comes back, when, in which packets, and what becomes of losses and of forbidden memory."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import (
    DELAY_PS,
    PATIENT,
    RATE_BPS,
    US,
    Bytes,
    RdmaPair,
    WiredPair,
    cabled_pair,
    ideal_wire,
    random_bytes,
    spray,
    wired_pair,
)
from weft.engine import parse_packet, serialisation_ps

MTU = 1024
BASE = 1 << 40
HEADERS_BYTES = 14 + 20 + 8 + 12 + 4
REQUEST_BYTES = HEADERS_BYTES + 16
AETH_BYTES = 4
READ_ACKNOWLEDGE = 0xE1
BOTH_RETRANSMISSIONS = pytest.mark.parametrize("retransmission", ["go-back-n", "selective-repeat"])


def post_reads(pair: RdmaPair | WiredPair, sizes: list[int], seed: int = 0) -> tuple[Bytes, Bytes]:
    """Post READs of consecutive ranges of b's memory; returns that memory and where a puts it."""
    source = random_bytes(sum(sizes), seed)
    target = np.zeros_like(source)
    rkey = pair.b.nic.register_memory(source, virtual_address=BASE, remote_write=False, remote_read=True).rkey
    region, offset = pair.a.register(target), 0
    for number, size in enumerate(sizes):
        pair.a.queue_pair.post_read(region, offset, size, BASE + offset, rkey, work_id=number)
        offset += size
    return source, target


def done(pair: WiredPair, count: int) -> Any:
    seen: list[tuple[int, str, str]] = []

    def finished() -> bool:
        seen.extend((each["work_id"], each["kind"], each["status"]) for each in pair.a.completions.poll())
        return len(seen) == count

    finished.seen = seen  # type: ignore[attr-defined]
    return finished


@BOTH_RETRANSMISSIONS
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("size", [0, 1, 3, MTU - 1, MTU, MTU + 1, 5 * MTU + 7, 300_000])
def test_what_the_peer_s_memory_holds_arrives(size: int, version: int, retransmission: str) -> None:
    pair = cabled_pair(version=version, retransmission=retransmission)
    source, target = post_reads(pair, [size])
    pair.engine.run()
    assert np.array_equal(source, target)
    [completion] = pair.a.completions.poll()
    assert (completion["kind"], completion["status"], completion["length_bytes"]) == ("read", "success", size)
    assert pair.b.completions.poll() == []
    here, there = pair.a.queue_pair.stats(), pair.b.queue_pair.stats()
    assert there["data_packets_sent"] == here["data_packets_received"] == max(1, -(-size // MTU))
    assert there["data_bytes_sent"] == here["data_bytes_received"] == size
    assert here["data_packets_sent"] == there["data_packets_received"] == 1
    for stats in (here, there):
        assert stats["in_flight_bytes"] == stats["outstanding_requests"] == 0
        assert stats["retransmitted_packets"] == stats["timeouts"] == stats["invalid_acknowledgements"] == 0


@pytest.mark.parametrize("mtu", [256, 1024, 4096])
@pytest.mark.parametrize("packets", [1, 2, 40])
def test_completion_time_on_an_idle_link(mtu: int, packets: int) -> None:
    pair = cabled_pair(path_mtu_bytes=mtu, window_bytes=1 << 20)
    post_reads(pair, [mtu * packets])
    pair.engine.run()
    there = serialisation_ps(REQUEST_BYTES, RATE_BPS) + DELAY_PS
    # The first response and the last have an AETH.
    data_bytes = packets * (HEADERS_BYTES + mtu) + min(2, packets) * AETH_BYTES
    back = serialisation_ps(data_bytes, RATE_BPS) + DELAY_PS
    [completion] = pair.a.completions.poll()
    assert completion["completed_ps"] - completion["posted_ps"] == there + back


def frames_of(retransmission: str) -> tuple[list[Any], list[Any]]:
    """Headers of what each end sends for a READ of 3 packets, a WRITE and a READ of 1."""
    pair = wired_pair(retransmission=retransmission, initial_psn=0xFFFFFE, ack_interval_packets=1)
    sent: dict[str, list[Any]] = {"a": [], "b": []}

    def wire(sender: str, frame: bytes) -> list[bytes]:
        sent[sender].append(parse_packet(frame)[0])
        return [frame]

    memory = pair.b.nic.register_memory(random_bytes(4 * MTU), virtual_address=BASE, remote_read=True)
    for size in (3 * MTU, 100):
        pair.a.queue_pair.post_read(None, 0, size, BASE, memory.rkey)
        if size > 100:
            pair.a.queue_pair.post_write(None, 0, MTU, BASE, memory.rkey)
    pair.run(wire, done(pair, 3))
    pair.step(wire)
    return sent["a"], sent["b"]


def test_responses_take_a_psn_each() -> None:
    of_a, of_b = frames_of("go-back-n")
    requests = [(each["bth"]["opcode"], each["bth"]["psn"]) for each in of_a if "reth" in each]
    assert requests == [(0x0C, 0xFFFFFE), (0x0A, 1), (0x0C, 2)]
    assert [each["reth"]["length_bytes"] for each in of_a if "reth" in each] == [3 * MTU, MTU, 100]
    responses = [each for each in of_b if each["bth"]["opcode"] in range(0x0D, 0x11)]
    numbered = [(each["bth"]["opcode"], each["bth"]["psn"]) for each in responses]
    assert numbered == [(0x0D, 0xFFFFFE), (0x0E, 0xFFFFFF), (0x0F, 0), (0x10, 2)]
    assert ["aeth" in each for each in responses] == [True, False, True, True]
    assert [each["aeth"]["msn"] for each in responses if "aeth" in each] == [1, 1, 3]
    assert [(each["dscp"], each["ecn"]) for each in responses] == [(26, 2)] * 4
    answers = [each for each in of_a if each["bth"]["opcode"] == READ_ACKNOWLEDGE]
    assert [each["bth"]["psn"] for each in answers][-1] == 2
    assert {each["dscp"] for each in answers} == {48}


def test_with_selective_repeat_every_response_is_one_of_its_own() -> None:
    _, of_b = frames_of("selective-repeat")
    responses = [each["bth"] for each in of_b if each["bth"]["opcode"] in range(0x0D, 0x11)]
    assert [(each["opcode"], each["psn"]) for each in responses] == [
        (0x10, 0xFFFFFE),
        (0x10, 0xFFFFFF),
        (0x10, 0),
        (0x10, 2),
    ]


@BOTH_RETRANSMISSIONS
@given(
    actions=st.lists(st.sampled_from(["deliver", "deliver", "deliver", "drop", "duplicate"]), max_size=80),
    sizes=st.lists(st.integers(0, 5 * 256), min_size=1, max_size=8),
    psn=st.sampled_from([0, 0xFFFFFD]),
    limit=st.sampled_from([1, 2, 16]),
)
@settings(max_examples=100, deadline=None)
def test_whatever_the_wire_loses_or_repeats_all_is_read(
    retransmission: str, actions: list[str], sizes: list[int], psn: int, limit: int
) -> None:
    pair = wired_pair(
        retransmission=retransmission,
        path_mtu_bytes=256,
        initial_psn=psn,
        **PATIENT,
        ack_interval_packets=3,
        max_outstanding_reads=limit,
        window_bytes=2000,
    )
    left = list(actions)

    def wire(_sender: str, frame: bytes) -> list[bytes]:
        action = left.pop(0) if left else "deliver"
        return {"deliver": [frame], "drop": [], "duplicate": [frame, frame]}[action]

    source, target = post_reads(pair, sizes)
    finished = done(pair, len(sizes))
    pair.run(wire, finished)
    assert finished.seen == [(number, "read", "success") for number in range(len(sizes))]
    assert np.array_equal(source, target)
    assert pair.a.queue_pair.stats()["data_bytes_received"] == sum(sizes)
    assert pair.a.queue_pair.stats()["outstanding_requests"] == 0


@given(
    actions=st.lists(st.sampled_from(["deliver", "deliver", "deliver", "drop", "duplicate", "hold"]), max_size=80),
    steps=st.lists(st.tuples(st.sampled_from(["read", "write"]), st.integers(0, 5 * 256)), min_size=1, max_size=8),
)
@settings(max_examples=100, deadline=None)
def test_reads_and_writes_mixed_over_paths_that_reorder(actions: list[str], steps: list[tuple[str, int]]) -> None:
    pair = wired_pair(
        retransmission="selective-repeat",
        path_mtu_bytes=256,
        **PATIENT,
        ack_interval_packets=3,
        sender={"path_choice": spray(1, 64)},
    )
    left, held = list(actions), {"a": [], "b": []}  # type: dict[str, list[bytes]]

    def wire(sender: str, frame: bytes) -> list[bytes]:
        action = left.pop(0) if left else "deliver"
        if action == "drop":
            return []
        if action == "hold":
            held[sender].append(frame)
            return []
        late, held[sender] = held[sender], []
        return [frame, *late, *([frame] if action == "duplicate" else [])]

    total = sum(size for _, size in steps)
    here, there = random_bytes(total, 1), random_bytes(total, 2)
    expected_here, expected_there = here.copy(), there.copy()
    rkey = pair.b.nic.register_memory(there, virtual_address=BASE, remote_read=True).rkey
    region, offset = pair.a.register(here), 0
    for number, (kind, size) in enumerate(steps):
        post = pair.a.queue_pair.post_read if kind == "read" else pair.a.queue_pair.post_write
        post(region, offset, size, BASE + offset, rkey, work_id=number)
        part = slice(offset, offset + size)
        if kind == "read":
            expected_here[part] = expected_there[part]
        else:
            expected_there[part] = expected_here[part]
        offset += size
    finished = done(pair, len(steps))
    pair.run(wire, finished)
    assert finished.seen == [(number, kind, "success") for number, (kind, _) in enumerate(steps)]
    assert np.array_equal(here, expected_here)
    assert np.array_equal(there, expected_there)


def test_a_lost_response_is_asked_for_again_from_its_psn() -> None:
    pair = wired_pair(path_mtu_bytes=256)
    requests: list[Any] = []
    lost: list[int] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        headers, _ = parse_packet(frame)
        if headers["bth"]["opcode"] == 0x0C:
            requests.append((headers["bth"]["psn"], headers["reth"]))
        if sender == "b" and headers["bth"]["psn"] == 3 and not lost:
            lost.append(3)
            return []
        return [frame]

    source, target = post_reads(pair, [8 * 256])
    pair.run(wire, done(pair, 1))
    assert np.array_equal(source, target)
    [(_, first), (psn, again)] = requests
    assert psn == 3
    assert again["virtual_address"] == first["virtual_address"] + 3 * 256
    assert again["length_bytes"] == 5 * 256
    assert pair.b.queue_pair.stats()["retransmitted_packets"] == 5
    assert pair.a.queue_pair.stats()["timeouts"] == 0


def test_with_selective_repeat_only_what_was_lost_is_sent_again() -> None:
    pair = wired_pair(path_mtu_bytes=256, retransmission="selective-repeat")
    lost = {3, 7, 8}

    def wire(sender: str, frame: bytes) -> list[bytes]:
        psn = parse_packet(frame)[0]["bth"]["psn"]
        if sender == "b" and psn in lost:
            lost.discard(psn)
            return []
        return [frame]

    source, target = post_reads(pair, [20 * 256])
    pair.run(wire, done(pair, 1))
    assert np.array_equal(source, target)
    assert pair.b.queue_pair.stats()["retransmitted_packets"] == 3
    assert pair.a.queue_pair.stats()["retransmitted_packets"] == pair.a.queue_pair.stats()["timeouts"] == 0


@BOTH_RETRANSMISSIONS
@pytest.mark.parametrize("sizes", [[20 * 256], [256] * 20])
def test_lost_answers_do_not_close_the_window_for_good(retransmission: str, sizes: list[int]) -> None:
    pair = wired_pair(retransmission=retransmission, path_mtu_bytes=256, window_bytes=2000)
    lost = 0

    def wire(_sender: str, frame: bytes) -> list[bytes]:
        nonlocal lost
        is_answer = parse_packet(frame)[0]["bth"]["opcode"] == READ_ACKNOWLEDGE
        lost += is_answer
        return [] if is_answer and lost < 6 else [frame]

    source, target = post_reads(pair, sizes)
    pair.run(wire, done(pair, len(sizes)))
    assert np.array_equal(source, target)
    assert pair.a.queue_pair.stats()["timeouts"] > 0


@pytest.mark.parametrize("limit", [1, 3, 16])
def test_no_more_reads_are_under_way_than_the_peer_has_resources_for(limit: int) -> None:
    pair = wired_pair(max_outstanding_reads=limit)
    post_reads(pair, [10] * 20)
    asked = answered = 0

    def wire(sender: str, frame: bytes) -> list[bytes]:
        nonlocal asked, answered
        opcode = parse_packet(frame)[0]["bth"]["opcode"]
        asked += opcode == 0x0C
        answered += sender == "b" and opcode == 0x10
        assert asked - answered <= limit
        return [frame]

    pair.run(wire, done(pair, 20))
    assert asked == 20


def test_a_read_too_many_is_refused() -> None:
    pair = wired_pair(max_outstanding_reads=2, sender={"max_outstanding_reads": 4}, window_bytes=3000)
    post_reads(pair, [20 * MTU] * 4)
    seen: list[str] = []
    pair.run(ideal_wire, lambda: seen.extend(c["status"] for c in pair.a.completions.poll()) or len(seen) == 4)
    assert "remote_invalid_request" in seen


@BOTH_RETRANSMISSIONS
@pytest.mark.parametrize(
    ("access", "address", "rkey_offset"),
    [({}, BASE, 0), ({"remote_read": True}, BASE + 1, 0), ({"remote_read": True}, BASE, 1)],
)
def test_memory_that_may_not_be_read_is_not(
    access: dict[str, bool], address: int, rkey_offset: int, retransmission: str
) -> None:
    pair = cabled_pair(retransmission=retransmission)
    source, target = random_bytes(3000), np.zeros(3000, np.uint8)
    rkey = pair.b.nic.register_memory(source, virtual_address=BASE, **access).rkey + rkey_offset
    pair.a.queue_pair.post_read(pair.a.register(target), 0, 3000, address, rkey)
    pair.engine.run()
    [completion] = pair.a.completions.poll()
    assert completion["status"] == "remote_access_error"
    assert not target.any()
    assert pair.b.queue_pair.stats()["fatal_naks_sent"] == 1


def test_reads_before_one_that_is_refused_complete() -> None:
    pair = cabled_pair()
    source, target = post_reads(pair, [100_000])
    pair.a.queue_pair.post_read(None, 0, 1, BASE, 0xBAD)
    pair.a.queue_pair.post_write(None, 0, 1, BASE, 0xBAD)
    pair.engine.run()
    statuses = [each["status"] for each in pair.a.completions.poll()]
    assert statuses == ["success", "remote_access_error", "flushed"]
    assert np.array_equal(source, target)


def test_memory_deregistered_while_it_is_read_ends_the_read() -> None:
    pair = cabled_pair(window_bytes=3000)
    region = pair.b.nic.register_memory(random_bytes(1 << 20), virtual_address=BASE, remote_read=True)
    pair.a.queue_pair.post_read(None, 0, 1 << 20, BASE, region.rkey)
    pair.engine.run_for(30 * US)
    region.deregister()
    pair.engine.run()
    [completion] = pair.a.completions.poll()
    assert completion["status"] == "remote_access_error"


@pytest.mark.parametrize("window_bytes", [2000, 8000, 40_000])
def test_the_responder_s_window_holds_responses_back(window_bytes: int) -> None:
    pair = wired_pair(window_bytes=window_bytes, ack_interval_packets=4, retransmission_timeout_ps=10**12)
    post_reads(pair, [100 * MTU])
    in_flight = 0

    def count(sender: str, frame: bytes) -> list[bytes]:
        nonlocal in_flight
        if sender == "a":
            return [frame] if parse_packet(frame)[0]["bth"]["opcode"] == 0x0C else []
        in_flight += len(frame)
        return [frame]

    for _ in range(20):
        pair.step(count)
    assert window_bytes - 1100 < in_flight <= window_bytes
    assert pair.b.queue_pair.stats()["in_flight_bytes"] == in_flight


def test_the_responder_s_rate_paces_responses() -> None:
    pair = cabled_pair(pacing_rate_bps=RATE_BPS // 4, window_bytes=1 << 20)
    post_reads(pair, [10 * MTU])
    pair.engine.run()
    frame = HEADERS_BYTES + MTU
    there = serialisation_ps(REQUEST_BYTES, RATE_BPS) + DELAY_PS
    last_starts = serialisation_ps(9 * frame + AETH_BYTES, RATE_BPS // 4)
    [completion] = pair.a.completions.poll()
    back = last_starts + serialisation_ps(frame + AETH_BYTES, RATE_BPS) + DELAY_PS
    assert completion["completed_ps"] == there + back


def test_reads_in_both_directions_and_writes_share_the_queue_pair() -> None:
    pair = cabled_pair(faults={"loss": 0.02, "duplicate": 0.02}, retry_limit=50)
    sizes = [50_000, 1, 7000]
    memories = [random_bytes(100_000, index) for index in range(2)]
    got = [np.zeros(sum(sizes), np.uint8) for _ in range(2)]
    written = [np.zeros(20_000, np.uint8) for _ in range(2)]
    hosts = (pair.a, pair.b)
    keys = [host.nic.register_memory(memories[i], remote_read=True).rkey for i, host in enumerate(hosts)]
    write_keys = [host.register(written[i]).rkey for i, host in enumerate(hosts)]
    for index, host in enumerate(hosts):
        region, own, offset = host.register(got[index]), host.register(memories[index]), 0
        for size in sizes:
            host.queue_pair.post_read(region, offset, size, offset, keys[1 - index])
            host.queue_pair.post_write(own, 0, 20_000, 0, write_keys[1 - index])
            offset += size
    pair.engine.run()
    for index, host in enumerate(hosts):
        assert {each["status"] for each in host.completions.poll()} == {"success"}
        assert np.array_equal(got[index], memories[1 - index][: sum(sizes)])
        assert np.array_equal(written[index], memories[1 - index][:20_000])


@BOTH_RETRANSMISSIONS
@pytest.mark.parametrize("telemetry", [False, True])
def test_lengths_take_the_same_times_as_bytes(retransmission: str, telemetry: bool) -> None:
    def outcome(as_length: bool) -> Any:
        pair = cabled_pair(
            retransmission=retransmission,
            telemetry=telemetry,
            faults={"loss": 0.02},
            retry_limit=50,
        )
        rkey = pair.b.nic.register_sink(1 << 20).rkey
        for size in (100_000, 5, 0, 40_000):
            if as_length:
                pair.a.queue_pair.post_read_as_length(size, 0, rkey)
            else:
                pair.a.queue_pair.post_read(None, 0, size, 0, rkey)
        pair.engine.run()
        return (
            [(each["status"], each["completed_ps"]) for each in pair.a.completions.poll()],
            pair.a.queue_pair.stats(),
            pair.b.queue_pair.stats(),
            [link.stats() for link in pair.links],
        )

    of_bytes = outcome(False)
    assert outcome(True) == of_bytes
    assert {status for status, _ in of_bytes[0]} == {"success"}


def test_what_cannot_be_read_is_refused_when_posted() -> None:
    pair = cabled_pair(path_mtu_bytes=256)
    with pytest.raises(ValueError, match="1073741824 with this path MTU"):
        pair.a.queue_pair.post_read(None, 0, 2**30 + 1, 0, 1)
    with pytest.raises(ValueError, match="2147483648"):
        pair.a.queue_pair.post_read(None, 0, 2**31 + 1, 0, 1)
    region = pair.a.nic.register_memory(np.zeros(10, np.uint8), remote_write=False)
    with pytest.raises(ValueError, match="without local_write"):
        pair.a.queue_pair.post_read(region, 0, 10, 0, 1)
    with pytest.raises(ValueError, match="max_outstanding_reads is 0"):
        cabled_pair(max_outstanding_reads=0)
