"""Queue pairs of MRC: whatever the wire does, each byte arrives once; what SACKs and NACKs say of paths."""

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
    Recording,
    WiredPair,
    cabled_pair,
    fixed_window,
    ideal_wire,
    random_bytes,
    wired_pair,
)
from tests.transport.test_selective_repeat import done, post
from weft.engine import CompletionQueue, Engine, Link, MrcQueuePair, Nic, TransmitPort, parse_packet
from weft.wire.code_points import DSCP_TRIMMABLE, DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP

MTU = 256
MRC: dict[str, Any] = {
    "mrc_options": {"ev_count": 16, "ev_backups": 4, "probe_interval_ps": 20 * US},
    "path_mtu_bytes": MTU,
    "retransmission_timeout_ps": 50 * US,
    "reordering_window_ps": 3 * US,
}
HEADERS_BYTES = 14 + 40 + 8 + 12 + 4 + 16


def opcode_of(frame: bytes) -> int:
    return parse_packet(frame)[0]["bth"]["opcode"]


def trimmed(frame: bytes, dscp: int = DSCP_TRIMMED) -> bytes:
    """Return what a switch leaves of a WRITE over IPv6 that it trims."""
    immediate = 4 if opcode_of(frame) in (0xC9, 0xCB) else 0
    cut = bytearray(frame[: HEADERS_BYTES + immediate])
    cut[14:16] = (6 << 12 | dscp << 6 | (cut[14] << 8 | cut[15]) & 0x3F).to_bytes(2)
    return bytes(cut)


def marked(frame: bytes) -> bytes:
    """Return the frame, over IPv6, with congestion experienced."""
    return frame[:15] + bytes([frame[15] | 0x30]) + frame[16:]


def is_write(frame: bytes) -> bool:
    return 0xC6 <= opcode_of(frame) <= 0xCB


class Wire:
    """Does this to the first frames, and delivers all others: two ways with one list."""

    def __init__(self, actions: Iterable[str]) -> None:
        self._left = list(actions)
        self._held: dict[str, list[bytes]] = {"a": [], "b": []}

    def __call__(self, sender: str, frame: bytes) -> list[bytes]:
        action = self._left.pop(0) if self._left else "deliver"
        if action == "drop":
            return []
        if action == "trim" and is_write(frame):
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


ACTIONS = ("deliver", "drop", "duplicate", "hold", "trim")


@pytest.mark.parametrize("length", [4, pytest.param(6, marks=pytest.mark.slow)])
def test_every_fate_of_the_first_frames_ends_well(length: int) -> None:
    """Frames of data, SACKs, NACKs and probes alike; the next ones are sent by what became of these."""
    for actions in product(ACTIONS, repeat=length):
        arrives_once_and_in_order(wired_pair(**MRC, version=6, **PATIENT), Wire(actions), [2 * MTU, 1])


@given(
    actions=st.lists(
        st.sampled_from(["deliver", "deliver", "deliver", "drop", "duplicate", "hold", "trim", "mark"]), max_size=80
    ),
    sizes=st.lists(st.integers(0, 5 * MTU), min_size=1, max_size=8),
    psn=st.sampled_from([0, 0xFFFFFD]),
    ack_interval=st.sampled_from([1, 3]),
)
@settings(max_examples=120, deadline=None)
def test_whatever_the_wire_does_all_arrives_once_and_in_order(
    actions: list[str], sizes: list[int], psn: int, ack_interval: int
) -> None:
    pair = wired_pair(**MRC, version=6, initial_psn=psn, **PATIENT, ack_interval_packets=ack_interval)
    arrives_once_and_in_order(pair, Wire(actions), sizes)


@pytest.mark.parametrize("version", [4, 6])
def test_faults_of_a_link_cost_time_and_nothing_else(version: int) -> None:
    faults = {
        "loss": 0.01,
        "duplicate": 0.01,
        "delay_probability": 0.02,
        "extra_delay_ps": 5 * US,
    }
    pair = cabled_pair(**MRC, **PATIENT, version=version, faults=faults, window_bytes=64 * 1024)
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
    assert pair.a.queue_pair.mrc_stats()["evs_to_assumed_bad"] > 0
    assert pair.a.queue_pair.mrc_stats()["probes_answered"] > 0


def test_packets_take_all_entropy_values_in_turn() -> None:
    pair = wired_pair(**MRC, version=6)
    seen: list[int] = []

    def wire(_sender: str, frame: bytes) -> list[bytes]:
        headers, _ = parse_packet(frame)
        if is_write(frame):
            seen.append(headers["source_udp_port"] << 16 | headers["flow_label"])
            assert headers["dscp"] == DSCP_TRIMMABLE
            assert headers["reth"]["length_bytes"] == 32 * MTU
            assert headers["mrc"]["meth"]["msn"] == 0
        return [frame]

    source, target = post(pair, [32 * MTU])
    pair.run(wire, done(pair, 1))
    assert np.array_equal(source, target)
    active = {each["value"] for each in pair.a.queue_pair.evs() if each["active"]}
    assert set(seen[:16]) == set(seen[16:]) == active
    assert pair.a.queue_pair.stats()["retransmitted_packets"] == 0


@pytest.mark.parametrize(("dscp", "skipped"), [(DSCP_TRIMMED, 1), (DSCP_TRIMMED_LASTHOP, 0)])
def test_a_trimmed_packet_is_sent_again_at_once_and_its_path_is_no_failure(dscp: int, skipped: int) -> None:
    pair = wired_pair(**MRC, version=6)
    cut: list[bytes] = []

    def wire(_sender: str, frame: bytes) -> list[bytes]:
        if is_write(frame) and not cut:
            cut.append(frame)
            return [trimmed(frame, dscp)]
        return [frame]

    source, target = post(pair, [20 * MTU])
    pair.run(wire, done(pair, 1), limit_steps=40)
    assert np.array_equal(source, target)
    counters, answers = pair.a.queue_pair.mrc_stats(), pair.b.queue_pair.mrc_stats()
    assert answers["trim_nacks_sent"] == counters["trim_nacks_received"] == 1
    assert counters["evs_to_skip"] == skipped
    assert counters["evs_to_assumed_bad"] == 0
    stats = pair.a.queue_pair.stats()
    assert (stats["retransmitted_packets"], stats["timeouts"]) == (1, 0)


def test_marks_have_paths_passed_over_once() -> None:
    pair = wired_pair(**MRC, version=6)

    def wire(sender: str, frame: bytes) -> list[bytes]:
        return [marked(frame)] if sender == "a" else [frame]

    source, target = post(pair, [64 * MTU])
    pair.run(wire, done(pair, 1))
    assert np.array_equal(source, target)
    assert pair.a.queue_pair.mrc_stats()["evs_to_skip"] > 0
    assert pair.a.queue_pair.stats()["retransmitted_packets"] == 0


def test_dead_paths_are_left_and_come_back_when_probes_do() -> None:
    pair = wired_pair(**MRC, version=6)
    dead = {each["value"] >> 16 for each in pair.a.queue_pair.evs()[:6]}
    broken = [True]

    def wire(sender: str, frame: bytes) -> list[bytes]:
        lost = broken[0] and sender == "a" and parse_packet(frame)[0]["source_udp_port"] in dead
        return [] if lost else [frame]

    def states() -> list[str]:
        return [each["state"] for each in pair.a.queue_pair.evs()]

    source = random_bytes(4000 * MTU, 1)
    target = np.zeros_like(source)
    rkey = pair.b.register(target).rkey
    pair.a.queue_pair.post_write(pair.a.register(source), 0, len(source), 0, rkey, immediate=1, work_id=1)
    pair.run(wire, lambda: states()[:6] == ["assumed_bad"] * 6, limit_steps=100)
    assert "assumed_bad" not in states()[6:]
    for _ in range(20):  # until packets that were on their way by then have been found lost
        pair.step(wire)
    retransmitted = pair.a.queue_pair.stats()["retransmitted_packets"]
    for _ in range(40):
        pair.step(wire)
    assert pair.a.queue_pair.stats()["retransmitted_packets"] == retransmitted
    broken[0] = False
    pair.run(wire, lambda: "assumed_bad" not in states(), limit_steps=60)
    pair.run(wire, done(pair, 1))
    assert np.array_equal(source, target)
    assert pair.a.queue_pair.stats()["timeouts"] == 0


def test_a_lost_last_packet_is_asked_for_before_the_timeout() -> None:
    pair = wired_pair(**MRC | {"retransmission_timeout_ps": 500 * US}, version=6)
    lost: list[bytes] = []

    def wire(_sender: str, frame: bytes) -> list[bytes]:
        if opcode_of(frame) == 0xC9 and not lost:
            lost.append(frame)
            return []
        return [frame]

    source, target = post(pair, [4 * MTU])
    pair.run(wire, done(pair, 1), limit_steps=60)
    assert np.array_equal(source, target)
    assert pair.a.queue_pair.stats()["timeouts"] == 0
    assert pair.a.queue_pair.mrc_stats()["probes_answered"] == 1


def test_packets_of_slow_paths_are_sent_again_until_the_window_fits_them() -> None:
    """Four of sixteen paths take 6 us longer, two reordering windows; nothing is lost."""
    pair = wired_pair(**MRC, version=6, **PATIENT, window_bytes=40 * (MTU + 100))
    slow: dict[int, bool] = {}
    held: list[tuple[int, bytes]] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        if sender == "b":
            return [frame]
        now = pair.engine.now_ps
        due = [each for at, each in held if at <= now]
        held[:] = [(at, each) for at, each in held if at > now]
        port = parse_packet(frame)[0]["source_udp_port"]
        if slow.setdefault(port, len(slow) % 4 == 0):
            held.append((now + 6 * US, frame))
            return due
        return [*due, frame]

    def repeated(packets: int) -> int:
        before = pair.a.queue_pair.stats()["retransmitted_packets"]
        source, target = post(pair, [packets * MTU])
        pair.run(wire, done(pair, 1))
        assert np.array_equal(source, target)
        return pair.a.queue_pair.stats()["retransmitted_packets"] - before

    assert repeated(400) > 0
    assert repeated(2000) < 10
    assert pair.a.queue_pair.stats()["timeouts"] == 0


RC: dict[str, Any] = {"retransmission": "selective-repeat", "path_mtu_bytes": MTU, "reordering_window_ps": 3 * US}


def lost_second(sender: str) -> tuple[Any, list[bytes]]:
    """Return a wire that loses the second packet of data of one end, and all that this end has sent of it."""
    seen: list[bytes] = []

    def wire(end: str, frame: bytes) -> list[bytes]:
        if end != sender or len(frame) < MTU:
            return [frame]
        seen.append(frame)
        return [] if len(seen) == 2 else [frame]

    return wire, seen


@pytest.mark.parametrize("options", [MRC, RC], ids=["mrc", "rc"])
def test_time_goes_on_after_a_failure_while_a_loss_is_about_to_be_found(options: dict[str, Any]) -> None:
    pair = wired_pair(**options, version=6)
    kept = post(pair, [8 * MTU])
    wire, _ = lost_second("a")
    while not pair.a.queue_pair.stats()["acknowledgements_received"]:
        pair.step(wire)
    pair.a.queue_pair.flush()
    now_ps = pair.engine.now_ps
    for _ in range(20):
        pair.step(wire)
    assert pair.engine.now_ps == now_ps + 20 * US
    assert [each["status"] for each in pair.a.completions.poll()] == ["flushed"]
    assert len(kept) == 2


def test_a_responder_that_has_failed_sends_no_data_of_reads() -> None:
    pair = wired_pair(**RC)
    source = random_bytes(8 * MTU)
    target = np.zeros_like(source)
    region = pair.b.nic.register_memory(source, virtual_address=1 << 40, remote_read=True)
    pair.a.queue_pair.post_read(pair.a.register(target), 0, 8 * MTU, 1 << 40, region.rkey, work_id=1)
    wire, seen = lost_second("b")
    while not pair.b.queue_pair.stats()["acknowledgements_received"]:
        pair.step(wire)
    pair.b.queue_pair.flush()
    sent = len(seen)
    for _ in range(20):
        pair.step(wire)
    assert len(seen) == sent


def test_a_silent_peer_ends_the_connection() -> None:
    pair = wired_pair(**MRC, version=6, retry_limit=2)
    post(pair, [MTU, MTU])
    seen: list[str] = []

    def finished() -> bool:
        seen.extend(each["status"] for each in pair.a.completions.poll())
        return len(seen) == 2

    pair.run(lambda _sender, _frame: [], finished)
    assert seen == ["retry_exceeded", "flushed"]


def test_memory_that_is_not_the_peer_s_is_refused() -> None:
    pair = wired_pair(**MRC, version=6)
    pair.a.queue_pair.post_write(None, 0, 3 * MTU, 0, 0x777, work_id=1)
    seen: list[str] = []

    def finished() -> bool:
        seen.extend(each["status"] for each in pair.a.completions.poll())
        return bool(seen)

    pair.run(ideal_wire, finished)
    assert seen == ["remote_access_error"]
    assert pair.b.queue_pair.stats()["responder_error"] == "remote_access_error"
    assert pair.b.queue_pair.stats()["fatal_naks_sent"] == 1


def test_denied_entropy_values_carry_nothing() -> None:
    pair = wired_pair(**MRC, version=6)
    denied = pair.a.queue_pair.evs()[3]["value"] >> 16
    pair.a.queue_pair.deny_ev(3)
    ports: set[int] = set()

    def wire(sender: str, frame: bytes) -> list[bytes]:
        if sender == "a":
            ports.add(parse_packet(frame)[0]["source_udp_port"])
        return [frame]

    post(pair, [64 * MTU])
    pair.run(wire, done(pair, 1))
    assert denied not in ports
    pair.a.queue_pair.allow_ev(3)
    assert pair.a.queue_pair.evs()[3]["state"] == "good"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retransmission": "go-back-n"}, "retransmission go-back-n does not go with MRC"),
        ({"telemetry": True}, "telemetry .INT. does not go with MRC"),
        ({"line_format": "ll"}, "a line format does not go with MRC"),
        ({"segment_packets": 2}, "segment_packets above 1 does not go with MRC"),
        ({"mrc_options": {"probe_interval_ps": 0}}, "probe_interval_ps is 0 .valid: above 0"),
        ({"mrc_options": {"data_dscp": 12}}, "data_dscp is 12"),
        ({"mrc_options": {"ev_count": 0}}, "valid: an EV for each plane"),
    ],
)
def test_what_does_not_go_with_mrc_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wired_pair(**MRC | options, version=6)


def two_planes(**options: Any) -> tuple[Engine, list[Any], list[Link]]:
    """Return two hosts that two cables join, with one queue pair over both."""
    engine = Engine(seed=1)
    links: list[Link] = []
    nics, queues = [], []
    for index in (1, 2):
        nic = Nic(engine, f"h{index}")
        for plane in range(2):
            link = Link(engine, name=f"{index}-{plane}", delay_ps=US)
            port = TransmitPort(engine, link, rate_bps=100_000_000_000)
            nic.add_port(port, mac=f"02:00:00:00:{plane:02x}:{index:02x}", addresses=[f"10.{plane}.0.{index}"])
            links.append(link)
        nics.append(nic)
    for index, nic in enumerate(nics):
        for plane in range(2):
            links[2 * (1 - index) + plane].connect(nic, plane)
    for index, nic in enumerate(nics, 1):
        completions = CompletionQueue(engine)
        ends = [(plane, f"02:00:00:00:{plane:02x}:{3 - index:02x}", f"10.{plane}.0.{3 - index}") for plane in range(2)]
        queue_pair = MrcQueuePair(
            nic,
            0,
            completions,
            queue_pair=0x100 + index,
            remote_queue_pair=0x100 + 3 - index,
            destination_mac=ends[0][1],
            destination_ip=ends[0][2],
            more_planes=ends[1:],
            congestion_control=fixed_window(256 * 1024),
            mrc_options={"ev_count": 16, "ev_backups": 4, "probe_interval_ps": 20 * US},
            retransmission_timeout_ps=50 * US,
            reordering_window_ps=3 * US,
            **options,
        )
        queues.append((nic, completions, queue_pair))
    return engine, queues, links


def test_one_queue_pair_fills_both_planes_and_survives_one() -> None:
    engine, ((sending, completions, sender), (receiving, _, _)), links = two_planes()
    source = random_bytes(2_000_000, 1)
    target = np.zeros_like(source)
    rkey = receiving.register_memory(target).rkey
    sender.post_write(sending.register_memory(source), 0, len(source), 0, rkey, immediate=1, work_id=1)
    engine.run_for(40 * US)
    received = [receiving.stats(plane)["received_packets"] for plane in range(2)]
    assert min(received) > 0.9 * max(received)
    for link in links[::2]:
        link.set_faults(loss=1.0)
    engine.run_for(5 * MS)
    assert [each["status"] for each in completions.poll()] == ["success"]
    assert np.array_equal(source, target)
    assert {each["state"] for each in sender.evs() if each["plane"] == 0} == {"assumed_bad"}
    # Half of the SACKs were lost when the plane was; what they told, others repeat.
    assert "assumed_bad" not in {each["state"] for each in sender.evs() if each["plane"] == 1}


def test_all_legs_of_a_detached_queue_pair_get_nothing() -> None:
    engine, ((sending, completions, sender), (receiving, _, receiver)), _ = two_planes(retry_limit=1)
    receiving.detach(receiver)
    sender.post_write(None, 0, 5000, 0, 1, work_id=1)
    engine.run_for(5 * MS)
    assert [each["status"] for each in completions.poll()] == ["retry_exceeded"]
    assert all(receiving.stats(plane)["dropped"]["unknown_queue_pair"] > 0 for plane in range(2))
    assert [receiving.stats(plane)["received_packets"] for plane in range(2)] == [0, 0]
    sending.detach(sender)


def limited(**limits: int) -> dict[str, Any]:
    return {**MRC, "mrc_options": {**MRC["mrc_options"], **limits}, "version": 6, **PATIENT}


@pytest.mark.parametrize("limits", [{"mpr": 1}, {}], ids=["one", "most"])
def test_no_more_packets_are_under_way_than_mpr_says(limits: dict[str, int]) -> None:
    pair = wired_pair(**limited(**limits))
    pair.a.queue_pair.post_write(None, 0, 400 * MTU, 0, 1)
    recording = Recording()
    for _ in range(400):
        pair.step(lambda sender, frame: recording(sender, frame) and [])
    sent = {parse_packet(frame)[0]["bth"]["psn"] for frame in recording.frames if is_write(frame)}
    if limits:
        assert sent == set(range(128))
    else:
        assert len(sent) > 128


def test_a_peer_gets_packets_sent_again_that_are_further_ahead_than_it_may_be() -> None:
    pair = wired_pair(**limited(mpr_dest=1))
    source, target = post(pair, [300 * MTU])
    seen = 0

    def without_the_first(_sender: str, frame: bytes) -> list[bytes]:
        nonlocal seen
        seen += 1
        return [] if seen == 1 else [frame]

    pair.run(without_the_first, done(pair, 1))
    assert np.array_equal(source, target)
    assert pair.b.queue_pair.stats()["out_of_window_packets"] > 0


def test_what_the_sending_half_needs_comes_later() -> None:
    """As for queue pairs that receive before they may send."""
    pair = wired_pair(**MRC, version=6, initial_psn=7)
    sending = {"retransmission_timeout_ps": 50 * US, "retry_limit": 3, "even_retries": 3, "max_wimm": 1, "mpr": 1}
    with pytest.raises(ValueError, match="mpr is 0"):
        pair.a.queue_pair.begin_sending(initial_psn=1, **{**sending, "mpr": 0})
    pair.a.queue_pair.begin_sending(initial_psn=0xFFFFFF, **sending)
    pair.a.queue_pair.post_write(None, 0, 2 * MTU, 0, 1)
    recording = Recording()
    for _ in range(5):
        pair.step(lambda sender, frame: recording(sender, frame) and [])
    assert [parse_packet(frame)[0]["bth"]["psn"] for frame in recording.frames][:2] == [0xFFFFFF, 0]
    with pytest.raises(RuntimeError, match="posted before"):
        pair.a.queue_pair.begin_sending(initial_psn=0, **sending)


@pytest.mark.parametrize("even", [0, 2, 4])
def test_timeouts_begin_to_double_after_the_even_ones(even: int) -> None:
    """Each sends the packet again."""
    pair = wired_pair(**MRC, version=6)
    timeout_ps = 50 * US
    pair.a.queue_pair.begin_sending(
        initial_psn=0, retransmission_timeout_ps=timeout_ps, retry_limit=4, even_retries=even, max_wimm=1, mpr=1
    )
    post(pair, [1])
    pair.run(lambda _sender, _frame: [], lambda: pair.a.queue_pair.stats()["error"] == "retry_exceeded")
    doublings = [max(0, retry - even) for retry in range(5)]
    expected_ps = sum(timeout_ps << each for each in doublings)
    assert expected_ps <= pair.engine.now_ps < expected_ps + timeout_ps


def test_writes_are_refused_by_an_end_that_lets_its_peer_write_nothing() -> None:
    pair = wired_pair(**MRC, version=6)
    pair.b.queue_pair.set_remote_access(write=False, read=True, atomic=True)
    post(pair, [1])
    completed: list[dict[str, Any]] = []

    def is_done() -> bool:
        completed.extend(pair.a.completions.poll())
        return bool(completed)

    pair.run(ideal_wire, is_done)
    assert [each["status"] for each in completed] == ["remote_invalid_request"]
