"""The emulated time that all endpoints agree on, as their runner sees it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol


class RunClock(Protocol):
    """The emulated time of all endpoints, as the runner sees it."""

    def now_ps(self) -> int:
        """Return the time."""

    def wait_time_s(self) -> float:
        """Return the time that `Wait` counts in: real time, or under the virtual clock emulated time."""

    def start_margin_ps(self, ranks: int) -> int:
        """Return how far ahead a common start must lie for so many endpoints to be notified in time."""


@dataclass(frozen=True)
class WallClock:
    """Time that passes while commands are on their way."""

    epoch_ns: int
    dilation: float

    def now_ps(self) -> int:
        """See RunClock."""
        return self._emulated_ps(time.monotonic_ns() - self.epoch_ns)

    def wait_time_s(self) -> float:
        """See RunClock."""
        return time.monotonic()

    def start_margin_ps(self, ranks: int) -> int:
        """See RunClock."""
        return self._emulated_ps(10_000_000 + 1_000_000 * ranks)

    def _emulated_ps(self, real_ns: int) -> int:
        return int(real_ns * 1000 / self.dilation)
