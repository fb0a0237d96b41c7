"""RC between two NICs in virtual time: what arrives, when, and whose fault it is if it does not."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import (
    DELAY_PS,
    PATIENT,
    RATE_BPS,
    TIMEOUT_PS,
    US,
    WINDOW_BYTES,
    Bytes,
    RdmaPair,
    cabled_pair,
    ideal_wire,
    make_host,
    random_bytes,
    wired_pair,
)
from weft.engine import (
    Engine,
    Link,
    bandwidth_delay_product_bytes,
    build_packet,
    parse_packet,
    serialisation_ps,
)

MTU = 1024
WRITE_ONLY_BYTES = 14 + 20 + 8 + 12 + 16 + 4  # frame of an empty WRITE only
ACK_BYTES = 14 + 20 + 8 + 12 + 4 + 4


def write(pair: RdmaPair, source: Bytes, **options: Any) -> Bytes:
    """Writes source into a buffer of b and runs until all is quiet."""
    target = np.zeros_like(source)
    rkey = pair.b.register(target).rkey
    pair.a.queue_pair.post_write(pair.a.register(source), 0, len(source), 0, rkey, **options)
    pair.engine.run()
    return target


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("size", [0, 1, 3, MTU - 1, MTU, MTU + 1, 3 * MTU, 5 * MTU + 7, 300_000])
def test_a_write_with_immediate_arrives_and_both_sides_know(size: int, version: int) -> None:
    pair = cabled_pair(version=version)
    source = random_bytes(size)
    target = write(pair, source, immediate=0xCAFE, work_id=5)
    assert np.array_equal(source, target)
    [sent], [arrived] = pair.a.completions.poll(), pair.b.completions.poll()
    assert (sent["kind"], sent["status"], sent["work_id"], sent["length_bytes"]) == (
        "write",
        "success",
        5,
        size,
    )
    assert (arrived["kind"], arrived["immediate"], arrived["length_bytes"]) == (
        "write_immediate",
        0xCAFE,
        size,
    )
    assert arrived["completed_ps"] < sent["completed_ps"]
    stats = pair.a.queue_pair.stats()
    assert stats["data_packets_sent"] == max(1, -(-size // MTU))
    assert stats["retransmitted_packets"] == 0
    assert stats["in_flight_bytes"] == stats["outstanding_requests"] == 0


def test_a_write_without_immediate_is_silent_at_the_responder() -> None:
    pair = cabled_pair()
    source = random_bytes(5000)
    assert np.array_equal(write(pair, source), source)
    assert pair.b.completions.poll() == []


@pytest.mark.parametrize("mtu", [256, 512, 1024, 2048, 4096])
@pytest.mark.parametrize("packets", [1, 2, 40])
def test_completion_time_on_an_idle_link(mtu: int, packets: int) -> None:
    pair = cabled_pair(path_mtu_bytes=mtu, window_bytes=1 << 20)
    write(pair, random_bytes(mtu * packets))
    # One RETH in all; the last acknowledgement waits for none before it.
    data_bytes = packets * (WRITE_ONLY_BYTES - 16 + mtu) + 16
    there = serialisation_ps(data_bytes, RATE_BPS) + DELAY_PS
    back = serialisation_ps(ACK_BYTES, RATE_BPS) + DELAY_PS
    [completion] = pair.a.completions.poll()
    assert completion["completed_ps"] - completion["posted_ps"] == there + back


def test_one_bandwidth_delay_product_fills_the_line() -> None:
    frame = WRITE_ONLY_BYTES - 16 + MTU
    round_trip = 2 * DELAY_PS + serialisation_ps(frame + ACK_BYTES, RATE_BPS)
    window = bandwidth_delay_product_bytes(RATE_BPS, round_trip)
    size = 1000 * MTU

    def duration(window_bytes: int) -> int:
        pair = cabled_pair(window_bytes=window_bytes)
        write(pair, random_bytes(size))
        [completion] = pair.a.completions.poll()
        return completion["completed_ps"]

    ideal = serialisation_ps(1000 * frame + 16 + ACK_BYTES, RATE_BPS) + 2 * DELAY_PS
    assert duration(window + frame) == ideal
    assert duration(window // 2) > 1.8 * ideal


@given(window=st.integers(1, 40_000), size=st.integers(0, 60_000), ack_interval=st.integers(1, 20))
@settings(max_examples=50, deadline=None)
def test_the_window_is_respected(window: int, size: int, ack_interval: int) -> None:
    pair = wired_pair(window_bytes=window, ack_interval_packets=ack_interval, retransmission_timeout_ps=10**12)
    source = random_bytes(size)
    target = np.zeros_like(source)
    rkey = pair.b.register(target).rkey
    pair.a.queue_pair.post_write(pair.a.register(source), 0, size, 0, rkey)
    sent: list[bytes] = []

    def count(sender: str, frame: bytes) -> list[bytes]:
        if sender == "a":
            sent.append(frame)
        return []

    for _ in range(20):
        pair.step(count)
    in_flight = sum(map(len, sent))
    assert in_flight == pair.a.queue_pair.stats()["in_flight_bytes"]
    assert in_flight <= window or len(sent) == 1
    # The last packet of a full window asks for an acknowledgement, so the transfer goes on without a timeout.
    for frame in sent:
        pair.engine.inject(pair.b.nic, 0, frame)
    pair.run(ideal_wire, lambda: bool(pair.a.completions.poll()))
    assert np.array_equal(source, target)
    assert pair.a.queue_pair.stats()["timeouts"] == 0


def test_pacing_below_the_rate_of_the_port() -> None:
    pair = cabled_pair(pacing_rate_bps=RATE_BPS // 4, window_bytes=1 << 20)
    write(pair, random_bytes(10 * MTU))
    frame = WRITE_ONLY_BYTES - 16 + MTU
    last_starts = serialisation_ps(9 * frame + 16, RATE_BPS // 4)
    [completion] = pair.a.completions.poll()
    there = last_starts + serialisation_ps(frame, RATE_BPS) + DELAY_PS
    assert completion["completed_ps"] == there + serialisation_ps(ACK_BYTES, RATE_BPS) + DELAY_PS


def test_acknowledgements_are_coalesced() -> None:
    pair = cabled_pair(ack_interval_packets=16, window_bytes=1 << 20)
    write(pair, random_bytes(64 * MTU))
    assert pair.a.queue_pair.stats()["acknowledgements_received"] == 4


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("initial_psn", [0, 0xFFFFF0])
def test_lossy_duplicating_reordering_links(loss: float, initial_psn: int) -> None:
    faults = {"loss": loss, "duplicate": loss, "delay_probability": loss, "extra_delay_ps": 3 * US}
    pair = cabled_pair(faults=faults, initial_psn=initial_psn, retry_limit=50)
    source = random_bytes(200_000)
    target = np.zeros_like(source)
    remote, local = pair.b.register(target), pair.a.register(source)
    for message in range(20):
        pair.a.queue_pair.post_write(
            local, 10_000 * message, 10_000, 10_000 * message, remote.rkey, immediate=message, work_id=message
        )
    pair.engine.run()
    assert np.array_equal(source, target)
    assert [c["work_id"] for c in pair.a.completions.poll()] == list(range(20))
    assert [c["immediate"] for c in pair.b.completions.poll()] == list(range(20))
    stats = pair.b.queue_pair.stats()
    assert stats["data_bytes_received"] == len(source)
    assert pair.a.queue_pair.stats()["retransmitted_packets"] > 0
    assert pair.links[0].stats()["lost_packets"] > 0


def test_both_directions_at_once() -> None:
    pair = cabled_pair(faults={"loss": 0.02})
    buffers = [(random_bytes(100_000, seed), np.zeros(100_000, np.uint8)) for seed in (1, 2)]
    for host, peer, (source, target) in zip((pair.a, pair.b), (pair.b, pair.a), buffers, strict=True):
        rkey = peer.register(target).rkey
        host.queue_pair.post_write(host.register(source), 0, len(source), 0, rkey)
    pair.engine.run()
    assert all(np.array_equal(source, target) for source, target in buffers)


ACTIONS = st.sampled_from(["deliver", "deliver", "drop", "duplicate", "hold", "corrupt"])


class FaultyWire:
    """Does with each frame what the list says next; when it is used up, delivers."""

    def __init__(self, actions: list[str]) -> None:
        self.actions = actions
        self.held: dict[str, list[bytes]] = {"a": [], "b": []}

    def __call__(self, sender: str, frame: bytes) -> list[bytes]:
        action = self.actions.pop(0) if self.actions else "deliver"
        if action == "drop":
            return []
        if action == "hold":  # until the next frame has overtaken it
            self.held[sender].append(frame)
            return []
        late, self.held[sender] = self.held[sender], []
        if action == "duplicate":
            return [frame, frame, *late]
        if action == "corrupt":
            return [frame[:-9] + bytes([frame[-9] ^ 0x10]) + frame[-8:], *late]
        return [frame, *late]


@given(
    actions=st.lists(ACTIONS, max_size=60),
    sizes=st.lists(st.integers(0, 4 * 256 + 3), min_size=1, max_size=8),
    initial_psn=st.sampled_from([0, 5, 0xFFFFFD, 0xFFFFFF]),
    ack_interval=st.sampled_from([1, 3]),
)
@settings(max_examples=150, deadline=None)
def test_messages_arrive_exactly_once_and_in_order(
    actions: list[str], sizes: list[int], initial_psn: int, ack_interval: int
) -> None:
    pair = wired_pair(path_mtu_bytes=256, initial_psn=initial_psn, ack_interval_packets=ack_interval, **PATIENT)
    messages = [random_bytes(size, seed) for seed, size in enumerate(sizes)]
    arrived = [np.zeros(max(sizes), np.uint8) for _ in sizes]
    for work_id, (message, buffer) in enumerate(zip(messages, arrived, strict=True)):
        pair.b.queue_pair.post_receive(pair.b.register(buffer), 0, len(buffer), work_id=work_id)
        region = pair.a.register(message)
        pair.a.queue_pair.post_send(region, 0, len(message), immediate=work_id, work_id=work_id)
    done: list[int] = []

    def finished() -> bool:
        done.extend(c["work_id"] for c in pair.a.completions.poll() if c["status"] == "success")
        return len(done) == len(sizes)

    pair.run(FaultyWire(list(actions)), finished)
    received = pair.b.completions.poll()
    assert done == [c["work_id"] for c in received] == [c["immediate"] for c in received] == list(range(len(sizes)))
    assert [c["length_bytes"] for c in received] == sizes
    for message, buffer in zip(messages, arrived, strict=True):
        assert np.array_equal(buffer[: len(message)], message)
        assert not buffer[len(message) :].any()
    assert pair.b.queue_pair.stats()["data_bytes_received"] == sum(sizes)


def test_a_corrupted_packet_is_counted_and_sent_again() -> None:
    pair = wired_pair()
    source = random_bytes(4 * MTU)
    target = np.zeros_like(source)
    pair.a.queue_pair.post_write(pair.a.register(source), 0, len(source), 0, pair.b.register(target).rkey)
    pair.run(FaultyWire(["deliver", "corrupt"]), lambda: bool(pair.a.completions.poll()))
    assert np.array_equal(source, target)
    assert pair.b.nic.stats(0)["dropped"]["bad_icrc"] == 1
    assert pair.b.queue_pair.stats()["sequence_naks_sent"] == 1
    assert pair.a.queue_pair.stats()["retransmitted_packets"] == 3
    assert pair.a.queue_pair.stats()["timeouts"] == 0


def test_a_retransmission_that_is_lost_again_is_asked_for_again() -> None:
    pair = wired_pair()
    source = random_bytes(10 * MTU)
    target = np.zeros_like(source)
    pair.a.queue_pair.post_write(pair.a.register(source), 0, len(source), 0, pair.b.register(target).rkey)
    losses = [1, 1, 1]

    def lose(sender: str, frame: bytes) -> list[bytes]:
        psn = parse_packet(frame)[0]["bth"]["psn"]
        if sender == "a" and losses and psn == losses[0]:
            del losses[0]
            return []
        return [frame]

    pair.run(lose, lambda: bool(pair.a.completions.poll()))
    assert np.array_equal(source, target)
    assert pair.b.queue_pair.stats()["sequence_naks_sent"] == 3
    assert pair.a.queue_pair.stats()["timeouts"] == 0


def test_timeouts_back_off_and_give_up() -> None:
    pair = wired_pair(retry_limit=3, timeout_backoff_limit=2)
    pair.a.queue_pair.post_write(None, 0, 10, 0, 1, work_id=1)
    pair.a.queue_pair.post_write(None, 0, 10, 0, 1, work_id=2)
    sent_us: list[int] = []

    def lose(sender: str, frame: bytes) -> list[bytes]:
        if parse_packet(frame)[0]["bth"]["psn"] == 0:
            sent_us.append(pair.engine.now_ps // US)
        return []

    for _ in range(400):
        pair.step(lose)
    timeout_us = TIMEOUT_PS // US
    assert np.diff(sent_us).tolist() == [timeout_us, 2 * timeout_us, 4 * timeout_us]
    first, second = pair.a.completions.poll()
    assert (first["work_id"], first["status"], first["fault"]) == (1, "retry_exceeded", "network")
    assert (second["work_id"], second["status"]) == (2, "flushed")
    pair.a.queue_pair.post_write(None, 0, 10, 0, 1, work_id=3)
    assert [c["status"] for c in pair.a.completions.poll()] == ["flushed"]


def test_a_send_waits_for_a_receive() -> None:
    pair = cabled_pair(rnr_timer_code=1)  # 10 us
    message = random_bytes(3000)
    target = np.zeros(4000, np.uint8)
    pair.a.queue_pair.post_send(pair.a.register(message), 0, len(message))
    pair.engine.run_for(35 * US)
    assert pair.a.queue_pair.stats()["rnr_naks_received"] >= 2
    pair.b.queue_pair.post_receive(pair.b.register(target), 0, len(target), work_id=9)
    pair.engine.run()
    [received] = pair.b.completions.poll()
    assert (received["work_id"], received["length_bytes"]) == (9, 3000)
    assert np.array_equal(target[:3000], message)
    assert pair.a.queue_pair.stats()["timeouts"] == 0


def test_a_send_without_receive_fails_after_its_retries() -> None:
    pair = cabled_pair(rnr_timer_code=1, rnr_retry_limit=2)
    pair.a.queue_pair.post_send(None, 0, 8)
    pair.engine.run()
    [completion] = pair.a.completions.poll()
    assert (completion["status"], completion["fault"]) == ("rnr_retry_exceeded", "peer")


def test_an_immediate_takes_a_receive_if_asked_to() -> None:
    pair = cabled_pair(receive_for_immediate=True, rnr_timer_code=1)
    rkey = pair.b.nic.register_sink(100).rkey
    pair.a.queue_pair.post_write(None, 0, 100, 0, rkey, immediate=1)
    pair.engine.run_for(15 * US)
    assert pair.b.completions.poll() == []
    pair.b.queue_pair.post_receive(None, 0, 0, work_id=77)
    pair.engine.run()
    assert [c["work_id"] for c in pair.b.completions.poll()] == [77]


@pytest.mark.parametrize(
    ("address", "size", "wrong_key"), [(96, 5, False), (0, 101, False), (2**64 - 4, 8, False), (0, 4, True)]
)
def test_access_outside_a_region_is_refused(address: int, size: int, wrong_key: bool) -> None:
    pair = cabled_pair()
    target = np.zeros(100, np.uint8)
    rkey = pair.b.register(target).rkey + (1000 if wrong_key else 0)
    pair.a.queue_pair.post_write(pair.a.register(random_bytes(size)), 0, size, address, rkey, work_id=1)
    pair.a.queue_pair.post_write(None, 0, 0, 0, 0, work_id=2)
    pair.engine.run()
    first, second = pair.a.completions.poll()
    assert (first["status"], first["fault"], second["status"]) == ("remote_access_error", "local", "flushed")
    assert pair.b.queue_pair.stats()["responder_error"] == "remote_access_error"
    assert not target.any()


def test_a_refusal_that_was_lost_is_sent_again() -> None:
    pair = wired_pair()
    pair.a.queue_pair.post_write(None, 0, 4, 0, 12345)
    pair.run(FaultyWire(["deliver", "drop"]), lambda: pair.a.queue_pair.stats()["error"] != "success")
    assert pair.a.queue_pair.stats()["error"] == "remote_access_error"
    assert pair.a.queue_pair.stats()["timeouts"] == 1


def test_read_only_and_deregistered_regions_are_refused() -> None:
    for deregister in (False, True):
        pair = cabled_pair()
        region = pair.b.nic.register_memory(bytearray(8), remote_write=deregister)
        if deregister:
            region.deregister()
        pair.a.queue_pair.post_write(None, 0, 8, 0, region.rkey)
        pair.engine.run()
        assert [c["status"] for c in pair.a.completions.poll()] == ["remote_access_error"]


def test_a_message_longer_than_its_receive_is_refused() -> None:
    pair = cabled_pair()
    pair.b.queue_pair.post_receive(pair.b.register(np.zeros(1500, np.uint8)), 0, 1500, work_id=1)
    pair.a.queue_pair.post_send(None, 0, 1501)
    pair.engine.run()
    assert [(c["status"], c["fault"]) for c in pair.b.completions.poll()] == [("local_length_error", "peer")]
    assert [c["status"] for c in pair.a.completions.poll()] == ["remote_invalid_request"]


def forged(bth: dict[str, Any], payload: bytes = b"", **changes: Any) -> bytes:
    """A packet to b as if from a."""
    headers = {
        "source_mac": "02:00:00:00:00:01",
        "destination_mac": "02:00:00:00:00:02",
        "source_ip": "10.0.0.1",
        "destination_ip": "10.0.0.2",
        "bth": {"destination_qp": 0x102, **bth},
    }
    return build_packet({**headers, **changes}, payload)  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("bth", "payload"),
    [
        ({"opcode": 0x07}, bytes(MTU)),  # WRITE middle without a first
        ({"opcode": 0x08}, b"1234"),  # WRITE last without a first
        ({"opcode": 0x06}, b"1234"),  # WRITE first that is not one MTU long
        ({"opcode": 0x0A}, bytes(MTU + 4)),  # WRITE only longer than the MTU
        ({"opcode": 0x0A}, b"1234"),  # shorter than its RETH says
        ({"opcode": 0x17}, b""),  # invalidation is not offered
    ],
)
def test_malformed_requests_are_refused(bth: dict[str, Any], payload: bytes) -> None:
    pair = cabled_pair()
    rkey = pair.b.nic.register_sink(1 << 20).rkey
    reth = {"rkey": rkey, "length_bytes": MTU + 4}
    pair.engine.inject(pair.b.nic, 0, forged(bth, payload, reth=reth))
    pair.engine.run()
    assert pair.b.queue_pair.stats()["responder_error"] == "remote_invalid_request"
    assert pair.b.queue_pair.stats()["fatal_naks_sent"] == 1


@pytest.mark.parametrize(
    ("change", "counter"),
    [
        ({"source_ip": "10.0.0.9"}, "wrong_source"),
        ({"bth": {"partition_key": 1}}, "wrong_partition_key"),
        ({"bth": {"opcode": 0x24}}, "unexpected_opcode"),  # UC
        ({"bth": {"opcode": 0x0E}}, "unexpected_opcode"),  # READ response
        ({"bth": {"opcode": 0xCA}, "mrc": {}}, "unexpected_opcode"),
        ({"bth": {"opcode": 0xD1}, "mrc": {}}, "unexpected_opcode"),
        ({"bth": {"opcode": 0xDC}, "mrc": {}}, "unexpected_opcode"),
        ({"bth": {"opcode": 0x11}}, "invalid_acknowledgements"),  # for nothing sent
        ({"bth": {"opcode": 0x11, "psn": 0xFFFFF0}}, "stale_acknowledgements"),
    ],
)
def test_foreign_packets_are_counted_and_change_nothing(change: dict[str, Any], counter: str) -> None:
    pair = wired_pair()
    pair.engine.inject(pair.b.nic, 0, forged(**{"bth": {}, **change}))
    pair.step(ideal_wire)
    stats = pair.b.queue_pair.stats()
    assert stats[counter] == 1  # type: ignore[literal-required]
    assert sum(value for value in stats.values() if isinstance(value, int)) == 1


def marked(frame: bytes) -> bytes:
    """The frame as a switch passes it on that has set CE."""
    headers, payload = parse_packet(frame)
    return build_packet({**headers, "ecn": 3}, payload)


def test_ce_is_counted_and_echoed_at_most_once_in_50_us() -> None:
    pair = wired_pair(rate_bps=1_000_000_000)  # a packet in 8.7 us
    source = random_bytes(24 * MTU)
    rkey = pair.b.register(np.zeros_like(source)).rkey
    pair.a.queue_pair.post_write(pair.a.register(source), 0, len(source), 0, rkey)
    cnp_times: list[int] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        headers, _ = parse_packet(frame)
        if headers["bth"]["opcode"] == 0x81:
            assert headers["bth"]["becn"]
            assert headers["bth"]["destination_qp"] == 0x101
            assert headers["dscp"] == 48
            cnp_times.append(pair.engine.now_ps)
        return [marked(frame) if sender == "a" else frame]

    pair.run(wire, lambda: bool(pair.a.completions.poll()))
    for _ in range(10):
        pair.step(wire)
    receiver, sender = pair.b.queue_pair.stats(), pair.a.queue_pair.stats()
    assert receiver["ce_marked_packets"] == 24
    assert receiver["cnps_sent"] == sender["cnps_received"] == len(cnp_times)
    assert 3 <= len(cnp_times) <= 5  # 24 packets take 209 us
    assert min(np.diff(cnp_times)) >= 49 * US  # the wire rounds to 1 us


def test_a_mark_within_the_interval_is_answered_at_its_end() -> None:
    """The first two of three packets are marked: a CNP at once, one when 50 us are over, and no third."""
    pair = wired_pair()
    source = random_bytes(3 * MTU)
    rkey = pair.b.register(np.zeros_like(source)).rkey
    pair.a.queue_pair.post_write(pair.a.register(source), 0, len(source), 0, rkey)
    cnp_times: list[int] = []
    data = 0

    def wire(sender: str, frame: bytes) -> list[bytes]:
        nonlocal data
        if parse_packet(frame)[0]["bth"]["opcode"] == 0x81:
            cnp_times.append(pair.engine.now_ps)
        elif sender == "a":
            data += 1
            return [marked(frame) if data <= 2 else frame]
        return [frame]

    for _ in range(200):
        pair.step(wire)
    assert data == 3
    assert len(cnp_times) == 2
    assert cnp_times[1] - cnp_times[0] == 50 * US


def test_the_int_stack_is_echoed_and_recorded() -> None:
    pair = wired_pair(telemetry=True)
    hop = {"rate_code": 6, "timestamp_ns": 123, "tx_units": 45, "queue_cells": 67}
    empty = dict.fromkeys(hop, 0)
    stack = {"echo": False, "overflow": False, "hop_count": 1, "path_id": 0xABC, "hops": [hop, *[empty] * 4]}

    def stamp(sender: str, frame: bytes) -> list[bytes]:
        headers, payload = parse_packet(frame)
        if sender == "b":
            assert headers["telemetry"]["echo"]
            return [frame]
        assert headers["telemetry"]["hop_count"] == 0
        return [build_packet({**headers, "telemetry": stack}, payload)]  # type: ignore[typeddict-item]

    assert pair.a.queue_pair.last_telemetry is None
    pair.a.queue_pair.post_write(None, 0, 3000, 0, pair.b.nic.register_sink(3000).rkey)
    pair.run(stamp, lambda: bool(pair.a.completions.poll()))
    assert pair.a.queue_pair.last_telemetry == {**stack, "echo": True}


def test_buffers_live_as_long_as_they_are_needed() -> None:
    pair = cabled_pair()
    expected = random_bytes(50_000)
    target = np.zeros_like(expected)
    rkey = pair.b.register(target).rkey
    region = pair.a.register(expected.copy())
    pair.a.queue_pair.post_write(region, 0, len(expected), 0, rkey)
    region.deregister()
    del region
    pair.engine.run()
    assert np.array_equal(target, expected)


def test_what_is_posted_must_lie_in_its_region() -> None:
    pair = cabled_pair()
    region = pair.a.register(np.zeros(10, np.uint8))
    for offset, length in ((0, 11), (10, 1), (11, 0), (2**63, 2**63)):
        with pytest.raises(ValueError, match="memory region of 10"):
            pair.a.queue_pair.post_write(region, offset, length, 0, 1)
    with pytest.raises(ValueError, match="2147483649 bytes"):
        pair.a.queue_pair.post_write(None, 0, 2**31 + 1, 0, 1)
    read_only = pair.a.nic.register_memory(b"constant", remote_write=False)
    with pytest.raises(ValueError, match="without local_write"):
        pair.a.queue_pair.post_receive(read_only, 0, 8)
    with pytest.raises(BufferError):
        pair.a.nic.register_memory(b"constant")
    with pytest.raises(ValueError, match="not C-contiguous"):
        pair.a.register(np.zeros((4, 4), np.uint8)[:, :2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path_mtu_bytes": 1500}, "path_mtu_bytes is 1500"),
        ({"window_bytes": 0}, "window_bytes is 0"),
        ({"retransmission_timeout_ps": 0}, "retransmission_timeout_ps is 0"),
        ({"ack_interval_packets": 0}, "ack_interval_packets is 0"),
        ({"rnr_timer_code": 32}, "rnr_timer_code is 32"),
        ({"rnr_retry_limit": 8}, "rnr_retry_limit is 8"),
        ({"timeout_backoff_limit": 21}, "timeout_backoff_limit is 21"),
    ],
)
def test_parameters_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cabled_pair(**options)


def test_the_same_seed_gives_the_same_run() -> None:
    def outcome() -> Any:
        pair = cabled_pair(seed=7, faults={"loss": 0.1, "duplicate": 0.1})
        write(pair, random_bytes(100_000))
        return pair.engine.now_ps, pair.a.queue_pair.stats(), pair.b.queue_pair.stats()

    assert outcome() == outcome()
    assert WINDOW_BYTES < 100_000


@pytest.mark.parametrize("port", [None, 0xC000, 0xFFFF])
def test_ipv6_packets_carry_the_entropy_of_their_udp_port_as_flow_label(port: int | None) -> None:
    """As Linux's RDMA core folds a flow label into a UDP port; 0 would mean that nothing is labelled."""
    pair = wired_pair(version=6, source_udp_port=port)
    seen: list[tuple[int, int]] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        headers, _ = parse_packet(frame)
        seen.append((headers["flow_label"], headers["source_udp_port"]))
        return [frame]

    data = pair.a.register(random_bytes(3000))
    rkey = pair.b.register(np.zeros(3000, np.uint8)).rkey
    pair.a.queue_pair.post_write(data, 0, 3000, 0, rkey)
    pair.run(wire, lambda: pair.a.queue_pair.stats()["outstanding_requests"] == 0)
    assert len(seen) >= 4
    for label, udp_port in seen:
        assert label != 0
        assert 0xC000 | (label & 0x3FFF) ^ (label >> 14) == udp_port
    if port is not None:
        assert {udp_port for _, udp_port in seen} == {port}


def test_the_nic_s_entropy_seed_draws_source_ports() -> None:
    def ports(seed: int) -> list[int]:
        engine = Engine(seed=1)
        hosts = [make_host(engine, index, Link(engine), RATE_BPS, {"entropy_seed": seed}) for index in range(1, 10)]
        for host in hosts[1:]:
            host.connect(hosts[0], 4)
        return [host.queue_pair.source_udp_port for host in hosts[1:]]

    found = [ports(seed) for seed in range(8)]
    assert all(port >= 0xC000 for each in found for port in each)
    assert len({tuple(each) for each in found}) == 8
    # Another seed is more than another offset: what a linear hash maps to one number differs in each.
    assert len({first ^ second for first, second, *_ in found}) == 8
    assert ports(3) == found[3]
