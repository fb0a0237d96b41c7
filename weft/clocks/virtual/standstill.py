"""Programs that never give way: virtual time stands still while one of them computes, or waits for nothing."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

LIMIT_S = 30.0
"""Processor time for which a program may hold virtual time at one moment."""
_CHECKS = 10
_RUNS_CALLBACK = asyncio.Handle._run.__code__


class StandstillError(RuntimeError):
    """A program has not let virtual time go on for too long."""


@contextlib.contextmanager
def standstill_ends(
    loop: asyncio.AbstractEventLoop,
    now_ps: Callable[[], int],
    in_program: Callable[[], bool],
    limit_s: float,
) -> Iterator[None]:
    """While inside, raise StandstillError in a program's task that holds virtual time for so much processor time.

    The error is raised at the running line, and `in_program` is asked in that line's context. It takes a signal, so
    only the main thread is watched.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen_ps, checks = now_ps(), 0

    def look(_number: int, frame: FrameType | None) -> None:
        nonlocal seen_ps, checks
        checks = checks + 1 if now_ps() == seen_ps else 0
        seen_ps = now_ps()
        if checks >= _CHECKS and _is_in_a_task(loop, frame) and in_program():
            checks = 0
            raise StandstillError(
                f"virtual time has stood still for {limit_s:g} s of processor time: this loop never ends, or never "
                "waits for anything that takes time, such as poll()"
            )

    before = signal.signal(signal.SIGVTALRM, look)
    signal.siginterrupt(signal.SIGVTALRM, False)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s / _CHECKS, limit_s / _CHECKS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        # One that is on its way, to another thread perhaps, would end the process: ignoring discards it.
        signal.signal(signal.SIGVTALRM, signal.SIG_IGN)
        signal.signal(signal.SIGVTALRM, before)


def _is_in_a_task(loop: asyncio.AbstractEventLoop, frame: FrameType | None) -> bool:
    """Return whether a frame belongs to a task's coroutine.

    It does not where the loop is called for the task, to have it go on later: an error there would lose the task.
    """
    if asyncio.current_task(loop) is None:
        return False
    while frame is not None and frame.f_back is not None and frame.f_back.f_code is not _RUNS_CALLBACK:
        frame = frame.f_back
    return frame is not None and bool(frame.f_code.co_flags & inspect.CO_COROUTINE)
