"""An asyncio event loop in virtual time: coroutines wait for a simulated clock, and waiting runs what it drives."""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import traceback
import weakref
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, Protocol, TypeVar

from weft.controller.blocking import cancel_other_tasks
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.system.signals import raise_held, signals_held

_Result = TypeVar("_Result")


class SimulatedClock(Protocol):
    """The part of `engine.Engine` and `engine.Partitions` that a loop needs; see there."""

    @property
    def now_ps(self) -> int:
        """Time of the event being served."""

    def schedule_at(self, time_ps: int, callback: Callable[[], object]) -> None:
        """Call something then."""

    def run(self) -> None:
        """Serve events until there are none."""

    def run_for(self, duration_ps: int) -> None:
        """Serve the events of that long."""

    def request_stop(self) -> None:
        """Make the run in progress return."""


class StalledError(RuntimeError):
    """A coroutine waits for something that no pending event or timer can cause."""


class RunEndedEarlyError(BaseException):
    """A run ended because an observer had seen enough. No handler of errors of the run may stop it."""


class _EventSelector(selectors.SelectSelector):
    """Instead of waiting for files, serves the clock's events, until one of them has something for Python."""

    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__()
        self._clock = clock
        self.is_woken = False
        self.ends_early = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Serve events for at most `timeout` seconds of their time; no file is ever ready."""
        raise_held()
        if self.ends_early:
            self.ends_early = False
            raise RunEndedEarlyError
        try:
            return self._serve(timeout)
        finally:
            raise_held()

    def _serve(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        self.is_woken = False
        if timeout is None:
            self._clock.run()
            # All partitions are idle and no timer is set: without this error the run would hang for ever.
            if not self.is_woken:
                raise StalledError("the controller waits, and nothing is going to happen in the fabric")
        elif timeout > 0:
            # At least a picosecond: rounded to none, a timer just ahead would have the loop spin without time passing.
            self._clock.run_for(max(1, round(timeout * PS_PER_S)))
        return []

    def let_go(self) -> None:
        """Release the clock."""
        del self._clock


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Coroutines and the fabric take turns: all that is ready runs first, at one moment of virtual time.

    Everything happens in the thread that runs it; no wall clock is read, so runs repeat exactly. It is a
    `weft.traffic.run_clock.RunClock`, too.
    """

    def __init__(self, clock: SimulatedClock) -> None:
        self._virtual = _EventSelector(clock)
        self._clock = clock
        self._happened_ps: int | None = None
        self._numbers = count()
        self._due: dict[int, Callable[[], object]] = {}
        super().__init__(self._virtual)
        self.set_exception_handler(_report)

    def close(self) -> None:
        """Close it, and release the clock and all pending callbacks."""
        if self.is_closed():
            return
        super().close()
        self._due.clear()
        self._virtual.let_go()
        del self._clock

    def time(self) -> float:
        """Return the clock's time in seconds."""
        return self._clock.now_ps / PS_PER_S

    def now_ps(self) -> int:
        """Return the clock's time."""
        return self._clock.now_ps

    def wait_time_s(self) -> float:
        """See RunClock."""
        return self.time()

    def start_margin_ps(self, ranks: int) -> int:
        """Return how long it is to the next whole microsecond; time stands still while hosts are started.

        Stamps count nanoseconds and microseconds: a run that starts between them would see other ones.
        """
        return -self._clock.now_ps % PS_PER_US

    def wake(self, callback: Callable[[], object]) -> None:
        """Have the loop call something as soon as the present event is served; to be called from events."""
        self.call_soon(callback)
        # The present window still ends: Python acts between windows only, so that results do not depend on workers.
        self._virtual.is_woken = True
        self._clock.request_stop()

    def end_early(self) -> None:
        """End what runs with RunEndedEarlyError, before time passes; to be called from a callback of the loop."""
        self._virtual.ends_early = True

    @contextlib.contextmanager
    def as_of(self, happened_ps: int) -> Iterator[None]:
        """Count delays from when something happened in the fabric: Python learns of it later, between windows."""
        self._happened_ps = happened_ps
        try:
            yield
        finally:
            self._happened_ps = None

    def call_after_ps(self, delay_ps: int, callback: Callable[[], object]) -> Callable[[], None]:
        """Have the loop call something that much virtual time later, to the picosecond; at once if that is past.

        Returns what takes that back.
        """
        since_ps = self._clock.now_ps if self._happened_ps is None else self._happened_ps
        number = next(self._numbers)
        self._due[number] = callback
        # Weakly, because the clock keeps what it is going to call and does not take part in garbage collection.
        here = weakref.ref(self)

        def serve() -> None:
            loop = here()
            due = None if loop is None else loop._due.pop(number, None)
            if loop is not None and due is not None:
                loop.wake(due)

        self._clock.schedule_at(since_ps + delay_ps, serve)

        def forget() -> None:
            self._due.pop(number, None)

        return forget

    def next_call_ps(self) -> int | None:
        """Return when the loop has something to call by itself; None: never. The clock's own calls are not among it."""
        # asyncio's own queues, which it shows to nobody.
        ready, scheduled = vars(self)["_ready"], vars(self)["_scheduled"]
        if ready:
            return self.now_ps()
        times = [each.when() for each in scheduled if not each.cancelled()]
        return round(min(times) * PS_PER_S) if times else None

    async def sleep_ps(self, duration_ps: int) -> None:
        """Wait for that much virtual time, to the picosecond."""
        over = self.create_future()
        self.call_after_ps(duration_ps, lambda: None if over.done() else over.set_result(None))
        await over

    def run_here(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine to its end while the caller waits, and the fabric meanwhile.

        Raises:
            StalledError: it waits for something that cannot happen.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._run_to_its_end(coroutine)
        # The caller is a coroutine of another loop, as in a notebook, and two cannot run in one thread.
        with ThreadPoolExecutor(1) as other_thread:
            return other_thread.submit(self._run_to_its_end, coroutine).result()

    def _run_to_its_end(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        with signals_held(self._clock.request_stop):
            task = self.create_task(coroutine)
            try:
                return self.run_until_complete(task)
            except (KeyboardInterrupt, SystemExit, RunEndedEarlyError) as interruption:
                # It must neither resume when the loop runs again, nor end that later run instead of this one.
                task.cancel()
                self.stop()
                self.run_forever()
                # The task's own error refers to the interruption. Were the task in its traceback, too, both would keep
                # each other, and all that the fabric's frames hold, until the collector runs.
                del task
                traceback.clear_frames(interruption.__traceback__)
                raise


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report errors that nobody awaited, except an interruption: that has left the loop already."""
    if not isinstance(context.get("exception"), KeyboardInterrupt | SystemExit):
        loop.default_exception_handler(context)


class VirtualTimeRunner:
    """A `weft.controller.blocking.LoopRunner` in virtual time.

    The fabric runs while a coroutine waits, and only then.
    """

    def __init__(self, loop: VirtualTimeLoop) -> None:
        self._loop = loop

    def start(self) -> None:
        """Do nothing: there is no thread to start."""

    def run(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine to its end. StalledError: it waits for something that cannot happen."""
        return self._loop.run_here(coroutine)

    def stop(self) -> None:
        """End what still runs."""
        self.run(cancel_other_tasks())
