"""How long senders of a collective waited for clearance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.results.counters import HostTotals
from weft.traffic.schedules import CollectiveSpec


@dataclass(frozen=True)
class ClearToSendResult:
    """Messages that receivers cleared, and how long senders waited, over all repetitions."""

    window: int
    """Messages of a channel that were cleared at once, at most."""
    chunk_bytes: int
    """Size of the messages into which longer transfers were cut."""
    messages: int
    """Messages sent between hosts, each of which its receiver had cleared."""
    held_messages: int
    """Messages that were ready before they were cleared."""
    mean_wait_ps: int
    """How long a message waited until it was cleared; the mean of all, those that did not wait included."""
    waiting_share: float
    """Share of the time in which a rank had a message that was not cleared; the mean of all ranks."""


def clearances_of(
    spec: CollectiveSpec, times_ps: Sequence[int], counts: Sequence[HostTotals]
) -> ClearToSendResult | None:
    """Return what receivers cleared in a collective's repetitions; None if senders did not wait for them."""
    if (settings := spec.clear_to_send) is None:
        return None
    messages, ranks_ps = sum(each.cleared_messages for each in counts), sum(times_ps) * spec.rank_count
    return ClearToSendResult(
        window=settings.window,
        chunk_bytes=settings.chunk,
        messages=messages,
        held_messages=sum(each.held_messages for each in counts),
        mean_wait_ps=round(sum(each.clearance_wait_ps for each in counts) / messages) if messages else 0,
        waiting_share=sum(each.clearance_stall_ps for each in counts) / ranks_ps if ranks_ps else 0.0,
    )
