"""Many senders to one receiver."""

from __future__ import annotations

from collections.abc import Sequence

from weft.bench.setup import NotApplicableError, Setup
from weft.traffic.patterns import Flow

RATIOS = (2, 4, 8, 16, 32, 64)
"""Senders in the drafts' incasts."""


def possible_ratios(setup: Setup, ratios: Sequence[int] = RATIOS, receiver: int = 0) -> list[int]:
    """Return the ratios for which the fabric has senders. NotApplicableError: it has none."""
    found = [ratio for ratio in ratios if setup.subject.senders_to(receiver, ratio) is not None]
    if not found:
        raise NotApplicableError(
            f"an incast of {ratios[0]}:1 takes more than the fabric's {setup.subject.ranks} endpoints"
        )
    return found


def left_out(setup: Setup, ratios: Sequence[int], possible: Sequence[int]) -> list[str]:
    """Return a sentence for each ratio that the fabric is too small for."""
    return [
        f"{ratio}:1 takes more endpoints than the fabric has ({setup.subject.ranks})"
        for ratio in ratios
        if ratio not in possible
    ]


def incast(
    setup: Setup, ratio: int, size_bytes: int, receiver: int = 0, start_ps: int = 0, first: int = 0
) -> list[Flow]:
    """Return a transfer from each of so many senders, those from `first` on, all at once."""
    senders = setup.subject.senders_to(receiver, first + ratio)
    if senders is None:
        raise NotApplicableError(f"{first + ratio} senders take more than the fabric's {setup.subject.ranks} endpoints")
    return [flow for sender in senders[first:] for flow in setup.transfer(sender, receiver, size_bytes, start_ps)]
