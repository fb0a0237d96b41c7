"""Cuts ranges into pieces, and builds a rank's dependency graph of transfers over one plane."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Generic, Self, TypeVar

from weft.traffic.schedule_nodes import (
    DATA,
    SCALE_UP,
    SCRATCH,
    Channel,
    Copy,
    RankSchedule,
    Reduce,
    Span,
    WaitReceive,
    Write,
    run_immediate,
)
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.striping import split_evenly

MAX_PIECES = 64
MAX_PIECES_IN_A_HOST = 8
"""As many as a connection of NCCL has under way (NCCL_STEPS, src/include/device.h). Scale-up links have a
short latency; more would take as long.
"""
_Schedule = TypeVar("_Schedule")


def piece_count(size_bytes: int, piece_bytes: int, most: int = MAX_PIECES) -> int:
    """Return the number of pieces that so many bytes are cut into, so that transfers of different pieces overlap."""
    return max(1, min(-(-size_bytes // piece_bytes), most))


def cut(elements: range, piece_bytes: int, element_bytes: int) -> list[range]:
    """Cut a range into pieces of about `piece_bytes`, at most `MAX_PIECES`; an empty range has none."""
    return split_evenly(elements, piece_count(len(elements) * element_bytes, piece_bytes)) if elements else []


def channel_to(spec: CollectiveSpec, rank: int, plane: int, peer: int) -> Channel:
    """Return a rank's channel to a peer: over a plane, or over scale-up links where the two share a host."""
    channel = Channel(plane, peer, protocol=spec.protocol)
    if spec.share_a_host(rank, peer):
        return replace(channel, label=SCALE_UP)
    return replace(channel, clear_to_send=spec.clear_to_send)


class Plan(Generic[_Schedule]):
    """Adds to a rank's schedule over one plane, or over scale-up links where two ranks share a host.

    Transfers from one rank to another have numbers that both know; they count from `first_transfer`. Nothing empty is
    ever transferred.
    """

    def __init__(
        self, spec: CollectiveSpec, rank: int, schedule: _Schedule, plane: int, first_transfer: int = 0
    ) -> None:
        self.spec, self.rank, self.plane = spec, rank, plane
        self.schedule = schedule
        self.first_transfer = first_transfer

    def from_transfer(self, number: int) -> Self:
        """Return a plan of the same schedule that numbers transfers from `number` of this one."""
        return type(self)(self.spec, self.rank, self.schedule, self.plane, self.first_transfer + number)

    def channel_to(self, peer: int) -> Channel:
        """Return the rank's channel to a peer."""
        return channel_to(self.spec, self.rank, self.plane, peer)


class RankPlan(Plan[RankSchedule]):
    """Adds transfers to a rank's dependency graph.

    Ranges are elements of the data, or of the scratch buffer where said so.
    """

    def write(
        self,
        peer: int,
        number: int,
        source: range,
        landing: range | None = None,
        *,
        to: str = DATA,
        after: Iterable[int | None] = (),
    ) -> int:
        """Write elements of the data to the peer's buffer `to`, at `landing` or their own place."""
        destination = self.spec.span(to, source if landing is None else landing)
        return self.write_span(peer, number, self.spec.span(DATA, source), destination, after)

    def write_span(
        self, peer: int, number: int, source: Span, destination: Span, after: Iterable[int | None] = ()
    ) -> int:
        """Write bytes of any buffer of the rank's to any of the peer's."""
        return self.schedule.add(Write(self.channel_to(peer), source, destination, self._immediate(number)), after)

    def wait(self, peer: int, number: int, after: Iterable[int | None] = ()) -> int:
        """Wait for the peer's transfer of that number."""
        return self.schedule.add(WaitReceive(self.channel_to(peer), self._immediate(number)), after)

    def reduce(self, target: range, partial: range, after: Iterable[int | None]) -> int:
        """Reduce elements of the scratch buffer into elements of the data."""
        return self.schedule.add(
            Reduce(
                self.spec.span(DATA, target),
                self.spec.span(SCRATCH, partial),
                self.spec.dtype,
                self.spec.operation,
            ),
            after,
        )

    def copy(self, target: range, source: range, after: Iterable[int | None]) -> int:
        """Copy elements of the scratch buffer into the data."""
        return self.schedule.add(Copy(self.spec.span(DATA, target), self.spec.span(SCRATCH, source)), after)

    def _immediate(self, number: int) -> int:
        return run_immediate(self.spec.run_tag, self.first_transfer + number)
