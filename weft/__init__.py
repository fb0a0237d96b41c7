"""Weft: scenarios, back ends, runs and reports; the `weft` command and its Python API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError, WeftError

if TYPE_CHECKING:
    from weft.collectives import CollectiveRun
    from weft.fabric import Fabric
    from weft.sweeps import SweepResult, sweep

__all__ = [
    "BadInputError",
    "CheckFailedError",
    "CollectiveRun",
    "EnvironmentLacksError",
    "Fabric",
    "SweepResult",
    "WeftError",
    "sweep",
]


def __getattr__(name: str) -> Any:
    # Importing these takes most of a second, which commands like `weft clean` need not wait for.
    if name in ("CollectiveRun", "Fabric"):
        from weft import fabric

        return getattr(fabric, name)
    if name in ("SweepResult", "sweep"):
        from weft import sweeps

        return getattr(sweeps, name)
    raise AttributeError(f"module 'weft' has no attribute '{name}'")
