"""The critical path of a job that has run: the chain of operations and waits that its duration consists of.

It is followed back from the operation that was done last. What let an operation start is the last of: the operations
that it followed, and the operation that its stream was busy with. What let one be done is

* of a computation or a timer, itself;
* of a send, itself: the time until the peer has acknowledged it;
* of a READ, itself: the time until all of it has come;
* of a receive that had to wait, the matching send;
* of a collective, the rank of its group that began last.

So the stretches follow each other without gaps from the job's start to its end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from weft.traffic.jobs.breakdown import Times
from weft.traffic.jobs.job import Job
from weft.traffic.jobs.matching import calls_of, transfers_of
from weft.traffic.jobs.operations import NO_STREAM, Kind, Operations

Place = tuple[int, int]
"""A rank and the number of one of its operations."""


class StretchKind(StrEnum):
    """Activity of a stretch of the path."""

    COMPUTE = "compute"
    TRANSFER = "transfer"
    """A message, or a READ, under way from one rank to another."""
    COLLECTIVE = "collective"
    """Since the last rank of the group had begun."""
    TIMER = "timer"
    WAIT = "wait"
    """Nothing that operations and their order explain."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the path, on a rank, in ps from the job's start.

    `source` is the rank that sent a message, served a read, or began a collective last; else `rank`.
    """

    kind: StretchKind
    begin_ps: int
    end_ps: int
    rank: int
    operation: int
    category: str
    source: int

    @property
    def duration_ps(self) -> int:
        """Return how long it is."""
        return self.end_ps - self.begin_ps


@dataclass(frozen=True)
class CriticalPath:
    """The stretches, from the job's start to its end; each begins where the one before ends."""

    stretches: tuple[Stretch, ...]

    @property
    def duration_ps(self) -> int:
        """Return how long the job took."""
        return self.stretches[-1].end_ps if self.stretches else 0

    def by_category(self) -> Counter[tuple[str, str]]:
        """Return the time of each kind of stretch and category, in ps."""
        sums = Counter[tuple[str, str]]()
        for each in self.stretches:
            sums[each.kind.value, each.category] += each.duration_ps
        return sums

    def by_rank(self) -> Counter[int]:
        """Return the time for which the path was on each rank, in ps; a message's is its receiver's."""
        sums = Counter[int]()
        for each in self.stretches:
            sums[each.rank] += each.duration_ps
        return sums


def critical_path(job: Job, times: Sequence[Times]) -> CriticalPath:
    """Return the critical path of a job that has run to its end, given the times of every rank's operations.

    It takes memory in proportion to the job's operations, and time besides in proportion to the path's length.
    """
    return CriticalPath(tuple(reversed([*_Follower(job, times).back_from_the_end()])))


class _Follower:
    """Finds what let operations start, and what let them be done."""

    def __init__(self, job: Job, times: Sequence[Times]) -> None:
        self._job, self._times = job, times
        self._calls = calls_of(job)
        transfers = transfers_of(job)
        places = zip(transfers.receives.rank.tolist(), transfers.receives.operation.tolist(), strict=True)
        self._row_of_receive = {place: row for row, place in enumerate(places)}
        self._sends = transfers.sends
        self._numbers: dict[int, dict[int, int]] = {}
        self._streams: dict[Place, tuple[list[int], list[int]]] = {}
        # Operations that take no time may be done in a moment in more than one order.
        self._seen: set[Place] = set()

    def back_from_the_end(self) -> Iterator[Stretch]:
        """Yield the stretches, the last one first."""
        last = self._last()
        now_ps = 0 if last is None else self._finished(last)
        while last is not None and now_ps > 0:
            stretch, cause = self._work(last, now_ps)
            self._seen.update((last, cause))
            if stretch.duration_ps:
                yield stretch
            last, let_ps = self._before(cause)
            now_ps = min(stretch.begin_ps, let_ps)
            if now_ps < stretch.begin_ps:
                rank, operation = cause
                category = self._category(cause)
                yield Stretch(StretchKind.WAIT, now_ps, stretch.begin_ps, rank, operation, category, rank)

    def _last(self) -> Place | None:
        ends = [int(each.finished_ps.max(initial=-1)) for each in self._times]
        if not ends or max(ends) < 0:
            return None
        rank = ends.index(max(ends))
        return rank, int(self._times[rank].finished_ps.argmax())

    def _work(self, place: Place, now_ps: int) -> tuple[Stretch, Place]:
        """Return what an operation, of which the path is left until `now_ps`, did; and the one that began with it."""
        rank, operation = place
        kind = self._operations(rank).kind[operation]
        cause = place
        if kind == Kind.RECEIVE and self._finished(place) > self._started(place):
            cause = self._sender(place)
        elif kind == Kind.COLLECTIVE:
            cause = self._last_to_begin(place, now_ps)
        begin_ps = min(now_ps, self._started(cause))
        source = self._peer(place) if kind == Kind.READ else cause[0]
        stretch = Stretch(_STRETCHES[Kind(kind)], begin_ps, now_ps, rank, operation, self._category(place), source)
        return stretch, cause

    def _before(self, place: Place) -> tuple[Place | None, int]:
        """Return the operation that was the last to let one start, and when; none and 0 where the job's start did."""
        rank, operation = place
        operations, times = self._operations(rank), self._times[rank]
        found: Place | None = None
        latest_ps = 0
        first, end = operations.after_offsets[operation], operations.after_offsets[operation + 1]
        for edge in range(int(first), int(end)):
            other = int(operations.after[edge])
            over_ps = int((times.started_ps if operations.after_start[edge] else times.finished_ps)[other])
            if found is None or over_ps > latest_ps:
                found, latest_ps = (rank, other), over_ps
        on_stream = self._before_on_stream(place)
        if on_stream is not None and (found is None or self._finished(on_stream) > latest_ps):
            return on_stream, self._finished(on_stream)
        return found, latest_ps

    def _before_on_stream(self, place: Place) -> Place | None:
        """Return the operation of the same stream that was done last before one started."""
        rank, operation = place
        stream = int(self._operations(rank).stream[operation])
        if stream == NO_STREAM:
            return None
        if (rank, stream) not in self._streams:
            rows = np.flatnonzero(self._operations(rank).stream == stream)
            finished = self._times[rank].finished_ps[rows]
            order = np.lexsort((rows, finished))
            self._streams[rank, stream] = finished[order].tolist(), rows[order].tolist()
        finished_ps, rows_in_order = self._streams[rank, stream]
        at = bisect_right(finished_ps, self._started(place)) - 1
        while at >= 0 and (rank, rows_in_order[at]) in self._seen:
            at -= 1
        return None if at < 0 else (rank, rows_in_order[at])

    def _sender(self, place: Place) -> Place:
        return self._sends.place(self._row_of_receive[place])

    def _peer(self, place: Place) -> int:
        part = self._job.parts[place[0]]
        return part.peers[int(part.operations.target[place[1]])]

    def _last_to_begin(self, place: Place, now_ps: int) -> Place:
        """Return the part in a collective that began last, of those that had begun by `now_ps`; by default its own."""
        rank, operation = place
        part = self._job.parts[rank]
        group = part.groups[part.operations.calls[int(part.operations.target[operation])][0]]
        number = self._number_of_call(rank)[operation]
        found = place
        for member in self._job.groups[group].ranks:
            other = member, self._calls.operation(group, member, number)
            if self._started(found) < self._started(other) <= now_ps:
                found = other
        return found

    def _number_of_call(self, rank: int) -> dict[int, int]:
        """Return which of its group's collectives each operation of a rank takes part in."""
        operations = self._operations(rank)
        if id(operations) not in self._numbers:
            rows, numbers = operations.of_kind(Kind.COLLECTIVE), operations.collective_numbers()
            self._numbers[id(operations)] = dict(zip(rows.tolist(), numbers.tolist(), strict=True))
        return self._numbers[id(operations)]

    def _operations(self, rank: int) -> Operations:
        return self._job.parts[rank].operations

    def _started(self, place: Place) -> int:
        return int(self._times[place[0]].started_ps[place[1]])

    def _finished(self, place: Place) -> int:
        return int(self._times[place[0]].finished_ps[place[1]])

    def _category(self, place: Place) -> str:
        operations = self._operations(place[0])
        return operations.categories[int(operations.category[place[1]])]


_STRETCHES = {
    Kind.COMPUTE: StretchKind.COMPUTE,
    Kind.TIMER: StretchKind.TIMER,
    Kind.SEND: StretchKind.TRANSFER,
    Kind.RECEIVE: StretchKind.TRANSFER,
    Kind.READ: StretchKind.TRANSFER,
    Kind.COLLECTIVE: StretchKind.COLLECTIVE,
}
