"""Priority flow control: real pause frames, enough headroom, pauses that expire, frames of the standard's format."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.layers.l2 import Ether

from tests.memory.ports import GBPS
from weft.engine import Collector, Engine, Link, PortMac, SharedBuffer, TransmitPort, pfc_headroom_bytes
from weft.traffic.layers.pfc import pfc_frame

MAC = "02:01:00:00:00:00"
FRAME = 1000
XOFF = 20_000
CLASS = 0


@dataclass
class Hop:
    """A sender, a link both ways, and a switch of one lossless ingress port that drains at another rate."""

    sender: TransmitPort
    back: TransmitPort
    receiver_mac: PortMac
    sender_mac: PortMac
    output: TransmitPort
    forward: Link
    collector: Collector
    buffer: SharedBuffer


def make_hop(
    engine: Engine,
    *,
    rate_bps: int = 100 * GBPS,
    drain_bps: int = 10 * GBPS,
    delay_ps: int = 1_000_000,
    headroom_bytes: int,
    pause_quanta: int = 0xFFFF,
    back_loss: float = 0.0,
    **limits: float,
) -> Hop:
    forward = Link(engine, name="forward", delay_ps=delay_ps)
    reverse = Link(engine, name="reverse", delay_ps=delay_ps, loss=back_loss)
    end = Link(engine)
    collector = Collector(engine)
    end.connect(collector)
    sender = TransmitPort(engine, forward, rate_bps=rate_bps, queue_capacity_bytes=1 << 30)
    back = TransmitPort(engine, reverse, rate_bps=rate_bps, queue_capacity_bytes=1 << 30)
    output = TransmitPort(engine, end, rate_bps=drain_bps)
    buffer = SharedBuffer(engine, capacity_bytes=1_000_000)
    for number, port in enumerate((back, output)):
        buffer.add_port(number)
        if port is output:
            port.set_buffer(buffer, number)
    receiver_mac = PortMac(engine, back, output, 0)
    receiver_mac.enable_pfc(source_mac=MAC, pause_quanta=pause_quanta)
    receiver_mac.set_pause_limits(
        buffer,
        0,
        CLASS,
        headroom_bytes=headroom_bytes,
        **limits or {"xoff_bytes": XOFF, "hysteresis_bytes": 2 * FRAME},
    )
    forward.connect(receiver_mac)
    sender_mac = PortMac(engine, sender, Collector(engine))
    sender_mac.enable_pfc(source_mac=MAC)
    reverse.connect(sender_mac)
    return Hop(sender, back, receiver_mac, sender_mac, output, forward, collector, buffer)


def test_with_enough_headroom_nothing_is_dropped_and_the_output_never_idles(engine: Engine) -> None:
    rate, delay = 100 * GBPS, 1_000_000
    enough = pfc_headroom_bytes(rate_bps=rate, delay_ps=delay, frame_bytes=FRAME)
    assert enough == 2 * 12_500 + 2 * FRAME + 60
    hop = make_hop(engine, rate_bps=rate, delay_ps=delay, headroom_bytes=enough, xoff_bytes=40_000)
    for _ in range(2000):
        hop.sender.enqueue(bytes(FRAME))
        hop.back.enqueue(bytes(FRAME))  # the pause frame has to wait for one of these
    engine.run()
    assert hop.collector.received_packets == 2000
    times = [time for time, _, _ in hop.collector.packets]
    assert {b - a for a, b in itertools.pairwise(times)} == {800_000}
    group = hop.buffer.stats()["ports"][0]["ingress"][CLASS]
    assert group["dropped_packets"] == 0
    assert group["held_bytes"] == group["own_used_bytes"] == 0
    assert 0 < group["max_own_used_bytes"] <= enough


def test_the_headroom_is_needed_but_for_what_the_worst_case_adds(engine: Engine) -> None:
    """Both directions of the link hold 2 delay rate; without a frame of ours in the way, two frames may be left."""
    rate, delay = 100 * GBPS, 1_000_000
    enough = pfc_headroom_bytes(rate_bps=rate, delay_ps=delay, frame_bytes=FRAME)
    hop = make_hop(engine, rate_bps=rate, delay_ps=delay, headroom_bytes=enough - 4 * FRAME)
    for _ in range(500):
        hop.sender.enqueue(bytes(FRAME))
        hop.back.enqueue(bytes(FRAME))
    engine.run()
    group = hop.buffer.stats()["ports"][0]["ingress"][CLASS]
    assert group["dropped_packets"] > 0
    stats = hop.output.stats()
    assert stats["headroom_dropped"]["packets"] == group["dropped_packets"]
    assert hop.collector.received_packets == 500 - group["dropped_packets"]


@settings(deadline=None, max_examples=30)
@given(
    st.sampled_from([1, 10, 40, 100, 400]),
    st.integers(0, 5_000_000),
    st.integers(64, 4000),
    st.integers(2, 12),
    st.sampled_from([{"xoff_bytes": 5000}, {"xoff_bytes": 20_000, "hysteresis_bytes": 5000}, {"alpha": 0.25}]),
    st.lists(st.integers(60, 4000), max_size=40),
)
def test_it_never_drops_with_enough_headroom(
    rate_gbps: int, delay_ps: int, frame: int, slower: int, limits: dict[str, float], back_frames: list[int]
) -> None:
    engine = Engine()
    rate = rate_gbps * GBPS
    largest = max([frame, *back_frames])
    enough = pfc_headroom_bytes(rate_bps=rate, delay_ps=delay_ps, frame_bytes=largest)
    hop = make_hop(engine, rate_bps=rate, drain_bps=rate // slower, delay_ps=delay_ps, headroom_bytes=enough, **limits)
    count = 300
    for _ in range(count):
        hop.sender.enqueue(bytes(frame))
    for size in back_frames:
        hop.back.enqueue(bytes(size))
    engine.run()
    assert hop.collector.received_packets == count
    group = hop.buffer.stats()["ports"][0]["ingress"][CLASS]
    assert group["dropped_packets"] == group["held_bytes"] == 0
    assert not group["is_paused"]


def test_the_pause_is_on_time_and_lasts_until_the_resume(engine: Engine) -> None:
    """By hand: the k-th frame is in at 1,080 ns + 80 ns (k - 1); the output takes one each 800 ns from the first on."""
    hop = make_hop(engine, headroom_bytes=60_000)
    for _ in range(100):
        hop.sender.enqueue(bytes(FRAME))
    # Above 20,000 B held with the frame k of which (k - 1) 80 / 800 + 1 have left: k = 24, at 2,920 ns.
    pause_sent_ps = 1_080_000 + 23 * 80_000
    arrival_ps = pause_sent_ps + 4_800 + 1_000_000  # 60 B at 100 Gb/s, and the way back
    engine.run_until(pause_sent_ps - 1)
    assert hop.back.stats()["control_transmitted"]["packets"] == 0
    engine.run_until(pause_sent_ps)
    assert hop.back.stats()["control_transmitted"] == {"packets": 1, "bytes": 60}
    engine.run_until(arrival_ps - 1)
    assert not hop.sender_mac.stats()["pfc"][CLASS]["is_paused"]  # type: ignore[index]
    engine.run_until(arrival_ps)
    assert hop.sender_mac.stats()["pfc"][CLASS]["is_paused"]  # type: ignore[index]
    engine.run()
    pfc = hop.sender_mac.stats()["pfc"]
    receiver = hop.receiver_mac.stats()["pfc"]
    assert pfc is not None
    assert receiver is not None
    assert pfc[CLASS]["pauses_received"] == receiver[CLASS]["pauses_sent"] > 0
    assert pfc[CLASS]["resumes_received"] == receiver[CLASS]["resumes_sent"] > 0
    assert pfc[CLASS]["paused_ps"] > 0
    assert hop.collector.received_packets == 100


def test_a_lost_resume_is_made_up_for_by_the_end_of_the_quanta(engine: Engine) -> None:
    hop = make_hop(engine, headroom_bytes=60_000)
    frame = bytes(pfc_frame(MAC, {CLASS: 1000}))
    engine.inject(hop.sender_mac, 0, frame, 500)
    engine.run_until(600)
    hop.sender.enqueue(bytes(FRAME))
    engine.run()
    # 1000 quanta of 512 bits at 100 Gb/s, then the frame, the link, and the slower output.
    assert hop.collector.packets[0][0] == 500 + 5_120_000 + 80_000 + 1_000_000 + 800_000
    assert hop.sender_mac.stats()["pfc"][CLASS]["paused_ps"] == 5_120_000  # type: ignore[index]


def test_pauses_are_refreshed_while_the_congestion_lasts(engine: Engine) -> None:
    """Quanta much shorter than the congestion: without refreshes the sender would come back and overflow."""
    hop = make_hop(engine, headroom_bytes=30_000, drain_bps=GBPS, pause_quanta=400)
    for _ in range(60):
        hop.sender.enqueue(bytes(FRAME))
    engine.run()
    receiver = hop.receiver_mac.stats()["pfc"]
    assert receiver is not None
    assert receiver[CLASS]["pauses_sent"] > 20
    assert hop.collector.received_packets == 60


def test_other_classes_pass_a_paused_one(engine: Engine) -> None:
    hop = make_hop(engine, headroom_bytes=60_000)
    engine.inject(hop.sender_mac, 0, bytes(pfc_frame(MAC, {5: 65535})))
    engine.run_until(1)
    hop.sender.enqueue(b"5" * FRAME, 5)
    hop.sender.enqueue(b"0" * FRAME, 0)
    engine.run_until(5_000_000)
    assert [data[0] for _, _, data in hop.collector.packets] == [ord("0")]
    engine.run()
    assert [data[0] for _, _, data in hop.collector.packets] == [ord("0"), ord("5")]


def test_frames_are_those_of_the_standard(engine: Engine) -> None:
    link, collector = Link(engine), Collector(engine)
    link.connect(collector)
    back = TransmitPort(engine, link, rate_bps=GBPS)
    buffer = SharedBuffer(engine, capacity_bytes=100_000)
    output = TransmitPort(engine, Link(engine), rate_bps=GBPS)
    buffer.add_port(7)
    output.set_buffer(buffer, 7)
    mac = PortMac(engine, back, output, 7)
    mac.enable_pfc(source_mac=MAC, pause_quanta=0x1234)
    mac.set_pause_limits(buffer, 7, 3, headroom_bytes=0, xoff_bytes=1)
    sink = Link(engine)
    sink.connect(collector)
    output = TransmitPort(engine, sink, rate_bps=GBPS)
    output.set_buffer(buffer, 7)
    output.enqueue(bytes(100), 3, 7)
    output.enqueue(bytes(100), 3, 7)
    engine.run()
    frames = [Ether(data) for _, _, data in collector.packets if len(data) == 60]
    assert [bytes(frame)[:60] for frame in frames] == [
        bytes(pfc_frame(MAC, {3: quanta})).ljust(60, b"\0") for quanta in (0x1234, 0, 0x1234, 0)
    ]
    assert (frames[0].dst, frames[0].type) == ("01:80:c2:00:00:01", 0x8808)
    assert frames[0][MACControlClassBasedFlowControl].c3_pause_time == 0x1234


def test_unknown_mac_control_frames_are_taken_and_counted(engine: Engine) -> None:
    hop = make_hop(engine, headroom_bytes=0)
    for opcode in (0x0001, 0x0102):
        engine.inject(hop.receiver_mac, 0, bytes(12) + b"\x88\x08" + opcode.to_bytes(2, "big") + bytes(44))
    engine.inject(hop.receiver_mac, 0, bytes(12) + b"\x88\x08\x01\x01")  # cut short
    engine.run()
    stats = hop.receiver_mac.stats()
    assert stats["unknown_control_packets"] == stats["control_taken"]["packets"] == 3
    assert hop.collector.received_packets == 0


def test_what_cannot_work_is_refused(engine: Engine) -> None:
    port = TransmitPort(engine, Link(engine), rate_bps=GBPS)
    mac = PortMac(engine, port, Collector(engine))
    buffer = SharedBuffer(engine, capacity_bytes=1000)
    with pytest.raises(RuntimeError, match="port without PFC"):
        mac.set_pause_limits(buffer, 1, 3, headroom_bytes=10, xoff_bytes=10)
    with pytest.raises(ValueError, match="pause_quanta is 0"):
        mac.enable_pfc(source_mac=MAC, pause_quanta=0)
    with pytest.raises(ValueError, match="port with a rate"):
        PortMac(engine, TransmitPort(engine, Link(engine)), Collector(engine)).enable_pfc(source_mac=MAC)
    mac.enable_pfc(source_mac=MAC)
    buffer.add_port(1)
    with pytest.raises(ValueError, match="no such port"):
        mac.set_pause_limits(buffer, 2, 3, headroom_bytes=10, xoff_bytes=10)
    with pytest.raises(ValueError, match="needs a threshold"):
        mac.set_pause_limits(buffer, 1, 3, headroom_bytes=10)
    with pytest.raises(ValueError, match="own memory of ingress port 1, class 3 of 1001 B does not fit"):
        mac.set_pause_limits(buffer, 1, 3, headroom_bytes=1001, xoff_bytes=10)
