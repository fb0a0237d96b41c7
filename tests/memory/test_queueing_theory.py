"""Queues against closed forms: an M/D/1 queue's mean wait, an incast that keeps its link busy."""

from __future__ import annotations

import math
from statistics import mean, stdev

import pytest

from tests.memory.ports import GBPS, make_output
from weft.engine import Collector, Engine, Link, SharedBuffer, TransmitPort

SERVICE_PS = 800_000
FRAME = 1000


@pytest.mark.parametrize("load", [0.3, 0.7, 0.85])
def test_the_mean_wait_of_poisson_arrivals_is_that_of_m_d_1(load: float) -> None:
    """Pollaczek and Khinchine: W = rho S / (2 (1 - rho)); within the 99.9 % interval of 20 batches' means."""
    engine = Engine(seed=7)
    output = make_output(engine, 10 * GBPS, queue_capacity_bytes=1 << 30)
    rng = engine.stream("arrivals")
    arrivals, time_ps = [], 0.0
    for _ in range(60_000):
        time_ps -= math.log1p(-rng.uniform()) * SERVICE_PS / load
        arrivals.append(round(time_ps))
        engine.inject(output.port, 0, bytes(FRAME), arrivals[-1])
    engine.run()
    departures = [time for time, _, _ in output.collector.packets]
    waits = [
        (departure - arrival - SERVICE_PS) / SERVICE_PS for arrival, departure in zip(arrivals, departures, strict=True)
    ]
    assert min(waits) == 0
    settled = waits[2_000:]
    size = len(settled) // 20
    batches = [mean(settled[number * size : (number + 1) * size]) for number in range(20)]
    t_of_19_degrees = 3.883
    half_width = t_of_19_degrees * stdev(batches) / math.sqrt(20)
    expected = load / (2 * (1 - load))
    assert half_width < 0.35 * expected
    assert abs(mean(batches) - expected) <= half_width


@pytest.mark.parametrize("senders", [2, 7, 31])
@pytest.mark.parametrize("has_buffer", [False, True])
def test_an_incast_keeps_its_line_busy_from_the_first_bit_to_the_last(senders: int, has_buffer: bool) -> None:
    """N senders of B bytes each: done after the way of the first frame and N B at line rate, no gap between."""
    engine = Engine()
    collector = Collector(engine)
    last = Link(engine, delay_ps=500_000)
    last.connect(collector)
    port = TransmitPort(engine, last, rate_bps=10 * GBPS, queue_capacity_bytes=1 << 24)
    if has_buffer:
        buffer = SharedBuffer(engine, capacity_bytes=1 << 24, alpha=[8.0] * 8)
        buffer.add_port(0)
        port.set_buffer(buffer, 0)
    frames = 20
    for _ in range(senders):
        link = Link(engine, delay_ps=500_000)
        link.connect(port)
        sender = TransmitPort(engine, link, rate_bps=10 * GBPS)
        for _ in range(frames):
            sender.enqueue(bytes(FRAME))
    engine.run()
    times = [time for time, _, _ in collector.packets]
    first_ps = 2 * (SERVICE_PS + 500_000)
    assert times == [first_ps + number * SERVICE_PS for number in range(senders * frames)]
