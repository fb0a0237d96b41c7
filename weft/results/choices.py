"""The choice of `auto`, and its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AlgorithmChoice:
    """The algorithm that was predicted to be the fastest."""

    algorithm: str
    """Which."""
    predicted_ps: int
    """How long it was predicted to take."""
    runner_up: str | None
    """The second fastest; null if there was no other."""
    runner_up_ps: int | None
    """How long that was predicted to take; null if there was no other."""
    reason: str
    """Parts of both times, in words."""
