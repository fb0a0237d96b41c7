"""Shared by long-running programs: exit codes, and exiting when the parent dies or a signal comes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator

PR_SET_PDEATHSIG = 1
EXIT_BAD_INPUT = 3
EXIT_ENVIRONMENT = 4


def die_with_parent() -> None:
    """Have the kernel send SIGTERM when the parent dies; exit immediately if it is already dead."""
    parent = os.getppid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        raise SystemExit(0)


@contextlib.contextmanager
def on_termination(action: Callable[[], None]) -> Iterator[None]:
    """While inside, run `action` once when SIGINT or SIGTERM comes, instead of what they did before."""
    once = threading.Lock()

    def handle(_number: int, _frame: object) -> None:
        if once.acquire(blocking=False):
            action()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Repeater(threading.Thread):
    """Repeats an action at an interval until stopped."""

    def __init__(self, action: Callable[[], None], interval_s: float) -> None:
        super().__init__(name="repeater", daemon=True)
        self._action = action
        self._interval_s = interval_s
        self._stopping = threading.Event()

    def run(self) -> None:
        """See Thread."""
        while not self._stopping.wait(self._interval_s):
            self._action()

    def stop(self) -> None:
        """End the thread, if it runs."""
        self._stopping.set()
        if self.is_alive():
            self.join()
