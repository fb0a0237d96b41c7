"""Programs that never give way: virtual time stands still while one of them computes, or waits for nothing."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

LIMIT_S = 30.0
"""Processor time for which a program may hold virtual time at one moment."""
_CHECKS = 10


class StandstillError(RuntimeError):
    """A program has not let virtual time go on for too long."""


@contextlib.contextmanager
def standstill_ends(
    loop: asyncio.AbstractEventLoop,
    now_ps: Callable[[], int],
    in_program: Callable[[], bool],
    limit_s: float,
) -> Iterator[None]:
    """While inside, raise StandstillError in a task of a program that holds virtual time for so much processor time.

    The error is raised at the line that runs, in whose context `in_program` is asked. It takes a signal, so nothing is
    watched outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen_ps, checks = now_ps(), 0

    def look(_number: int, _frame: object) -> None:
        nonlocal seen_ps, checks
        checks = checks + 1 if now_ps() == seen_ps else 0
        seen_ps = now_ps()
        if checks >= _CHECKS and asyncio.current_task(loop) is not None and in_program():
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
        signal.signal(signal.SIGVTALRM, before)
