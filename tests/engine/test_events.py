"""The order of events, timers, and what ends a run."""

import heapq
import itertools
import math
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engine import Engine, Timer


def test_equal_times_are_served_first_in_first_out(engine: Engine) -> None:
    served: list[int] = []
    for i in range(100):
        engine.schedule_at(1000 * (i % 3), lambda i=i: served.append(i))
    engine.run()
    assert served == [*range(0, 100, 3), *range(1, 100, 3), *range(2, 100, 3)]


def test_an_event_sees_its_own_time(engine: Engine) -> None:
    seen: list[int] = []
    for time_ps in (7, 3, 5):
        engine.schedule_at(time_ps, lambda: seen.append(engine.now_ps))
    engine.run()
    assert seen == [3, 5, 7]
    assert engine.events_served == 3


def test_events_scheduled_by_events_for_the_past_are_served_now(engine: Engine) -> None:
    seen: list[int] = []
    engine.schedule_at(10, lambda: engine.schedule_at(4, lambda: seen.append(engine.now_ps)))
    engine.run()
    assert seen == [10]


def test_run_until_serves_its_bound_and_nothing_later(engine: Engine) -> None:
    served: list[int] = []
    for time_ps in (10, 20, 21):
        engine.schedule_at(time_ps, lambda t=time_ps: served.append(t))
    engine.run_until(20)
    assert (served, engine.now_ps) == ([10, 20], 20)
    engine.run_for(100)
    assert (served, engine.now_ps) == ([10, 20, 21], 120)


def test_request_stop_leaves_the_rest_for_later(engine: Engine) -> None:
    served: list[str] = []
    engine.schedule_at(1, lambda: (served.append("a"), engine.request_stop()))
    engine.schedule_at(1, lambda: served.append("b"))
    engine.run()
    assert served == ["a"]
    engine.run()
    assert served == ["a", "b"]


def test_an_exception_ends_the_run_and_the_engine_goes_on_afterwards(engine: Engine) -> None:
    served: list[str] = []

    def fail() -> None:
        raise KeyError("broken callback")

    engine.schedule_at(1, fail)
    engine.schedule_at(2, lambda: served.append("after"))
    with pytest.raises(KeyError, match="broken callback"):
        engine.run()
    engine.run()
    assert served == ["after"]


def test_virtual_and_real_clock_refuse_what_only_the_other_can(engine: Engine) -> None:
    with pytest.raises(RuntimeError, match="real clock"):
        engine.start()
    with pytest.raises(RuntimeError, match="virtual clock"):
        Engine.real_clock().run()
    for dilation in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="dilation"):
            Engine.real_clock(dilation=dilation)


def test_a_lock_object_is_not_entered_twice(engine: Engine) -> None:
    lock = engine.lock()
    with lock, engine.lock(), pytest.raises(RuntimeError, match="already held"):
        lock.__enter__()


class ModelTimers:
    """A simple model of the event queue: a heap that skips stale entries."""

    def __init__(self, count: int) -> None:
        self.heap: list[tuple[int, int, int]] = []
        self.current: dict[int, int] = {}
        self.sequence = itertools.count()
        self.count = count

    def arm(self, timer: int, time_ps: int) -> None:
        self.current[timer] = next(self.sequence)
        heapq.heappush(self.heap, (time_ps, self.current[timer], timer))

    def cancel(self, timer: int) -> None:
        self.current.pop(timer, None)

    def pop(self, until_ps: float = math.inf) -> tuple[int, int] | None:
        while self.heap and self.heap[0][0] <= until_ps:
            due_ps, sequence, timer = heapq.heappop(self.heap)
            if self.current.get(timer) == sequence:
                del self.current[timer]
                return due_ps, timer
        return None

    def run_until(self, time_ps: int) -> list[tuple[int, int]]:
        return list(iter(lambda: self.pop(time_ps), None))


TIMERS = 24
MORE_TIMERS = 60
UNITS_PS = st.sampled_from([1, 33_000, 700_000])
"""Forty of them are within one bucket of the event queue's calendar, within the calendar, and beyond it."""
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("arm"), st.integers(0, TIMERS - 1), st.integers(0, 40)),
        st.tuples(st.just("cancel"), st.integers(0, TIMERS - 1), st.just(0)),
        st.tuples(st.just("run"), st.just(0), st.integers(0, 15)),
        st.tuples(st.just("more timers"), st.just(0), st.just(0)),
    ),
    max_size=150,
)


@settings(deadline=None)
@given(STEPS, UNITS_PS)
def test_timers_fire_as_a_simple_model_says(steps: list[tuple[str, int, int]], unit_ps: int) -> None:
    """More timers than buckets make the calendar grow, with what is in it."""
    engine = Engine()
    model = ModelTimers(TIMERS)
    fired: list[tuple[int, int]] = []
    timers = [Timer(engine, lambda i=i: fired.append((engine.now_ps, i))) for i in range(TIMERS)]
    expected: list[tuple[int, int]] = []
    now_ps = 0
    for action, timer, units in [*steps, ("run", 0, 1000)]:
        amount = units * unit_ps
        if action == "arm":
            timers[timer].arm(now_ps + amount)
            model.arm(timer, now_ps + amount)
            assert timers[timer].deadline_ps == now_ps + amount
        elif action == "more timers":
            timers += [Timer(engine, lambda: None) for _ in range(MORE_TIMERS)]
        elif action == "cancel":
            timers[timer].cancel()
            model.cancel(timer)
            assert timers[timer].deadline_ps is None
        else:
            now_ps += amount
            engine.run_until(now_ps)
            expected += model.run_until(now_ps)
        assert fired == expected
    assert all(timer.deadline_ps is None for timer in timers)


DEEDS = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["arm", "cancel"]), st.integers(0, TIMERS - 1), st.integers(0, 40)),
        max_size=4,
    ),
    max_size=60,
)


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=TIMERS), DEEDS, UNITS_PS)
def test_events_arm_and_cancel_as_a_simple_model_says(
    first: list[int], deeds: list[list[tuple[str, int, int]]], unit_ps: int
) -> None:
    """Each served event performs the next actions, on its own timer or on others."""
    engine = Engine()
    fired: list[tuple[int, int]] = []

    def on_fire(number: int) -> None:
        fired.append((engine.now_ps, number))
        for action, timer, units in deeds[len(fired) - 1] if len(fired) <= len(deeds) else []:
            if action == "arm":
                timers[timer].arm(engine.now_ps + units * unit_ps)
            else:
                timers[timer].cancel()

    timers = [Timer(engine, partial(on_fire, i)) for i in range(TIMERS)]
    model = ModelTimers(TIMERS)
    for number, units in enumerate(first):
        timers[number].arm(units * unit_ps)
        model.arm(number, units * unit_ps)
    expected: list[tuple[int, int]] = []
    while (event := model.pop()) is not None:
        expected.append(event)
        for action, timer, units in deeds[len(expected) - 1] if len(expected) <= len(deeds) else []:
            if action == "arm":
                model.arm(timer, event[0] + units * unit_ps)
            else:
                model.cancel(timer)
    engine.run()
    assert fired == expected


def test_a_dropped_timer_does_not_fire_and_its_place_is_reused(engine: Engine) -> None:
    fired: list[str] = []
    lost = Timer(engine, lambda: fired.append("lost"))
    lost.arm(5)
    del lost
    Timer(engine, lambda: fired.append("garbage at once")).arm(5)
    kept = Timer(engine, lambda: fired.append("kept"))
    kept.arm(5)
    engine.run()
    assert fired == ["kept"]


def test_a_timer_may_arm_itself_again(engine: Engine) -> None:
    times: list[int] = []

    def tick() -> None:
        times.append(engine.now_ps)
        if len(times) < 5:
            timer.arm(engine.now_ps + 10)

    timer = Timer(engine, tick)
    timer.arm(10)
    engine.run()
    assert times == [10, 20, 30, 40, 50]


def test_random_streams_depend_on_seed_and_name_only() -> None:
    first = Engine(seed=3)
    other = first.stream("other")
    other.next_u64()
    draws = [first.stream("a").next_u64() for _ in range(2)]
    assert draws[0] == draws[1] == Engine(seed=3).stream("a").next_u64()
    assert len({draws[0], first.stream("b").next_u64(), Engine(seed=4).stream("a").next_u64()}) == 3


@given(st.integers(1, 2**64 - 1))
def test_below_keeps_its_bound(bound: int) -> None:
    stream = Engine(seed=1).stream("below")
    assert all(0 <= stream.below(bound) < bound for _ in range(20))


def test_below_refuses_zero(engine: Engine) -> None:
    with pytest.raises(ValueError, match="bound"):
        engine.stream("x").below(0)
