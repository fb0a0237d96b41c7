"""asyncio in virtual time: exact to the picosecond, in order, and never endless."""

import asyncio

import pytest

from weft.clocks.virtual.loop import StalledError, VirtualTimeLoop, VirtualTimeRunner
from weft.engine import Engine, Timer


@pytest.fixture
def engine():
    return Engine(seed=1)


@pytest.fixture
def loop(engine):
    made = VirtualTimeLoop(engine)
    yield made
    made.close()


def test_sleeping_takes_virtual_time_to_the_picosecond(engine, loop):
    loop.run_until_complete(loop.sleep_ps(1_234_567_891))
    assert engine.now_ps == 1_234_567_891
    loop.run_until_complete(loop.sleep_ps(0))
    assert engine.now_ps == 1_234_567_891


def test_asyncios_own_timers_run_in_virtual_time(engine, loop):
    async def timed_out():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 3600)

    loop.run_until_complete(timed_out())
    assert engine.now_ps == 3600 * 10**12
    assert loop.time() == 3600.0


def test_what_falls_due_together_comes_in_the_order_it_was_asked_for(engine, loop):
    seen = []

    async def sleeper(name, duration_ps):
        await loop.sleep_ps(duration_ps)
        seen.append((name, engine.now_ps))

    async def all_of_them():
        await asyncio.gather(sleeper("a", 20), sleeper("b", 10), sleeper("c", 20), sleeper("d", 10))

    loop.run_until_complete(all_of_them())
    assert seen == [("b", 10), ("d", 10), ("a", 20), ("c", 20)]


def test_the_fabric_runs_while_a_coroutine_waits_and_stops_for_it(engine, loop):
    """Events up to the one that wakes it are served, later ones are not."""
    served, heard = [], asyncio.Event()
    engine.schedule_at(5, lambda: served.append(5))
    engine.schedule_at(7, lambda: loop.wake(heard.set))
    engine.schedule_at(9, lambda: served.append(9))
    loop.run_until_complete(heard.wait())
    assert engine.now_ps == 7
    assert served == [5]


def test_waiting_for_what_never_happens_is_an_error(loop):
    waiting = loop.create_task(asyncio.Event().wait())
    with pytest.raises(StalledError):
        loop.run_until_complete(waiting)
    waiting.cancel()
    VirtualTimeRunner(loop).stop()


def test_what_an_event_raises_comes_out(engine, loop):
    def break_it():
        raise KeyboardInterrupt

    timer = Timer(engine, break_it)
    timer.arm(3)
    sleep = loop.create_task(loop.sleep_ps(10))
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(sleep)
    loop.run_until_complete(sleep)
    assert engine.now_ps == 10


def test_an_engine_that_is_gone_takes_nothing_with_it(engine, loop):
    """Callbacks that are pending when a loop ends are never called."""
    loop.call_after_ps(10, lambda: pytest.fail("the loop is gone"))
    loop.close()
    del loop
    assert engine.now_ps == 0
