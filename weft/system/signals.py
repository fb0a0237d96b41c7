"""SIGINT, SIGTERM and SIGHUP while a fabric exists: they unwind the stack, so that everything is torn down.

A handler's exception may be raised anywhere. Within asyncio's own functions it would leave orphaned tasks, so our
event loops hold signals until a moment between two callbacks (a second signal does not wait). Elsewhere C code
may replace it by an error of its own, which `interruptions_first` corrects.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Callbacks of the holders of signals, innermost last: each is called when a signal arrives.
_holders: list[Callable[[], None]] = []
_held: list[int] = []
_raised: list[BaseException] = []


class SignalExit(SystemExit):
    """What SIGTERM and SIGHUP raise: no exit that a user's class has asked for, even where it interrupts one."""


@contextlib.contextmanager
def signals_unwind() -> Iterator[None]:
    """While inside, have the signals raise KeyboardInterrupt and SystemExit.

    Signals that are ignored stay ignored, as `nohup` requires; a handler of the program's own for SIGINT stays, too.
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
    """While inside, ignore them, so that teardown finishes."""
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
    """Raise the exception of a signal that has arrived."""
    if _held:
        _raise(_held.pop())


def is_unwinding() -> bool:
    """Return whether a signal has been raised, and not been left behind yet by `interruptions_first`."""
    return bool(_raised)


@contextlib.contextmanager
def interruptions_first(unwound: BaseException | None = None) -> Iterator[None]:
    """Raise a signal's exception, even if another error has replaced it since.

    A signal at a bad moment leaves things half done, so that their teardown may fail; that failure is
    not the one to report. `unwound`: inside, this is being unwound, so a signal may have arrived before.
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
    _raised.append(KeyboardInterrupt() if number == signal.SIGINT else SignalExit(128 + number))
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
