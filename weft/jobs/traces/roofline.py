"""How long a computation takes on an accelerator."""

from __future__ import annotations

from dataclasses import dataclass

PS_PER_S = 10**12


@dataclass(frozen=True)
class Roofline:
    """The roofline model (Williams, Waterman, Patterson 2009): the slower of computing and of moving its operands.

    Attributes:
        flops_per_s: floating-point operations per second.
        memory_bytes_per_s: of the accelerator's own memory.
    """

    flops_per_s: float
    memory_bytes_per_s: float

    def duration_ps(self, operations: int, moved_bytes: int) -> int:
        """Return the duration of a computation of so many operations on so many bytes, rounded to picoseconds."""
        return round(max(operations / self.flops_per_s, moved_bytes / self.memory_bytes_per_s) * PS_PER_S)
