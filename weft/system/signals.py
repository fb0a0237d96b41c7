"""Handles SIGINT, SIGTERM and SIGHUP while a fabric exists: they unwind the stack, so that everything is torn down.

A handler's exception may be raised anywhere. Within asyncio's functions it would leave orphaned tasks, so Weft's event
loops hold signals until a moment between two callbacks (a second signal does not wait). Elsewhere, C code may replace
it by another error, which `interruptions_first` corrects.
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
    """Raised by SIGTERM and SIGHUP; distinguishes them from an exit that a user's class requested."""


@contextlib.contextmanager
def signals_unwind() -> Iterator[None]:
    """While inside, let the signals raise KeyboardInterrupt and SystemExit.

    Ignored signals stay ignored, as `nohup` requires; the program's own SIGINT handler stays, too.
    """
    ours = (signal.SIG_DFL, signal.default_int_handler, _come)
    numbers = [
        number
        for number in _NUMBERS
        if (present := signal.getsignal(number)) != signal.SIG_IGN and (number != signal.SIGINT or present in ours)
    ]
    with _handlers(_come, numbers):
        yield


@contextlib.contextmanager
def signals_wait() -> Iterator[None]:
    """While inside, ignore the signals, so that teardown finishes."""
    with _handlers(signal.SIG_IGN, _NUMBERS):
        yield


@contextlib.contextmanager
def signals_held(notify: Callable[[], None]) -> Iterator[None]:
    """While inside, a signal calls `notify` and is held until `raise_held`, at the latest until leaving."""
    _holders.append(notify)
    try:
        yield
    finally:
        _holders.pop()
        raise_held()


def raise_held() -> None:
    """Raise the exception of a held signal, if any."""
    if _held:
        _raise(_held.pop())


def is_unwinding() -> bool:
    """Return whether a signal was raised and `interruptions_first` has not dealt with it yet."""
    return bool(_raised)


@contextlib.contextmanager
def interruptions_first(unwound: BaseException | None = None) -> Iterator[None]:
    """Raise a signal's exception, even if another error has replaced it since.

    A signal may leave work half done, so that its teardown fails; that failure is not the one to report. `unwound` is
    the exception being unwound inside, so a signal may have arrived before.
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
    # Mininet's prompt survives KeyboardInterrupt, not SystemExit. Shells report such ends as 128 + number.
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
