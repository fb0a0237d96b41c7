"""Settings that a process group needs besides its ranks: the fabric, the algorithm, how long ranks compute."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weft.errors import InvalidValueError

DEVICES = ("cpu", "cuda")
"""Where tensors may be. The fabric carries host memory: tensors of a GPU are copied to it, and results back."""
COMPUTE = ("none", "measured")
_PREFIXES = {"": 1.0, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


@dataclass(frozen=True)
class Settings:
    """Options of the backend, given as `pg_options` of `init_process_group` or by the environment.

    Attributes:
        scenario: file of a scenario. The ranks are on its fabric; its traffic is not run. None: on a default fabric
            with as many hosts. WEFT_SCENARIO.
        algorithm: of collectives that have it; others use their first one. WEFT_ALGORITHM.
        compute: how emulated time goes on while a rank computes. "none": it does not. "measured": by the processor
            time of the calling thread. A number, such as "10T": by the floating-point operations that PyTorch counts,
            at so many a second. WEFT_COMPUTE.
        out: directory for results.json of the fabric; None for none. WEFT_OUT.
    """

    scenario: Path | None = None
    algorithm: str = "ring"
    compute: str = "none"
    out: Path | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if there is no such way to compute."""
        _ = self.flops

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Return the settings of the environment. Raises ValueError for a way to compute that there is not."""
        scenario, out = environment.get("WEFT_SCENARIO"), environment.get("WEFT_OUT")
        return cls(
            Path(scenario) if scenario else None,
            environment.get("WEFT_ALGORITHM", cls.algorithm),
            environment.get("WEFT_COMPUTE", cls.compute),
            Path(out) if out else None,
        )

    @property
    def flops(self) -> float | None:
        """Return the operations a second of a rank's accelerator; None if it does not count operations."""
        if self.compute in COMPUTE:
            return None
        number, prefix = self.compute, ""
        if number[-1:] in _PREFIXES:
            number, prefix = number[:-1], number[-1:]
        try:
            found = float(number) * _PREFIXES[prefix]
        except ValueError:
            found = 0.0
        if not 0 < found < 1e21:
            raise InvalidValueError(
                f"WEFT_COMPUTE: {self.compute[:40]!r}",
                valid=f"{', '.join(COMPUTE)}, or FLOP/s such as 500G or 10T",
            )
        return found
