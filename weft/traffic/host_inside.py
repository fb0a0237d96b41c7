"""The inside of a host as its ranks use it: the links to their NICs, and copies by way of host memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.engine import _core
from weft.quantities.units import PS_PER_S


@dataclass(frozen=True)
class ChunkCopies:
    """Copies of messages between accelerators and host memory, at the sender, the receiver or both.

    Chunks are copied while others are under way. Left alone are the first one before it is sent, and the last one after
    it has come: together they take `latency_ps` and their time at `rate_bps`.
    """

    latency_ps: int
    chunk_bytes: int
    rate_bps: int

    def alone_ps(self, size_bytes: int) -> int:
        """Return how much later a message is there."""
        return self.latency_ps + round(min(size_bytes, self.chunk_bytes) * 8 * PS_PER_S / self.rate_bps)


@dataclass(frozen=True)
class HostInside:
    """The part of its host that a rank's NIC needs.

    Attributes:
        links: the links that all ranks of the host share.
        names: their names.
        rates_bps: their rates.
        ways: by NIC, the numbers of the links that payload crosses to be sent, and when received.
        numbers: of every rank of the fabric within its host.
        copies: of messages to and from ranks with such a number over such a NIC; without those that need none.
        own_copies: this rank's share of these, by NIC: what delays acknowledgements of its messages.
        host: name of the host's first rank.
        is_first: for that rank, which counts the links.
    """

    links: _core.HostLinks
    names: Sequence[str]
    rates_bps: Sequence[int]
    ways: Sequence[tuple[Sequence[int], Sequence[int]]]
    numbers: Mapping[int, int]
    copies: Mapping[tuple[int, int], ChunkCopies]
    own_copies: Mapping[int, ChunkCopies]
    host: str
    is_first: bool

    def copies_with(self, peer: int, nic: int) -> ChunkCopies | None:
        """Return the copies of messages from or to a rank."""
        return self.copies.get((self.numbers[peer], nic)) if self.copies else None

    def set_copies(self, executor: _core.ScheduleExecutor, channel: int, peer: int, nic: int) -> None:
        """Have an executor's channel from a rank wait for copies, if its messages need any."""
        copies = self.copies_with(peer, nic)
        if copies is not None:
            executor.set_copies(
                channel, latency_ps=copies.latency_ps, chunk_bytes=copies.chunk_bytes, rate_bps=copies.rate_bps
            )

    def stats(self) -> list[dict[str, Any]]:
        """Return the links' counters, with their names and rates, from one rank of the host; [] from the others."""
        if not self.is_first:
            return []
        return [
            {"name": name, "rate_bps": rate_bps, **self.links.stats(number)}
            for number, (name, rate_bps) in enumerate(zip(self.names, self.rates_bps, strict=True))
        ]

    def reset_stats(self) -> None:
        """Set these counters to zero."""
        if self.is_first:
            self.links.reset_stats()
