"""The real clock: outcomes that hold however late the machine is."""

import select
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.engine import Collector, Engine, Link, PacketSocket, Timer, TransmitPort

MS = 10**9
GBPS = 10**9
PATIENCE_S = 30.0


@pytest.fixture
def real_engine() -> Iterator[Engine]:
    engine = Engine.real_clock(seed=1)
    yield engine
    if engine.failure is None:
        engine.stop()


def engine_threads() -> set[str]:
    names = {path.parent.name: path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")}
    return {thread for thread, name in names.items() if name == "weft-engine"}


def test_emulated_time_is_the_monotonic_clock_since_the_epoch_divided_by_the_dilation() -> None:
    epoch_ns = time.monotonic_ns() - 5_000_000_000
    engine = Engine.real_clock(epoch_ns=epoch_ns, dilation=20)
    before_ns = time.monotonic_ns()
    now_ps = engine.now_ps
    after_ns = time.monotonic_ns()
    assert (before_ns - epoch_ns) * 50 - 10 <= now_ps <= (after_ns - epoch_ns) * 50 + 10
    assert (engine.is_real, engine.epoch_ns, engine.dilation) == (True, epoch_ns, 20)


@pytest.mark.parametrize("dilation", [0.01, 1, 40])
def test_no_event_is_served_before_its_time(dilation: float) -> None:
    engine = Engine.real_clock(dilation=dilation)
    start_ps = engine.now_ps
    step_ps = int(0.5 * MS / dilation)
    early: list[int] = []
    served: list[int] = []

    def look(due_ps: int) -> None:
        served.append(due_ps)
        clock_ps = (time.monotonic_ns() - engine.epoch_ns) * 1000 / dilation
        if engine.now_ps != due_ps or clock_ps < due_ps - 1000 / dilation:
            early.append(due_ps)

    due = [start_ps + step_ps * (i + 1) for i in range(20)]
    for due_ps in due:
        engine.schedule_at(due_ps, lambda d=due_ps: look(d))
    engine.run_until(due[-1])
    assert served == due
    assert early == []
    assert engine.lateness()["count"] == 20
    assert 0 <= engine.lateness()["p50_ps"] <= engine.lateness()["p99_ps"] <= engine.lateness()["max_ps"]
    engine.reset_lateness()
    assert engine.lateness() == {"count": 0, "max_ps": 0, "p50_ps": 0, "p99_ps": 0}


def test_a_late_port_keeps_its_rate_in_emulated_time() -> None:
    """400 Gb/s undilated is far beyond what software serves in time; the timestamps are exact nevertheless."""
    engine = Engine.real_clock()
    link = Link(engine, delay_ps=1_000_000)
    collector = Collector(engine)
    link.connect(collector)
    port = TransmitPort(engine, link, rate_bps=400 * GBPS, queue_capacity_bytes=1 << 22)
    with engine.lock():
        start_ps = engine.now_ps
        for _ in range(2000):
            port.enqueue(bytes(1000))
    engine.run_for(2 * MS)
    assert [t - start_ps - 1_000_000 for t, _, _ in collector.packets] == [20_000 * (i + 1) for i in range(2000)]


def test_the_thread_serves_what_other_threads_schedule(real_engine: Engine) -> None:
    done = threading.Event()
    served: list[int] = []

    def serve(number: int) -> None:
        served.append(number)
        if len(served) == 400:
            done.set()

    real_engine.start()
    assert real_engine.running

    def schedule(first: int) -> None:
        for number in range(first, first + 100):
            with real_engine.lock():
                real_engine.schedule_at(real_engine.now_ps + 1000, lambda n=number: serve(n))

    threads = [threading.Thread(target=schedule, args=(100 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert done.wait(PATIENCE_S)
    real_engine.stop()
    assert not real_engine.running
    assert sorted(served) == list(range(400))
    for first in range(0, 400, 100):
        own = [n for n in served if first <= n < first + 100]
        assert own == sorted(own)


def test_a_busy_engine_lets_other_threads_in(real_engine: Engine) -> None:
    """A timer that is always due keeps the thread busy forever; the lock is still fair."""
    timer = Timer(real_engine, lambda: itself.arm(0))
    itself = weakref.proxy(timer)  # a callback that held it would keep it, and the engine, for good
    timer.arm(0)
    real_engine.start()
    counts = [real_engine.events_served for _ in range(5)]
    timer.cancel()
    assert counts == sorted(counts)
    real_engine.stop()


def test_what_an_event_raises_ends_the_thread_and_is_raised_by_stop() -> None:
    engine = Engine.real_clock()
    ended = threading.Event()

    def fail() -> None:
        ended.set()
        raise LookupError("no such thing")

    engine.schedule_at(0, fail)
    engine.start()
    assert ended.wait(PATIENCE_S)
    with pytest.raises(LookupError, match="no such thing"):
        engine.stop()
    assert "no such thing" in (engine.failure or "")


def test_a_failure_wakes_who_waits_for_it_and_a_new_start_forgets_it() -> None:
    engine = Engine.real_clock()

    def fail() -> None:
        raise LookupError("no such thing")

    engine.schedule_at(0, fail)
    engine.start()
    assert select.select([engine.failure_fd], [], [], PATIENCE_S)[0]
    assert "no such thing" in (engine.failure or "")
    with pytest.raises(LookupError, match="no such thing"):
        engine.stop()
    engine.start()
    assert not select.select([engine.failure_fd], [], [], 0)[0]
    assert engine.failure is None
    engine.stop()


def test_a_virtual_clock_has_no_thread_that_could_fail() -> None:
    with pytest.raises(RuntimeError, match="failure_fd"):
        _ = Engine().failure_fd


def test_run_and_start_exclude_each_other(real_engine: Engine) -> None:
    real_engine.start()
    with pytest.raises(RuntimeError, match="stop"):
        real_engine.run_for(1)
    with pytest.raises(RuntimeError, match="stop"):
        real_engine.start()


def test_an_engine_may_be_started_again(real_engine: Engine) -> None:
    for _ in range(3):
        served = threading.Event()
        real_engine.start()
        real_engine.schedule_at(0, served.set)
        assert served.wait(PATIENCE_S)
        real_engine.stop()


def test_a_running_engine_may_be_forgotten() -> None:
    before = engine_threads()
    engine = Engine.real_clock()
    started = threading.Event()
    engine.start()
    engine.schedule_at(0, started.set)
    assert started.wait(PATIENCE_S)
    (thread,) = engine_threads() - before
    del engine
    assert thread not in engine_threads()


def test_a_packet_socket_needs_a_real_clock(engine: Engine) -> None:
    with pytest.raises(RuntimeError, match="real clock"):
        PacketSocket(engine, "lo")
