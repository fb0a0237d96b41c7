"""How long a rank has computed since it was last asked."""

from __future__ import annotations

import time
from typing import Any, Protocol

from weft.quantities.units import PS_PER_S
from weft.torch.settings import Settings


class Computing(Protocol):
    """Emulated time of a rank's computations."""

    def since_last_ps(self) -> int:
        """Return how long the rank has computed since the last call."""

    def end(self) -> None:
        """Cease to count."""


class NoComputing:
    """Computations take no time."""

    def since_last_ps(self) -> int:
        """Return 0."""
        return 0

    def end(self) -> None:
        """Do nothing."""


class MeasuredComputing:
    """Computations take the processor time of the thread that made the process group."""

    def __init__(self) -> None:
        self._last_s = time.thread_time()

    def since_last_ps(self) -> int:
        """Return the processor time since the last call."""
        before, self._last_s = self._last_s, time.thread_time()
        return round(max(0.0, self._last_s - before) * PS_PER_S)

    def end(self) -> None:
        """Do nothing."""


class CountedComputing:
    """Computations take the time of their floating-point operations, as PyTorch counts them, at a rate."""

    def __init__(self, flops: float) -> None:
        from torch.utils.flop_counter import FlopCounterMode

        self._flops, self._last = flops, 0
        self._counter: Any = FlopCounterMode(display=False)
        self._counter.__enter__()

    def since_last_ps(self) -> int:
        """Return the time of the operations since the last call."""
        before, self._last = self._last, int(self._counter.get_total_flops())
        return round((self._last - before) / self._flops * PS_PER_S)

    def end(self) -> None:
        """Leave the counter."""
        self._counter.__exit__(None, None, None)


def computing_of(settings: Settings) -> Computing:
    """Return what the settings ask for."""
    if settings.flops is not None:
        return CountedComputing(settings.flops)
    return MeasuredComputing() if settings.compute == "measured" else NoComputing()
