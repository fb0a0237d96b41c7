"""Serialisation to the picosecond, queues by bytes and class, and conservation of packets."""

import errno
import itertools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.utils import RawPcapReader

from tests.full_disk import files_limited_to
from weft.engine import Collector, Engine, Link, PcapWriter, TransmitPort, serialisation_ps

GBPS = 10**9


@given(st.integers(0, 10_000), st.integers(1, 2 * 10**12))
def test_serialisation_is_the_nearest_picosecond(size_bytes: int, rate_bps: int) -> None:
    exact = Fraction(size_bytes * 8 * 10**12, rate_bps)
    assert abs(serialisation_ps(size_bytes, rate_bps) - exact) <= Fraction(1, 2)


@pytest.mark.parametrize(
    ("rate_bps", "size_bytes", "expected_ps"),
    [(10 * GBPS, 1000, 800_000), (400 * GBPS, 64, 1280), (25 * GBPS, 1500, 480_000), (0, 9000, 0)],
)
def test_serialisation_of_usual_rates(rate_bps: int, size_bytes: int, expected_ps: int) -> None:
    assert serialisation_ps(size_bytes, rate_bps) == expected_ps


def test_a_burst_leaves_back_to_back(engine: Engine, make_line: Callable[..., tuple]) -> None:
    port, _, collector = make_line(rate_bps=100 * GBPS, delay_ps=1_000_000)
    sizes = [64, 1500, 9000, 64, 1]
    engine.run_until(123)
    for size in sizes:
        assert port.enqueue(bytes(size))
    engine.run()
    end_ps, expected = 123, []
    for size in sizes:
        end_ps += size * 80
        expected.append((end_ps + 1_000_000, 0, bytes(size)))
    assert collector.packets == expected


def test_an_idle_port_starts_at_once_and_a_busy_one_when_free(engine: Engine, make_line: Callable[..., tuple]) -> None:
    port, _, collector = make_line(rate_bps=10 * GBPS)
    for time_ps in (0, 500_000, 5_000_000):  # 1,000 bytes take 800,000 ps
        engine.schedule_at(time_ps, lambda: port.enqueue(bytes(1000)))
    engine.run()
    assert [time_ps for time_ps, _, _ in collector.packets] == [800_000, 1_600_000, 5_800_000]


def test_a_packet_rate_paces_packets_of_every_size(engine: Engine, make_line: Callable[..., tuple]) -> None:
    """A packet starts an interval behind the one before, or when that has left, whichever is later."""
    port, _, collector = make_line(rate_bps=10 * GBPS)
    port.packet_rate_pps = 1_000_000  # one in 1,000,000 ps; 2,500 bytes take 2,000,000 ps
    for size in (100, 2500, 100, 100):
        assert port.enqueue(bytes(size))
    engine.run()
    assert [time_ps for time_ps, _, _ in collector.packets] == [80_000, 3_000_000, 3_080_000, 4_080_000]
    engine.schedule_at(4_500_000, lambda: port.enqueue(bytes(100)))  # within the interval
    engine.run()
    assert collector.packets[-1][0] == 5_080_000
    port.packet_rate_pps = 0
    engine.run_until(7_000_000)
    for _ in range(2):
        port.enqueue(bytes(100))
    engine.run()
    assert [time_ps for time_ps, _, _ in collector.packets[-2:]] == [7_080_000, 7_160_000]


def test_a_capacity_that_changes_drops_what_comes_then(engine: Engine, make_line: Callable[..., tuple]) -> None:
    port, _, collector = make_line(rate_bps=10 * GBPS)
    assert [port.enqueue(bytes(1000)) for _ in range(4)] == [True] * 4
    port.queue_capacity_bytes = 2000
    assert not port.enqueue(bytes(1000))
    engine.run()
    assert len(collector.packets) == 4
    assert [port.enqueue(bytes(1000)) for _ in range(4)] == [True, True, True, False]
    with pytest.raises(ValueError, match="queue_capacity_bytes is 0"):
        port.queue_capacity_bytes = 0


def test_hops_add_up(engine: Engine) -> None:
    """Store and forward over three hops: (serialisation + delay) each."""
    collector = Collector(engine)
    node, delays, rates = collector, [3_000, 5_000, 7_000], [10 * GBPS, 40 * GBPS, 100 * GBPS]
    for delay_ps, rate_bps in zip(reversed(delays), reversed(rates), strict=True):
        link = Link(engine, delay_ps=delay_ps)
        link.connect(node)
        node = TransmitPort(engine, link, rate_bps=rate_bps)
    engine.inject(node, 0, bytes(1250))
    engine.run()
    assert collector.packets[0][0] == 1_000_000 + 250_000 + 100_000 + sum(delays)


def test_incast_drains_at_line_rate(engine: Engine, make_line: Callable[..., tuple]) -> None:
    port, _, collector = make_line(rate_bps=10 * GBPS)
    senders = 8
    for _ in range(senders):
        link = Link(engine, delay_ps=1_000)
        link.connect(port)
        sender = TransmitPort(engine, link, rate_bps=10 * GBPS)
        for _ in range(10):
            sender.enqueue(bytes(1000))
    engine.run()
    first_ps = 800_000 + 1_000 + 800_000
    assert [t for t, _, _ in collector.packets] == [first_ps + 800_000 * i for i in range(senders * 10)]
    # The eight of the last round arrive just before the tenth packet leaves.
    assert port.stats()["max_queue_depth_bytes"] == 1000 * (8 * 10 - 9)


def test_capacity_counts_bytes_of_all_classes(make_line: Callable[..., tuple]) -> None:
    port, _, _ = make_line(rate_bps=GBPS, queue_capacity_bytes=3000)
    assert port.enqueue(bytes(1000))  # on the wire, not in the queue
    assert port.enqueue(bytes(2000), 7)
    assert port.enqueue(bytes(999), 0)
    assert not port.enqueue(bytes(2), 3)
    assert port.enqueue(bytes(1), 3)
    stats = port.stats()
    assert stats["queue_depth_bytes"] == stats["max_queue_depth_bytes"] == 3000
    assert stats["queue_depth_packets"] == 3
    assert stats["tail_dropped"] == {"packets": 1, "bytes": 2}
    assert stats["classes"][3]["tail_dropped"] == {"packets": 1, "bytes": 2}
    assert [c["queue_depth_bytes"] for c in stats["classes"]] == [999, 0, 0, 1, 0, 0, 0, 2000]


def test_higher_classes_go_first_and_each_in_order(engine: Engine, make_line: Callable[..., tuple]) -> None:
    port, _, collector = make_line(rate_bps=GBPS)
    port.enqueue(b"first, so on the wire already")
    for data, priority_class in [(b"a0", 0), (b"a3", 3), (b"a7", 7), (b"b3", 3), (b"b0", 0), (b"b7", 99)]:
        port.enqueue(data, priority_class)
    engine.run()
    assert [data for _, _, data in collector.packets[1:]] == [b"a7", b"b7", b"a3", b"b3", b"a0", b"b0"]
    assert port.stats()["classes"][7]["transmitted"] == {"packets": 2, "bytes": 4}


def test_an_unpaced_port_never_queues(engine: Engine, make_line: Callable[..., tuple]) -> None:
    port, _, collector = make_line(delay_ps=5)
    for i in range(50):
        port.enqueue(bytes([i]))
    engine.run()
    assert collector.packets == [(5, 0, bytes([i])) for i in range(50)]
    assert port.stats()["max_queue_depth_bytes"] == 0


def test_a_changed_rate_holds_from_the_next_packet(engine: Engine, make_line: Callable[..., tuple]) -> None:
    port, _, collector = make_line(rate_bps=GBPS)
    port.enqueue(bytes(100))
    port.enqueue(bytes(100))
    port.rate_bps = 10 * GBPS
    engine.run()
    assert [t for t, _, _ in collector.packets] == [800_000, 880_000]


def test_reset_keeps_the_depth(make_line: Callable[..., tuple]) -> None:
    port, _, _ = make_line(rate_bps=GBPS)
    for _ in range(3):
        port.enqueue(bytes(100))
    port.reset_stats()
    stats = port.stats()
    assert stats["transmitted"] == {"packets": 0, "bytes": 0}
    assert stats["queue_depth_bytes"] == stats["max_queue_depth_bytes"] == 200


@pytest.mark.parametrize("classes", [0, 9, -1])
def test_classes_outside_one_to_eight_are_refused(engine: Engine, classes: int) -> None:
    with pytest.raises(ValueError, match="1 to 8"):
        TransmitPort(engine, Link(engine), classes=classes)


def test_a_port_without_room_is_refused(engine: Engine) -> None:
    with pytest.raises(ValueError, match="queue_capacity_bytes"):
        TransmitPort(engine, Link(engine), queue_capacity_bytes=0)


def test_a_link_to_nowhere_is_an_error(engine: Engine) -> None:
    port = TransmitPort(engine, Link(engine))
    with pytest.raises(RuntimeError, match="connected to nothing"):
        port.enqueue(bytes(60))


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3_000_000), st.integers(1, 3000), st.integers(0, 7)), max_size=60),
    st.integers(1000, 9000),
)
def test_every_byte_is_sent_queued_or_dropped(packets: list[tuple[int, int, int]], capacity: int) -> None:
    engine = Engine()
    link = Link(engine, delay_ps=10_000)
    collector = Collector(engine)
    link.connect(collector)
    port = TransmitPort(engine, link, rate_bps=10 * GBPS, queue_capacity_bytes=capacity)
    offered = 0

    def offer(size: int, priority_class: int) -> None:
        nonlocal offered
        offered += size
        depth = port.queue_depth_bytes
        assert port.enqueue(bytes(size), priority_class) == (depth + size <= capacity)

    for time_ps, size, priority_class in packets:
        engine.schedule_at(time_ps, lambda s=size, c=priority_class: offer(s, c))
    for until_ps in (1_000_000, 2_500_000, 10**12):
        engine.run_until(until_ps)
        stats = port.stats()
        assert offered == stats["transmitted"]["bytes"] + stats["tail_dropped"]["bytes"] + stats["queue_depth_bytes"]
        assert stats["queue_depth_bytes"] == sum(c["queue_depth_bytes"] for c in stats["classes"])
        assert stats["max_queue_depth_bytes"] <= capacity
    assert collector.received_bytes == port.stats()["transmitted"]["bytes"]


def test_packets_are_returned_to_the_pool(engine: Engine, make_line: Callable[..., tuple]) -> None:
    port, _, collector = make_line(rate_bps=GBPS, queue_capacity_bytes=20_000)
    for size in (1, 400, 1500, 9000, 20_000):
        port.enqueue(bytes(size))
    assert engine.live_packets == 4  # the last was dropped
    engine.run()
    assert [data for _, _, data in collector.packets] == [bytes(s) for s in (1, 400, 1500, 9000)]
    collector.clear()
    assert engine.live_packets == 0


def test_a_capture_dates_frames_by_the_start_of_serialisation(
    engine: Engine, make_line: Callable[..., tuple], tmp_path: Path
) -> None:
    port, _, _ = make_line(rate_bps=10 * GBPS)
    capture = PcapWriter(str(tmp_path / "port.pcap"), snap_length=1500)
    port.set_capture(capture)
    engine.run_until(2_000_000_000_000 + 7_000)
    frames = [bytes([i]) * (1000 + 1000 * i) for i in range(3)]
    for frame in frames:
        port.enqueue(frame)
    engine.run()
    port.set_capture(None)
    port.enqueue(bytes(60))
    capture.close()
    assert (capture.packets_written, capture.packets_failed) == (3, 0)
    with RawPcapReader(str(tmp_path / "port.pcap")) as reader:
        assert reader.nano
        records = list(reader)
    assert [data for data, _ in records] == [frame[:1500] for frame in frames]
    assert [meta.wirelen for _, meta in records] == [1000, 2000, 3000]
    assert [(meta.sec, meta.usec) for _, meta in records] == [(2, 7), (2, 807), (2, 2407)]


def test_a_capture_that_cannot_be_written_says_where() -> None:
    with pytest.raises(FileNotFoundError, match=r"no/such/dir/x\.pcap"):
        PcapWriter("no/such/dir/x.pcap")


@pytest.mark.parametrize("suffix", ["pcap", "pcapng"])
def test_a_capture_follows_no_link(tmp_path: Path, suffix: str) -> None:
    """A lab writes as root to folders of others."""
    elsewhere, path = tmp_path / "elsewhere", tmp_path / f"port.{suffix}"
    elsewhere.write_text("kept")
    path.symlink_to(elsewhere)
    with pytest.raises(OSError, match=rf"port\.{suffix}"):
        PcapWriter(str(path))
    assert elsewhere.read_text() == "kept"


@pytest.mark.parametrize("suffix", ["pcap", "pcapng"])
def test_a_capture_without_room_says_so_as_it_is_closed(
    engine: Engine, make_line: Callable[..., tuple], tmp_path: Path, suffix: str
) -> None:
    """A limit on the size of files stands for a full disk."""
    port, _, _ = make_line(rate_bps=10 * GBPS)
    path = tmp_path / f"port.{suffix}"
    capture = PcapWriter(str(path))
    port.set_capture(capture)
    with files_limited_to(10_000):
        for _ in range(20):
            port.enqueue(bytes(1000))
        engine.run()
        assert capture.error == errno.EFBIG
        with pytest.raises(OSError, match=rf"port\.{suffix}' is incomplete: File too large"):
            capture.close()
    capture.close()  # said once
    assert capture.packets_written + capture.packets_failed == 20
    assert 0 < capture.packets_failed < 20
    with RawPcapReader(str(path)) as reader:
        assert 0 < len(list(reader)) <= 10


def test_what_comes_serialised_passes_as_it_comes_and_bursts_are_held_to_the_rate(
    engine: Engine,
) -> None:
    collector, link = Collector(engine), Link(engine)
    link.connect(collector)
    port = TransmitPort(engine, link, rate_bps=10 * GBPS, arrivals_serialised=True)
    # 1,000 bytes take 800,000 ps: two paced by the sender, one late by 100,000 ps, the next on time; three at once.
    for time_ps in (1_000_000, 1_800_000, 2_700_000, 3_400_000, 9_000_000, 9_000_000, 9_000_000):
        engine.schedule_at(time_ps, lambda: port.enqueue(bytes(1000)))
    engine.run()
    assert [time_ps for time_ps, _, _ in collector.packets] == [
        1_000_000, 1_800_000, 2_700_000, 3_500_000, 9_000_000, 9_800_000, 10_600_000,
    ]  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 3_000_000), st.integers(64, 9000)), min_size=1, max_size=40))
def test_no_interval_carries_more_than_the_rate_and_one_frame(arrivals: list[tuple[int, int]]) -> None:
    engine = Engine()
    collector = Collector(engine)
    link = Link(engine)
    link.connect(collector)
    port = TransmitPort(engine, link, rate_bps=100 * GBPS, arrivals_serialised=True)
    at_ps = 0
    for gap_ps, size in arrivals:
        at_ps += gap_ps
        engine.schedule_at(at_ps, lambda size=size: port.enqueue(bytes(size)))
    engine.run()
    ends = [(time_ps, len(data)) for time_ps, _, data in collector.packets]
    assert len(ends) == len(arrivals)
    for (before_ps, _), (after_ps, size) in itertools.pairwise(ends):
        assert after_ps - before_ps >= serialisation_ps(size, 100 * GBPS)
