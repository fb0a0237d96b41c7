"""Calls that users' classes ask for: of something that can be called, and not without end at one moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from weft.errors import InvalidValueError
from weft.quantities.limits import delay_ps_of

MOST_CALLS_AT_ONCE = 10_000
"""At one moment of emulated time. A call that asks for another one without a delay would otherwise go on for ever."""

_Callback = TypeVar("_Callback", bound=Callable[..., object])


def callback_of(callback: _Callback) -> _Callback:
    """Return what is to be called. Raises TypeError: it cannot be."""
    if not callable(callback):
        raise TypeError(f"{callback!r} cannot be called (valid: a function, such as self.tick)")
    return callback


class LaterCalls:
    """Counts the calls that a class asks for without a delay, at each moment."""

    def __init__(self) -> None:
        self._moment_ps = -1
        self._calls = 0

    def time_ps(self, now_ps: int, delay_ps: float) -> int:
        """Return when something is to be called.

        Raises ValueError: the delay is negative or no whole number, or time stands still.
        """
        time_ps = now_ps + delay_ps_of(delay_ps)
        if time_ps > now_ps:
            return time_ps
        if now_ps != self._moment_ps:
            self._moment_ps, self._calls = now_ps, 0
        self._calls += 1
        if self._calls > MOST_CALLS_AT_ONCE:
            raise InvalidValueError(
                f"more than {MOST_CALLS_AT_ONCE:,} calls without a delay at {now_ps} ps: time does not go on",
                valid="a delay above 0",
            )
        return time_ps
