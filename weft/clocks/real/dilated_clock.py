"""The emulated time of a lab of the real clock, for what waits in the controller's event loop."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

_PS_PER_NS = 1000
_PS_PER_S = 10**12


@dataclass(frozen=True)
class DilatedClock:
    """A `weft.controller.operations.OperationsClock`: emulated time is real time, `dilation` times slower."""

    epoch_ns: int
    dilation: float

    def now_ps(self) -> int:
        """Return the emulated time."""
        return int((time.monotonic_ns() - self.epoch_ns) * _PS_PER_NS / self.dilation)

    async def sleep_ps(self, duration_ps: int) -> None:
        """Wait for so much emulated time."""
        await asyncio.sleep(duration_ps * self.dilation / _PS_PER_S)
