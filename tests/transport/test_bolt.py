"""Bolt's reaction fed by hand, against a model of the paper's algorithm 2."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import raw

from tests.transport.rdma_pair import RATE_BPS, US, fixed_window, make_host
from tests.transport.test_congestion_controls import FRAME_BYTES, PRODUCT_BYTES, ROUND_TRIP_PS, control
from weft.engine import Collector, Engine, Link, NotificationReceiver, RcQueuePair, congestion_control_kind
from weft.traffic.layers import SwitchNotification

PRODUCT_PACKETS = PRODUCT_BYTES / FRAME_BYTES


class BoltModel:
    """Algorithm 2 of Arslan et al., NSDI 2023, in packets; below one packet the window halves."""

    def __init__(self) -> None:
        self.window, self.last_decrease, self.end = PRODUCT_PACKETS, 0, 0

    def notify(self, now: int, sent: int, queue_bytes: int, rate_bps: int) -> None:
        flow_rate = self.window * FRAME_BYTES * 8 / (ROUND_TRIP_PS * 1e-12)
        target = queue_bytes / FRAME_BYTES * min(1.0, flow_rate / rate_bps)
        if target and now - self.last_decrease >= (now - sent) / target:
            self.set(max(self.window - 1, 0.5) if self.window > 1 else self.window / 2)
            self.last_decrease = now

    def acknowledge(self, sequence: int, ahead: int, marked: bool) -> None:
        self.set(self.window + (not marked) + (sequence >= self.end))
        if sequence >= self.end:
            self.end = sequence + ahead

    def set(self, window: float) -> None:
        self.window = min(max(window, 0.01), 1.5 * PRODUCT_PACKETS)


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["notification", "notification", "acknowledgement"]),
        st.integers(1, 3000),  # ns since the event before
        st.integers(100, 9000),  # ns since the packet was sent
        st.integers(0, 400 * FRAME_BYTES),
        st.booleans(),
        st.integers(1, 60),  # packets in a round trip
    ),
    max_size=200,
)


@given(events=EVENTS)
@settings(max_examples=100, deadline=None)
def test_bolt_follows_its_paper(events: list[tuple[str, int, int, int, bool, int]]) -> None:
    bolt, model = control("bolt"), BoltModel()
    now, sequence = 10 * US, 0
    for kind, gap_ns, age_ns, queue_bytes, marked, ahead in events:
        now += gap_ns * 1000
        if kind == "notification":
            sent = now - age_ns * 1000
            bolt.on_switch_notification(now, sent_ps=sent, queue_bytes=queue_bytes, link_rate_bps=RATE_BPS)
            model.notify(now, sent, queue_bytes, RATE_BPS)
        else:
            bolt.on_acknowledgement(
                now,
                acknowledged_bytes=FRAME_BYTES,
                round_trip_ps=ROUND_TRIP_PS,
                sequence=sequence,
                next_sequence=sequence + ahead,
                congestion_experienced=marked,
            )
            model.acknowledge(sequence, ahead, marked)
            sequence += 1
        assert bolt.window_bytes == pytest.approx(model.window * FRAME_BYTES, abs=2)


def test_a_queue_is_drained_within_the_time_that_it_takes_to_hear_of_it() -> None:
    """Section 3.1: in rtt_src, notified of each packet, a flow alone takes off as many packets as wait."""
    bolt, now, queue = control("bolt"), 100 * US, 20
    before = bolt.window_bytes
    step = ROUND_TRIP_PS // 4 // queue
    for number in range(queue):
        at = now + number * 2 * step
        bolt.on_switch_notification(
            at, sent_ps=at - ROUND_TRIP_PS // 4, queue_bytes=queue * FRAME_BYTES, link_rate_bps=RATE_BPS
        )
    assert before - bolt.window_bytes == pytest.approx(queue * FRAME_BYTES, abs=2)


def test_a_window_below_a_packet_is_paced_and_comes_back() -> None:
    bolt = control("bolt")
    for number in range(1000):
        at = 100 * US + number * ROUND_TRIP_PS
        bolt.on_switch_notification(at, sent_ps=at - US, queue_bytes=10**9, link_rate_bps=RATE_BPS)
    assert 0 < bolt.window_bytes < FRAME_BYTES
    assert 0 < bolt.pacing_rate_bps < RATE_BPS / 10
    for number in range(4):
        bolt.on_acknowledgement(10**12 + number, acknowledged_bytes=FRAME_BYTES, sequence=number, next_sequence=0)
    assert bolt.window_bytes > FRAME_BYTES
    assert bolt.pacing_rate_bps == 0


@pytest.mark.parametrize(("queue_bytes", "rate_bps"), [(0, RATE_BPS), (10**6, 0), (0, 0)])
def test_a_notification_of_nothing_changes_nothing(queue_bytes: int, rate_bps: int) -> None:
    bolt = control("bolt")
    before = bolt.window_bytes
    bolt.on_switch_notification(100 * US, sent_ps=99 * US, queue_bytes=queue_bytes, link_rate_bps=rate_bps)
    assert bolt.window_bytes == before


def test_others_take_no_notifications() -> None:
    swift = control("swift")
    before = swift.window_bytes
    swift.on_switch_notification(100 * US, sent_ps=99 * US, queue_bytes=10**6, link_rate_bps=RATE_BPS)
    assert swift.window_bytes == before
    assert not congestion_control_kind("swift").needs.notifications
    assert congestion_control_kind("bolt").needs.notifications


PEERS, NUMBERS = ("10.0.0.2", "10.0.0.3"), (0x20, 0x21, 1 << 20)
ENDS = st.tuples(st.sampled_from(PEERS), st.sampled_from(NUMBERS))


@given(steps=st.lists(st.tuples(st.sampled_from(["connect", "detach", "notify", "notify"]), ENDS), max_size=40))
@settings(max_examples=60, deadline=None)
def test_a_notification_reaches_a_queue_pair_that_sends_there(steps: list[tuple[str, tuple[str, int]]]) -> None:
    """Whatever queue pairs have come and gone; one for nobody reaches none."""
    engine = Engine(seed=1)
    link = Link(engine, name="a")
    link.connect(Collector(engine))
    host = make_host(engine, 1, link, RATE_BPS)
    receiver = NotificationReceiver(host.nic)
    attached: list[tuple[tuple[str, int], RcQueuePair]] = []
    for number, (act, end) in enumerate(steps):
        alike = [each for each in attached if each[0] == end]
        if act == "connect":
            pair = RcQueuePair(
                host.nic,
                0,
                host.completions,
                queue_pair=0x100 + number,
                remote_queue_pair=end[1],
                destination_mac="02:00:00:00:00:02",
                destination_ip=end[0],
                congestion_control=fixed_window(),
                retransmission_timeout_ps=US,
            )
            attached.append((end, pair))
        elif act == "detach" and alike:
            host.nic.detach(alike[0][1])
            attached.remove(alike[0])
        elif act == "notify":
            before = [pair.stats()["stale_switch_notifications"] for _, pair in alike]
            others = sum(pair.stats()["stale_switch_notifications"] for _, pair in attached) - sum(before)
            note = SwitchNotification(queue_pair=end[1], psn=0, queue_bytes=5000, rate_mbps=100_000)
            frame = Ether(src="02:00:00:00:00:09", dst=host.mac) / IP(src=end[0], dst=host.ip(4)) / UDP() / note
            frame[UDP].dport = 0x4570
            engine.inject(host.nic, 0, raw(frame))
            engine.run_for(US)
            after = [pair.stats()["stale_switch_notifications"] for _, pair in alike]
            assert sum(after) == sum(before) + bool(alike)
            assert sum(pair.stats()["stale_switch_notifications"] for _, pair in attached) == others + sum(after)
    del receiver
