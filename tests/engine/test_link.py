"""Delay and seeded faults of a link."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.utils import RawPcapReader

from weft.engine import Collector, Engine, Link, Partitions, PcapWriter, TransmitPort

SENT = 20_000


def send(seed: int = 1, name: str = "a", count: int = SENT, **faults: float) -> tuple[list[tuple[int, int]], dict]:
    """(time_ps, number) of those that arrive of `count` packets sent 1,000 ps apart, and the counters."""
    engine = Engine(seed=seed)
    link = Link(engine, name=name, delay_ps=500, **faults)  # type: ignore[arg-type]
    collector = Collector(engine)
    link.connect(collector)
    port = TransmitPort(engine, link, rate_bps=8 * 4 * 10**9, queue_capacity_bytes=4 * count)  # 4 B in 1,000 ps
    for number in range(count):
        port.enqueue(number.to_bytes(4, "big"))
    engine.run()
    return [(t, int.from_bytes(data, "big")) for t, _, data in collector.packets], dict(link.stats())


def test_without_faults_everything_arrives_in_order() -> None:
    arrived, stats = send(count=100)
    assert arrived == [(1000 * (i + 1) + 500, i) for i in range(100)]
    assert stats["delivered_packets"] == 100
    assert stats["delivered_bytes"] == 400


@pytest.mark.parametrize("probability", [0.01, 0.3])
def test_loss_happens_as_often_as_asked(probability: float) -> None:
    arrived, stats = send(loss=probability)
    spread = 5 * (SENT * probability * (1 - probability)) ** 0.5
    assert abs(stats["lost_packets"] - SENT * probability) < spread
    assert len(arrived) == SENT - stats["lost_packets"] == stats["delivered_packets"]
    assert all(t == 1000 * (i + 1) + 500 for t, i in arrived)


def test_a_duplicate_follows_its_original() -> None:
    arrived, stats = send(duplicate=0.1)
    spread = 5 * (SENT * 0.1 * 0.9) ** 0.5
    assert abs(stats["duplicated_packets"] - SENT * 0.1) < spread
    assert len(arrived) == SENT + stats["duplicated_packets"]
    assert arrived == sorted(arrived)
    assert {i for _, i in arrived} == set(range(SENT))


def test_delayed_packets_are_overtaken() -> None:
    arrived, stats = send(delay_probability=0.2, extra_delay_ps=10_000)
    late = [(t, i) for t, i in arrived if t != 1000 * (i + 1) + 500]
    assert len(late) == stats["delayed_packets"] > 0
    assert all(t == 1000 * (i + 1) + 10_500 for t, i in late)
    assert [t for t, _ in arrived] == sorted(t for t, _ in arrived)


def test_certain_faults() -> None:
    assert send(count=10, loss=1.0)[0] == []
    assert [i for _, i in send(count=3, duplicate=1.0)[0]] == [0, 0, 1, 1, 2, 2]


def test_faults_repeat_with_seed_and_name_and_differ_without() -> None:
    faults = {"loss": 0.1, "duplicate": 0.1, "delay_probability": 0.1, "extra_delay_ps": 5000}
    first = send(count=1000, **faults)
    assert send(count=1000, **faults) == first
    assert send(count=1000, seed=2, **faults) != first
    assert send(count=1000, name="b", **faults) != first


def test_one_fault_does_not_shift_another() -> None:
    """The same packets are lost whether or not others are duplicated."""
    lost_alone = set(range(1000)) - {i for _, i in send(count=1000, loss=0.1)[0]}
    lost_beside = set(range(1000)) - {i for _, i in send(count=1000, loss=0.1, duplicate=0.5)[0]}
    assert lost_alone == lost_beside


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 50), max_size=40))
def test_several_senders_share_a_receiver_in_time_order(delays: list[int]) -> None:
    engine = Engine()
    collector = Collector(engine)
    for number, delay_ps in enumerate(delays):
        link = Link(engine, delay_ps=delay_ps)
        link.connect(collector, number)
        TransmitPort(engine, link).enqueue(bytes(1))
    engine.run()
    assert [(t, port) for t, port, _ in collector.packets] == sorted((d, i) for i, d in enumerate(delays))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 30), max_size=40), st.integers(0, 30))
def test_every_packet_arrives_in_its_time_whatever_delays_those_before(delays: list[int], pause_ps: int) -> None:
    engine = Engine()
    collector = Collector(engine)
    link = Link(engine, delay_ps=1)
    link.connect(collector)
    port = TransmitPort(engine, link)
    due: list[tuple[int, int]] = []
    for number, delay_ps in enumerate(delays):
        link.set_faults(delay_probability=1.0, extra_delay_ps=delay_ps)
        port.enqueue(bytes([number]))
        due.append((engine.now_ps + 1 + delay_ps, number))
        if number % 7 == 6:
            engine.run_until(engine.now_ps + pause_ps)  # some are gone, and others still under way
    engine.run()
    arrived = [(time_ps, data[0]) for time_ps, _, data in collector.packets]
    assert arrived == sorted(due)  # at equal times in the order of sending


def test_a_capture_dates_packets_by_their_arrival(engine: Engine, tmp_path: Path) -> None:
    link = Link(engine, delay_ps=5_000_000, delay_probability=1.0, extra_delay_ps=2_000_000)
    link.connect(Collector(engine))
    capture = PcapWriter(str(tmp_path / "link.pcap"))
    link.set_capture(capture)
    TransmitPort(engine, link, rate_bps=8 * 10**9).enqueue(bytes(1000))
    link.set_faults()
    engine.run()
    TransmitPort(engine, link).enqueue(b"undelayed")
    engine.run()
    capture.close()
    with RawPcapReader(str(tmp_path / "link.pcap")) as reader:
        records = [(data, meta.usec) for data, meta in reader]
    assert records == [(bytes(1000), 8_000), (b"undelayed", 13_000)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": 1.5}, "loss is 1.5"),
        ({"duplicate": -0.1}, "duplicate"),
        ({"delay_probability": float("nan")}, "delay_probability"),
        ({"extra_delay_ps": -1}, "delay_ps is -1"),
        ({"delay_ps": -5}, "delay_ps is -5"),
        ({"bit_error_rate": 1.5}, "bit_error_rate is 1.5"),
    ],
)
def test_impossible_options_are_refused(engine: Engine, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Link(engine, **options)


@pytest.mark.parametrize(("bit_error_rate", "size_bytes"), [(1e-4, 64), (1e-5, 1500), (1e-3, 1)])
def test_a_frame_is_corrupted_as_often_as_one_of_its_bits_is_wrong(bit_error_rate: float, size_bytes: int) -> None:
    engine = Engine(seed=1)
    link = Link(engine, name="a", bit_error_rate=bit_error_rate)
    collector = Collector(engine)
    link.connect(collector)
    port = TransmitPort(engine, link)
    for _ in range(SENT):
        port.enqueue(bytes(size_bytes))
    engine.run()
    probability = 1 - (1 - bit_error_rate) ** (8 * size_bytes)
    stats = link.stats()
    spread = 5 * (SENT * probability * (1 - probability)) ** 0.5
    assert abs(stats["corrupted_packets"] - SENT * probability) < spread
    assert stats["corrupted_bytes"] == stats["corrupted_packets"] * size_bytes
    assert len(collector.packets) == stats["delivered_packets"] == SENT - stats["corrupted_packets"]
    assert stats["lost_packets"] == 0


def test_a_corrupted_frame_is_dropped_where_it_arrives_and_not_captured(tmp_path: Path) -> None:
    engine = Engine()
    link = Link(engine, delay_ps=500, bit_error_rate=1.0)
    collector = Collector(engine)
    link.connect(collector)
    capture = PcapWriter(str(tmp_path / "link.pcap"))
    link.set_capture(capture)
    TransmitPort(engine, link).enqueue(bytes(100))
    engine.run_until(499)
    assert link.stats()["corrupted_packets"] == 0
    engine.run()
    capture.close()
    assert (link.stats()["corrupted_packets"], link.stats()["corrupted_bytes"]) == (1, 100)
    assert (link.stats()["delivered_packets"], link.stats()["delivered_bytes"]) == (0, 0)
    assert list(RawPcapReader(str(tmp_path / "link.pcap"))) == []
    assert collector.packets == []
    link.reset_stats()
    assert link.stats()["corrupted_packets"] == link.stats()["delivered_packets"] == 0


def test_corruption_shifts_no_other_fault() -> None:
    """The same packets are lost, duplicated and delayed, less those that arrive damaged; the copy of one is whole."""
    faults = {"loss": 0.1, "duplicate": 0.1, "delay_probability": 0.1, "extra_delay_ps": 5000}
    clean, clean_stats = send(count=2000, **faults)
    damaged, stats = send(count=2000, bit_error_rate=0.005, **faults)
    for cause in ("lost_packets", "duplicated_packets", "delayed_packets"):
        assert stats[cause] == clean_stats[cause]
    missing = Counter(clean)
    missing.subtract(damaged)
    assert all(count >= 0 for count in missing.values())
    assert sum(missing.values()) == stats["corrupted_packets"] > 0


@settings(deadline=None, max_examples=30)
@given(
    loss=st.floats(0, 1),
    duplicate=st.floats(0, 1),
    bit_error_rate=st.one_of(st.floats(0, 0.1), st.just(1.0)),
    delayed=st.floats(0, 1),
    seed=st.integers(0, 2**32),
)
def test_every_packet_is_delivered_or_counted_once(
    loss: float, duplicate: float, bit_error_rate: float, delayed: float, seed: int
) -> None:
    arrived, stats = send(
        seed=seed,
        count=200,
        loss=loss,
        duplicate=duplicate,
        bit_error_rate=bit_error_rate,
        delay_probability=delayed,
        extra_delay_ps=5000,
    )
    assert len(arrived) == stats["delivered_packets"]
    assert 200 + stats["duplicated_packets"] == len(arrived) + stats["lost_packets"] + stats["corrupted_packets"]
    assert stats["delivered_bytes"] + stats["lost_bytes"] + stats["corrupted_bytes"] == 4 * (
        200 + stats["duplicated_packets"]
    )


def test_a_link_is_joined_to_one_far_end_or_another() -> None:
    engine = Engine()
    first, second = Collector(engine), Collector(engine)
    link = Link(engine, delay_ps=500)
    with pytest.raises(RuntimeError, match="first far end"):
        link.add_far_end(second, 4)
    link.connect(first, 3)
    assert link.add_far_end(second, 4) == 1
    port = TransmitPort(engine, link)
    for far_end, data in ((0, b"a"), (1, b"b"), (1, b"c"), (0, b"d")):
        link.join(far_end)
        port.enqueue(data)
        engine.run()
    assert [(number, data) for _, number, data in first.packets] == [(3, b"a"), (3, b"d")]
    assert [(number, data) for _, number, data in second.packets] == [(4, b"b"), (4, b"c")]
    assert link.stats()["delivered_packets"] == 4


def test_a_link_with_packets_on_it_is_not_joined_anew() -> None:
    engine = Engine()
    collectors = [Collector(engine), Collector(engine)]
    link = Link(engine, delay_ps=500)
    link.connect(collectors[0])
    link.add_far_end(collectors[1])
    TransmitPort(engine, link).enqueue(b"lost")
    with pytest.raises(RuntimeError, match="is cut before it is joined anew"):
        link.join(1)
    with pytest.raises(IndexError, match="far end 2 of a link that has 2"):
        link.join(2)
    assert link.cut()["packets"] == 1
    link.join(1)
    engine.run()
    assert [collector.received_packets for collector in collectors] == [0, 0]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_far_end_in_another_partition_is_reached_in_time(workers: int) -> None:
    """The window is the shortest delay to any far end, also of one that is joined later."""
    partitions = Partitions(workers=workers)
    sender, near, far = (partitions.add() for _ in range(3))
    collectors = [Collector(near), Collector(far)]
    link = Link(sender, delay_ps=700)
    link.connect(collectors[0])
    assert link.add_far_end(collectors[1], 1) == 1
    port = TransmitPort(sender, link, rate_bps=8 * 10**12)  # a byte in a picosecond
    for turn in range(6):
        link.join(turn % 2)
        for _ in range(4):
            port.enqueue(bytes(100))
        partitions.run()
    times = [[time_ps for time_ps, _, _ in collector.packets] for collector in collectors]
    assert [len(each) for each in times] == [12, 12]
    assert [each == sorted(each) for each in times] == [True, True]
    assert times[0][:4] == [800, 900, 1000, 1100]
    assert times[1][0] == 1100 + 100 + 700
