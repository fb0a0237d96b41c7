"""SIGINT, SIGTERM and SIGHUP while a fabric exists: they unwind the stack, so that everything is taken down.

What a handler raises may come up anywhere. Within asyncio's own functions it would leave tasks that nobody ends, so an
event loop of ours holds signals until a moment between two callbacks (a second signal does not wait). Elsewhere C code
may put an error of its own in its place, which `interruptions_first` puts right.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Callbacks of those who hold signals, innermost last: each is called when one has come.
_holders: list[Callable[[], None]] = []
_held: list[int] = []
_raised: list[BaseException] = []


@contextlib.contextmanager
def signals_unwind() -> Iterator[None]:
    """While inside, have the signals raise KeyboardInterrupt and SystemExit.

    Those that are ignored stay so, as `nohup` wants it; so does a handler of the program's own for SIGINT.
    """
    ours = (signal.SIG_DFL, signal.default_int_handler, _come)
    numbers = [
        number
        for number in _NUMBERS
        if (present := signal.getsignal(number)) != signal.SIG_IGN
        and (number != signal.SIGINT or present in ours)
    ]
    with _handlers(_come, numbers):
        yield


@contextlib.contextmanager
def signals_wait() -> Iterator[None]:
    """While inside, ignore them: taking down finishes."""
    with _handlers(signal.SIG_IGN, _NUMBERS):
        yield


@contextlib.contextmanager
def signals_held(notify: Callable[[], None]) -> Iterator[None]:
    """While inside, have a signal call `notify` and wait for `raise_held`, at the latest until this is left."""
    _holders.append(notify)
    try:
        yield
    finally:
        _holders.pop()
        raise_held()


def raise_held() -> None:
    """Raise what a signal that has come is to raise."""
    if _held:
        _raise(_held.pop())


@contextlib.contextmanager
def interruptions_first(unwound: BaseException | None = None) -> Iterator[None]:
    """Raise what a signal has raised, whatever became of that since.

    A signal that comes at a bad moment leaves things half done, so that taking them down may fail; that failure is
    not the one to report. `unwound`: inside, this is being unwound, so a signal may have come before.
    """
    if unwound is None:
        _raised.clear()
    try:
        yield
    except BaseException as error:
        if _raised and _raised[-1] is not error:
            raise _raised.pop() from None
        _raised.clear()
        raise
    if _raised and (interruption := _raised.pop()) is not unwound:
        raise interruption


def _come(number: int, _frame: object) -> None:
    if _holders and not _held:
        _held.append(number)
        _holders[-1]()
    else:
        _held.clear()
        _raise(number)


def _raise(number: int) -> None:
    # Mininet's prompt survives KeyboardInterrupt, not SystemExit. 128 + number is what shells say of such ends.
    _raised.append(KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number))
    raise _raised[-1]


@contextlib.contextmanager
def _handlers(handler: Any, numbers: Sequence[int]) -> Iterator[None]:
    # Only the main thread may set handlers; elsewhere its owner decides what signals do.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number in numbers:
            signal.signal(number, handler)
        yield
    finally:
        for number, present in before.items():
            signal.signal(number, present)
