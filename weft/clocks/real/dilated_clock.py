"""The emulated time of a lab of the real clock, for what waits in the controller's event loop."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from weft.quantities.units import PS_PER_NS, PS_PER_S


@dataclass(frozen=True)
class DilatedClock:
    """A `weft.controller.operations.OperationsClock`: emulated time is real time, `dilation` times slower."""

    epoch_ns: int
    dilation: float

    def now_ps(self) -> int:
        """Return the emulated time."""
        return int((time.monotonic_ns() - self.epoch_ns) * PS_PER_NS / self.dilation)

    async def sleep_ps(self, duration_ps: int) -> None:
        """Wait for so much emulated time."""
        await asyncio.sleep(duration_ps * self.dilation / PS_PER_S)
