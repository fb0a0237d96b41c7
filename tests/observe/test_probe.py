"""Probes: what they record equals what can be computed by hand, and recording changes nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engine import (
    Collector,
    Engine,
    Link,
    Probe,
    TransmitPort,
    counted_drops,
    drop_names,
    record_types,
)

RATE_BPS = 10 * 10**9
FRAME_BYTES = 1000
FRAME_PS = FRAME_BYTES * 8 * 10**12 // RATE_BPS


def make_line(engine, capacity_bytes=1 << 20, **link_options):
    link = Link(engine, **link_options)
    collector = Collector(engine)
    link.connect(collector)
    return TransmitPort(engine, link, rate_bps=RATE_BPS, queue_capacity_bytes=capacity_bytes), link, collector


def expand(table, place, priority_class, times_ps):
    """The series at these instants: a row stands until the next one."""
    mine = (table["place"] == place) & (table["priority_class"] == priority_class)
    rows = np.searchsorted(table["time_ps"][mine], times_ps, side="right") - 1
    return [
        (int(table["queue_bytes"][mine][row]), int(table["transmitted_bytes"][mine][row])) if row >= 0 else (0, 0)
        for row in rows
    ]


def test_a_burst_drains_as_its_closed_form_says():
    engine = Engine(seed=1)
    port, _, _ = make_line(engine)
    probe = Probe(engine)
    interval_ps = 300_000
    probe.start_sampling(interval_ps)
    probe.sample(port, place=7)
    count = 20
    for _ in range(count):
        port.enqueue(b"\0" * FRAME_BYTES, 3)
    engine.run_until(25 * FRAME_PS)
    queues = probe.take()["queues"]
    times_ps = np.arange(0, 25 * FRAME_PS, interval_ps)
    # At time t, frames 0 to ⌊t / FRAME_PS⌋ have left the queue, and of the last of them a part the port.
    left = [min(count, int(time_ps) // FRAME_PS + 1) for time_ps in times_ps]
    sent = [min(count * FRAME_BYTES, int(time_ps) * FRAME_BYTES // FRAME_PS) for time_ps in times_ps]
    expected = [((count - n) * FRAME_BYTES, sent_bytes) for n, sent_bytes in zip(left, sent, strict=True)]
    assert expand(queues, 7, 3, times_ps) == expected
    assert set(queues["place"]) == {7}
    assert set(queues["priority_class"]) == {3}


@settings(deadline=None, max_examples=40)
@given(
    arrivals=st.lists(st.tuples(st.integers(0, 5_000_000), st.integers(0, 7), st.integers(60, 1500)), max_size=40),
    interval_ps=st.integers(50_000, 2_000_000),
)
def test_samples_equal_what_a_caller_reads_at_these_times(arrivals, interval_ps):
    def port_of(engine):
        port, _, _ = make_line(engine)
        for time_ps, priority_class, size_bytes in arrivals:
            engine.schedule_at(time_ps, lambda c=priority_class, n=size_bytes: port.enqueue(b"\0" * n, c))
        return port

    sampled = Engine(seed=1)
    port = port_of(sampled)
    probe = Probe(sampled)
    probe.start_sampling(interval_ps)
    probe.sample(port, place=0)
    end_ps = 7_000_000
    sampled.run_until(end_ps)
    queues = probe.take()["queues"]
    times_ps = range(0, end_ps + 1, interval_ps)
    series = [expand(queues, 0, priority_class, np.array(times_ps)) for priority_class in range(8)]

    sent = np.array([[sent_bytes for _, sent_bytes in each] for each in series]).sum(axis=0)
    # Whole bytes: a sample has left out less than one.
    assert np.all(np.diff(sent) <= interval_ps * FRAME_BYTES / FRAME_PS + 1)

    asked = Engine(seed=1)
    port = port_of(asked)
    for index, time_ps in enumerate(times_ps):
        asked.run_until(time_ps)
        for (queue_bytes, sent_bytes), each in zip(
            (each[index] for each in series), port.stats()["classes"], strict=True
        ):
            assert queue_bytes == each["queue_depth_bytes"]
            # The frame that is being sent has not left completely.
            assert each["transmitted"]["bytes"] - 1500 <= sent_bytes <= each["transmitted"]["bytes"]
    asked.run_until(end_ps)
    assert sampled.events_served == asked.events_served  # sampling needs no events


def test_sampling_does_not_keep_an_engine_going():
    engine = Engine(seed=1)
    port, _, collector = make_line(engine)
    probe = Probe(engine)
    probe.start_sampling(1)
    probe.sample(port, place=0)
    port.enqueue(b"\0" * FRAME_BYTES)
    engine.run()
    assert engine.now_ps == FRAME_PS
    assert collector.received_packets == 1
    assert probe.take()["queues"]["transmitted_bytes"].tolist() == list(range(1, FRAME_BYTES + 1))


def test_tail_drops_and_lost_packets_have_time_place_and_reason():
    engine = Engine(seed=1)
    port, link, collector = make_line(engine, capacity_bytes=2 * FRAME_BYTES, loss=0.5)
    probe = Probe(engine)
    probe.watch(port, 1)
    probe.watch(link, 2)
    for time_ps in (0, 10):
        engine.schedule_at(time_ps, lambda: [port.enqueue(b"\0" * FRAME_BYTES, 5) for _ in range(3)])
    engine.run()
    drops = probe.take()["drops"]
    rows = list(zip(*(drops[name].tolist() for name in drops), strict=True))
    names = drop_names()
    tail = [row for row in rows if names[row[2]] == "queue full"]
    # One frame is being sent, two wait: the burst at 10 ps finds the queue full.
    assert [row[:2] for row in tail] == [(10, 1)] * 3
    assert all(row[3:] == (5, FRAME_BYTES) for row in tail)
    lost = [row for row in rows if names[row[2]] == "link lost"]
    assert len(lost) == link.stats()["lost_packets"] > 0
    assert {row[1] for row in lost} == {2}
    assert len(lost) + collector.received_packets == 3


def test_components_that_nobody_watches_are_not_recorded():
    engine = Engine(seed=1)
    port, _, _ = make_line(engine, capacity_bytes=FRAME_BYTES)
    probe = Probe(engine)
    for _ in range(3):
        port.enqueue(b"\0" * FRAME_BYTES)
    engine.run()
    assert port.stats()["tail_dropped"]["packets"] == 1
    assert probe.take()["drops"]["time_ps"].size == 0


def test_columns_are_handed_over_and_recording_goes_on():
    engine = Engine(seed=1)
    port, _, _ = make_line(engine)
    probe = Probe(engine)
    probe.start_sampling(FRAME_PS)
    probe.sample(port, place=0)
    taken = []
    for _ in range(2):
        port.enqueue(b"\0" * FRAME_BYTES)
        engine.run_for(3 * FRAME_PS)
        taken.append(probe.take()["queues"]["transmitted_bytes"])
    assert [each.tolist() for each in taken] == [[FRAME_BYTES], [2 * FRAME_BYTES]]
    assert all(each.dtype == np.int64 and each.base is not None for each in taken)


def test_rows_beyond_the_limit_are_counted():
    engine = Engine(seed=1)
    port, _, _ = make_line(engine)
    probe = Probe(engine, row_limit=3)
    probe.start_sampling(FRAME_PS)
    probe.sample(port, place=0)
    for _ in range(10):
        port.enqueue(b"\0" * FRAME_BYTES)
    engine.run()
    assert probe.take()["queues"]["time_ps"].size == 3
    assert probe.rows_lost()["queues"] > 0


def test_an_engine_has_one_probe_and_one_interval():
    engine = Engine(seed=1)
    port, _, _ = make_line(engine)
    probe = Probe(engine)
    with pytest.raises(RuntimeError, match="has a probe"):
        Probe(engine)
    with pytest.raises(RuntimeError, match="start_sampling"):
        probe.sample(port, 0)
    with pytest.raises(ValueError, match="interval_ps is 0"):
        probe.start_sampling(0)
    probe.start_sampling(5)
    with pytest.raises(RuntimeError, match="already"):
        probe.start_sampling(5)


def test_names_of_drops_are_distinct():
    names = drop_names()
    assert len(set(names.values())) == len(names)
    assert {"queue full", "link lost", "switch no_pipeline", "nic foreign_mac"} <= set(names.values())


def test_every_drop_of_queues_and_links_has_a_statistic():
    assert counted_drops()["LinkStats"] == {
        "lost_packets": "link lost",
        "corrupted_packets": "link corrupted",
        "cut": "link cut",
    }
    counted = [name for names in counted_drops().values() for name in names.values()]
    assert sorted(counted) == sorted(
        name for name in drop_names().values() if name.startswith(("queue ", "link ", "ip "))
    )
    for record, names in counted_drops().items():
        assert names.keys() <= record_types()[record].keys()
