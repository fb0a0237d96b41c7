"""Roofline model of a computation's duration on an accelerator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from weft.hints import did_you_mean
from weft.jobs.accelerators import ACCELERATORS, Accelerator, Precision
from weft.jobs.traces.errors import TraceError
from weft.quantities.units import PS_PER_S
from weft.traffic.jobs.operations import MAX_DURATION_PS


@dataclass(frozen=True)
class Roofline:
    """The roofline model (Williams, Waterman, Patterson 2009): the slower of computing and moving operands.

    Attributes:
        flops_per_s: floating-point operations per second.
        memory_bytes_per_s: bandwidth of the accelerator's memory.
    """

    flops_per_s: float
    memory_bytes_per_s: float

    def duration_ps(self, operations: int, moved_bytes: int) -> int:
        """Return the duration of a computation, in ps.

        A duration beyond `MAX_DURATION_PS` is returned as that plus 1.
        """
        took_s = max(operations / self.flops_per_s, moved_bytes / self.memory_bytes_per_s)
        return round(min(took_s * PS_PER_S, MAX_DURATION_PS + 1))


def roofline_of(accelerator: str | Accelerator, precision: str) -> Roofline:
    """Return the roofline of an accelerator, given or by name. Raises TraceError for an unknown name or precision."""
    if isinstance(accelerator, str):
        if accelerator not in ACCELERATORS:
            raise TraceError(f"no accelerator {accelerator!r}; {did_you_mean(accelerator, ACCELERATORS)}")
        accelerator = ACCELERATORS[accelerator]
    for known in get_args(Precision):
        if known == precision and known in accelerator.peak_tflops:
            return Roofline(accelerator.flops_per_s(known), accelerator.memory_bytes_per_s)
    raise TraceError(f"precision {precision!r} (valid for this accelerator: {', '.join(accelerator.peak_tflops)})")
