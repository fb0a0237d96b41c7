"""Link-level retry: order, what is sent again and when, its buffer, its timer, and when it gives up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest

from tests.memory.ports import GBPS
from weft.engine import Collector, Engine, Link, TransmitPort

RATE = 100 * GBPS
FRAME = 1250
FRAME_PS = 100_000
DELAY_PS = 1_000_000
MESSAGE_PS = 640  # 8 B
ANSWER_PS = 2 * DELAY_PS + MESSAGE_PS
RETRY: dict[str, Any] = {"buffer_bytes": 1 << 20, "timeout_ps": 10_000_000, "largest_frame_bytes": FRAME}


@pytest.fixture
def engine() -> Engine:
    return Engine(seed=1)


@dataclass
class Bench:
    port: TransmitPort
    link: Link
    collector: Collector

    def retry(self) -> dict[str, Any]:
        found = self.link.retry_stats()
        assert found is not None
        return dict(found)

    def send(self, count: int, begin: int = 0) -> None:
        for number in range(begin, begin + count):
            self.port.enqueue(number.to_bytes(4, "big") + bytes(FRAME - 4))

    def received(self) -> list[int]:
        return [int.from_bytes(data[:4], "big") for _, _, data in self.collector.packets]

    def times(self) -> list[int]:
        return [time for time, _, _ in self.collector.packets]


def bench_with(engine: Engine, faults: dict[str, float], **retry: Any) -> Bench:
    link = Link(engine, name="retried", delay_ps=DELAY_PS, **faults)
    collector = Collector(engine)
    link.connect(collector)
    port = TransmitPort(engine, link, rate_bps=RATE, queue_capacity_bytes=1 << 30)
    link.enable_retry(port, **RETRY | retry)
    return Bench(port, link, collector)


def lose_next(bench: Bench, engine: Engine, faults: dict[str, float]) -> None:
    """Have one frame not arrive: the link is faulty while the port hands that frame to it."""
    bench.link.set_faults(**faults)
    engine.run_until(engine.now_ps + FRAME_PS)
    bench.link.set_faults()


def test_without_faults_nothing_changes(engine: Engine) -> None:
    bench = bench_with(engine, {})
    bench.send(100)
    engine.run()
    assert bench.times() == [DELAY_PS + FRAME_PS * (n + 1) for n in range(100)]
    found = bench.retry()
    assert found["replays"] == found["lost_packets"] == found["waiting_ps"] == 0
    assert found["largest_buffer_bytes"] <= 22 * FRAME  # what is sent until the first acknowledgement is here


def test_a_corrupted_frame_is_sent_again_with_all_after_it(engine: Engine) -> None:
    """By hand. Frame 1 is whole at 200 ns, but for a bit; its NACK is back 2 us and a message later."""
    bench = bench_with(engine, {})
    bench.send(100)
    engine.run_until(FRAME_PS - 1)
    lose_next(bench, engine, {"bit_error_rate": 1e-3})  # e^-10 for a frame to arrive, 0.94 for a NACK
    engine.run()
    assert bench.received() == list(range(100))
    # Frames go out at each 100 ns, so the one that is under way then ends at 2,300 ns.
    nack_ps = 2 * FRAME_PS + ANSWER_PS
    begin_ps = math.ceil(nack_ps / FRAME_PS) * FRAME_PS
    again = begin_ps // FRAME_PS - 1
    assert bench.times()[:3] == [
        FRAME_PS + DELAY_PS,
        begin_ps + FRAME_PS + DELAY_PS,
        begin_ps + 2 * FRAME_PS + DELAY_PS,
    ]
    assert bench.times()[-1] == DELAY_PS + FRAME_PS * (100 + again)
    found = bench.retry()
    assert (found["lost_packets"], found["nacks"], found["replays"], found["timeouts"]) == (1, 1, 1, 0)
    assert found["replayed"] == {"packets": again, "bytes": again * FRAME}
    assert found["replaying_ps"] == again * FRAME_PS
    assert bench.link.stats()["lost_packets"] == bench.link.stats()["corrupted_packets"] == 0


def test_a_frame_that_never_arrives_is_missed_by_the_next(engine: Engine) -> None:
    bench = bench_with(engine, {})
    bench.send(100)
    engine.run_until(FRAME_PS - 1)
    lose_next(bench, engine, {"loss": 1.0})
    engine.run()
    assert bench.received() == list(range(100))
    begin_ps = math.ceil((3 * FRAME_PS + ANSWER_PS) / FRAME_PS) * FRAME_PS
    assert bench.times()[1] == begin_ps + FRAME_PS + DELAY_PS


def test_the_timer_sends_the_last_frame_again(engine: Engine) -> None:
    bench = bench_with(engine, {"loss": 1.0})
    bench.send(1)
    engine.run_until(FRAME_PS)
    bench.link.set_faults()
    engine.run()
    assert bench.times() == [FRAME_PS + RETRY["timeout_ps"] + FRAME_PS + DELAY_PS]
    found = bench.retry()
    assert (found["timeouts"], found["nacks"], found["replays"]) == (1, 0, 1)


@pytest.mark.parametrize("faults", [{"loss": 0.05}, {"bit_error_rate": 5e-6}, {"loss": 0.3, "bit_error_rate": 1e-5}])
def test_all_frames_arrive_once_and_in_order(engine: Engine, faults: dict[str, float]) -> None:
    bench = bench_with(engine, faults, attempts=255)
    bench.send(3000)
    engine.run()
    assert bench.received() == list(range(3000))
    found = bench.retry()
    assert found["lost_packets"] > 100
    assert found["given_up"]["packets"] == 0
    assert bench.link.stats()["delivered_packets"] == 3000
    assert found["replays"] == found["nacks"] + found["timeouts"]


@pytest.mark.parametrize("loss", [1e-3, 1e-2])
def test_the_throughput_is_that_of_go_back_n(engine: Engine, loss: float) -> None:
    """Each loss costs what is sent from the lost frame on until the NACK is back that the next frame causes.

    (Bertsekas and Gallager, Data Networks, 2.4.2: a frame takes 1 + p W / (1 - p) of its times.)
    """
    bench = bench_with(engine, {"loss": loss}, attempts=255)
    count = 40_000
    bench.send(count)
    engine.run()
    window = math.ceil((2 * FRAME_PS + ANSWER_PS) / FRAME_PS)
    expected_ps = count * FRAME_PS * (1 + loss * window / (1 - loss))
    losses = loss * count
    # Four deviations of the number of losses.
    assert bench.times()[-1] - DELAY_PS == pytest.approx(expected_ps, abs=4 * math.sqrt(losses) * window * FRAME_PS)


def test_a_small_buffer_makes_the_port_wait_for_acknowledgements(engine: Engine) -> None:
    """Ten frames of each round trip: a frame's time, and an answer's."""
    bench = bench_with(engine, {}, buffer_bytes=10 * FRAME)
    bench.send(1000)
    engine.run()
    assert bench.received() == list(range(1000))
    round_ps = FRAME_PS + ANSWER_PS
    assert bench.times()[-1] == pytest.approx(100 * round_ps, rel=0.01)
    found = bench.retry()
    assert found["largest_buffer_bytes"] == 10 * FRAME
    assert found["waiting_ps"] == pytest.approx(100 * (round_ps - 10 * FRAME_PS), rel=0.02)


def test_a_small_buffer_and_losses_together_lose_nothing(engine: Engine) -> None:
    bench = bench_with(engine, {"loss": 0.1}, buffer_bytes=4 * FRAME, attempts=255)
    bench.send(2000)
    engine.run()
    assert bench.received() == list(range(2000))
    assert bench.retry()["largest_buffer_bytes"] <= 4 * FRAME


def test_a_dead_link_gives_up_and_goes_on_when_it_is_well(engine: Engine) -> None:
    bench = bench_with(engine, {"loss": 1.0}, attempts=3)
    bench.send(5)
    engine.run()
    found = bench.retry()
    assert found["given_up"] == {"packets": 5, "bytes": 5 * FRAME}
    assert (found["replays"], found["timeouts"]) == (3, 4)
    assert bench.link.stats()["lost_packets"] == 5
    assert bench.received() == []
    bench.link.set_faults()
    bench.send(5, begin=5)
    engine.run()
    assert bench.received() == [5, 6, 7, 8, 9]


def test_a_failing_link_takes_its_buffer_with_it(engine: Engine) -> None:
    bench = bench_with(engine, {"loss": 1.0})
    bench.send(3)
    engine.run_until(3 * FRAME_PS)
    bench.port.set_up(False)
    assert bench.link.cut() == {"packets": 3, "bytes": 3 * FRAME}
    bench.link.set_faults()
    bench.port.set_up(True)
    bench.send(2, begin=7)
    engine.run()
    assert bench.received() == [7, 8]
    assert bench.retry()["replays"] == 0


def test_what_does_not_go_with_it_is_refused(engine: Engine) -> None:
    def parts(**keys: Any) -> tuple[Link, TransmitPort]:
        link = Link(engine, delay_ps=DELAY_PS, **keys)
        link.connect(Collector(engine))
        return link, TransmitPort(engine, link, rate_bps=RATE)

    link, port = parts()
    for change, words in (
        ({"buffer_bytes": FRAME - 1}, "buffer_bytes is 1249"),
        ({"timeout_ps": ANSWER_PS}, "timeout_ps is 2000640"),
        ({"attempts": 0}, "attempts is 0"),
        ({"response_ps": -1}, "response_ps is -1"),
    ):
        with pytest.raises(ValueError, match=words):
            link.enable_retry(port, **RETRY | change)
    with pytest.raises(ValueError, match="another link"):
        parts()[0].enable_retry(port, **RETRY)
    with pytest.raises(ValueError, match="without a rate"):
        link.enable_retry(TransmitPort(engine, link), **RETRY)
    link.enable_retry(port, **RETRY)
    with pytest.raises(RuntimeError, match="already"):
        link.enable_retry(port, **RETRY)
    with pytest.raises(RuntimeError, match="whole packets"):
        link.set_early(True)
    with pytest.raises(RuntimeError, match="in order"):
        link.set_faults(duplicate=0.1)
    for keys in ({"duplicate": 0.5}, {"delay_probability": 0.5, "extra_delay_ps": 1}):
        faulty, its_port = parts(**keys)
        with pytest.raises(RuntimeError, match="in order"):
            faulty.enable_retry(its_port, **RETRY)
    early, its_port = parts()
    early.set_early(True)
    with pytest.raises(RuntimeError, match="first bit"):
        early.enable_retry(its_port, **RETRY)
