"""How long senders of messages waited for clearance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rich.console import Console

from weft.quantities.readable import counted, format_time
from weft.quantities.units import PS_PER_US
from weft.results.columns import Column
from weft.results.counters import HostTotals
from weft.results.kinds import ItemResult
from weft.traffic.clear_to_send import ClearToSend


@dataclass(frozen=True)
class ClearToSendResult:
    """Messages that receivers cleared, and how long senders waited: of all repetitions, or of a whole job.

    Items that run together count the messages of all of them.
    """

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
    settings: ClearToSend | None, ranks: int, times_ps: Sequence[int], counts: Sequence[HostTotals]
) -> ClearToSendResult | None:
    """Return what receivers cleared in runs that took so long; None if senders did not wait for them."""
    if settings is None:
        return None
    messages, ranks_ps = sum(each.cleared_messages for each in counts), sum(times_ps) * ranks
    return ClearToSendResult(
        window=settings.window,
        chunk_bytes=settings.chunk,
        messages=messages,
        held_messages=sum(each.held_messages for each in counts),
        mean_wait_ps=round(sum(each.clearance_wait_ps for each in counts) / messages) if messages else 0,
        waiting_share=sum(each.clearance_stall_ps for each in counts) / ranks_ps if ranks_ps else 0.0,
    )


@dataclass(frozen=True)
class ClearedResult(ItemResult):
    """A result of traffic with messages that receivers may clear."""

    clear_to_send: ClearToSendResult | None = field(default=None, kw_only=True)
    """Messages that receivers cleared; missing where senders did not wait for them."""

    @property
    @abstractmethod
    def cleared_ps(self) -> int:
        """How long it took, all repetitions together."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, without `clear_to_send` if it is missing."""
        data = super().as_dict()
        if self.clear_to_send is None:
            del data["clear_to_send"]
        return data


def clearances_of_parts(parts: Sequence[ClearedResult]) -> ClearToSendResult | None:
    """Return what receivers cleared in results one after the other; None if senders did not wait."""
    found = [(each.clear_to_send, each.cleared_ps) for each in parts if each.clear_to_send is not None]
    if not found:
        return None
    (first, _), *_ = found
    messages, time_ps = sum(each.messages for each, _ in found), sum(ps for _, ps in found)
    return ClearToSendResult(
        window=first.window,
        chunk_bytes=first.chunk_bytes,
        messages=messages,
        held_messages=sum(each.held_messages for each, _ in found),
        mean_wait_ps=round(sum(each.mean_wait_ps * each.messages for each, _ in found) / messages) if messages else 0,
        waiting_share=sum(each.waiting_share * ps for each, ps in found) / time_ps if time_ps else 0.0,
    )


C = TypeVar("C", bound=ClearedResult)


def clearance_columns(kind: type[C]) -> tuple[Column[C], ...]:
    """Return columns of a table of results: how long messages waited, and how many did."""

    def is_cleared(results: Sequence[C]) -> bool:
        return any(each.clear_to_send for each in results)

    return (
        Column(
            "clearance\nwait",
            "clear_to_send.mean_wait_ps",
            unit="µs",
            scale=PS_PER_US,
            digits=2,
            only_if=is_cleared,
        ),
        Column("held\nmessages", "clear_to_send.held_messages", only_if=is_cleared),
    )


def print_clearances(console: Console, result: ClearedResult) -> None:
    """Print how messages of a job waited, if receivers cleared them."""
    if (found := result.clear_to_send) is not None:
        console.print(
            f"{found.held_messages:,} of {counted(found.messages, 'message')} waited for clearance; "
            f"mean of all {format_time(found.mean_wait_ps)}"
        )
