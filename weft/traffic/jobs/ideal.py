"""The times of a job's operations if communication took none: what computation and dependencies alone make of it."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.traffic.jobs.checks import check_job
from weft.traffic.jobs.job import Job, JobError, RankPart
from weft.traffic.jobs.matching import Calls, calls_of, transfers_of
from weft.traffic.jobs.operations import MAX_DURATION_PS, NO_STREAM, Kind, Operations

NEVER_PS = -1


@dataclass(frozen=True, eq=False)
class OperationTimes:
    """When each operation of a rank started and was done, in ps from the job's start; -1 for never."""

    started_ps: NDArray[np.int64]
    finished_ps: NDArray[np.int64]

    @property
    def end_ps(self) -> int:
        """When the rank's last operation was done."""
        return int(self.finished_ps.max(initial=0))


def ideal_times(job: Job) -> list[OperationTimes]:
    """Return the times of every rank's operations if transfers arrive at once and collectives take no time.

    Computations take their duration times `compute_scale`. A collective is done when its last rank starts it.
    Raises JobError if the job does not come to an end.
    """
    run = _Run(job)
    run.to_its_end()
    if run.left:
        check_job(job)
        raise JobError(f"{run.left} operations never start: operations of streams wait for each other")
    return [OperationTimes(np.array(each.started, np.int64), np.array(each.finished, np.int64)) for each in run.ranks]


class _Program:
    """Successors of each operation, as lists, which Python reads faster than arrays."""

    def __init__(self, operations: Operations) -> None:
        count = len(operations)
        self.kind = operations.kind.tolist()
        self.stream = operations.stream.tolist()
        self.duration_ps = operations.duration_ps.tolist()
        self.waiting = np.diff(operations.after_offsets).tolist()
        self.after_end: list[list[int]] = [[] for _ in range(count)]
        self.after_start: list[list[int]] = [[] for _ in range(count)]
        rows = np.repeat(np.arange(count), np.diff(operations.after_offsets)).tolist()
        edges = zip(rows, operations.after.tolist(), operations.after_start.tolist(), strict=True)
        for row, other, is_start in edges:
            (self.after_start if is_start else self.after_end)[other].append(row)
        numbers = operations.collective_numbers().tolist()
        self.collective = dict(zip(operations.of_kind(Kind.COLLECTIVE).tolist(), numbers, strict=True))
        self.group_slot = [
            operations.calls[target][0] if kind == Kind.COLLECTIVE else -1
            for kind, target in zip(self.kind, operations.target.tolist(), strict=True)
        ]


class _Rank:
    """A rank's progress."""

    def __init__(self, part: RankPart, program: _Program) -> None:
        self.part, self.program = part, program
        self.waiting = list(program.waiting)
        self.started = [NEVER_PS] * len(program.kind)
        self.finished = [NEVER_PS] * len(program.kind)
        self.ready: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """Operations that each stream could start, and when."""
        self.busy: set[int] = set()
        """Streams that compute, or are about to choose."""

    def computing_ps(self, operation: int) -> int:
        """Return how long a computation takes, rounded as the engine rounds it."""
        duration_ps, scale = self.program.duration_ps[operation], self.part.compute_scale
        return duration_ps if scale == 1.0 else min(int(duration_ps * scale + 0.5), MAX_DURATION_PS)


class _Run:
    """Events in order of time; at equal times in the order in which they were made."""

    def __init__(self, job: Job) -> None:
        self._job = job
        programs: dict[int, _Program] = {}
        for part in job.parts:
            if id(part.operations) not in programs:
                programs[id(part.operations)] = _Program(part.operations)
        self.ranks = [_Rank(part, programs[id(part.operations)]) for part in job.parts]
        self.left = job.operation_count
        self._now_ps = 0
        self._events: list[tuple[int, int, int, int, Callable[[int, int], None]]] = []
        self._made = 0
        self._receiver = _receivers(job)
        self._arrived: set[tuple[int, int]] = set()
        self._calls: Calls = calls_of(job)
        self._begun: dict[tuple[int, int], int] = defaultdict(int)

    def to_its_end(self) -> None:
        """Run all that can start."""
        for number, rank in enumerate(self.ranks):
            for operation, waiting in enumerate(rank.program.waiting):
                if not waiting:
                    self._become_ready(number, operation)
        while self._events:
            self._now_ps, _, number, which, event = heapq.heappop(self._events)
            event(number, which)

    def _at(self, time_ps: int, rank: int, which: int, event: Callable[[int, int], None]) -> None:
        self._made += 1
        heapq.heappush(self._events, (time_ps, self._made, rank, which, event))

    def _become_ready(self, number: int, operation: int) -> None:
        rank = self.ranks[number]
        stream = rank.program.stream[operation]
        if stream == NO_STREAM:
            self._at(self._now_ps, number, operation, self._start)
            return
        heapq.heappush(rank.ready[stream], (self._now_ps, operation))
        self._choose(number, stream)

    def _choose(self, number: int, stream: int) -> None:
        rank = self.ranks[number]
        if stream not in rank.busy and rank.ready[stream]:
            # Others of this moment may have a lower number.
            rank.busy.add(stream)
            self._at(self._now_ps, number, stream, self._start_first)

    def _start_first(self, number: int, stream: int) -> None:
        _, operation = heapq.heappop(self.ranks[number].ready[stream])
        self._start(number, operation)

    def _start(self, number: int, operation: int) -> None:
        rank = self.ranks[number]
        rank.started[operation] = self._now_ps
        self._release(number, rank.program.after_start[operation])
        kind = rank.program.kind[operation]
        if kind == Kind.COMPUTE:
            self._at(self._now_ps + rank.computing_ps(operation), number, operation, self._finish)
        elif kind == Kind.TIMER:
            self._at(max(self._now_ps, rank.program.duration_ps[operation]), number, operation, self._finish)
        elif kind == Kind.SEND:
            self._at(self._now_ps, number, operation, self._finish)
            self._arrive(*self._receiver[number, operation])
        elif kind == Kind.READ:
            self._at(self._now_ps, number, operation, self._finish)
        elif kind == Kind.RECEIVE:
            if (number, operation) in self._arrived:
                self._at(self._now_ps, number, operation, self._finish)
        else:
            self._begin_collective(number, operation)

    def _arrive(self, number: int, operation: int) -> None:
        self._arrived.add((number, operation))
        if self.ranks[number].started[operation] != NEVER_PS:
            self._at(self._now_ps, number, operation, self._finish)

    def _begin_collective(self, number: int, operation: int) -> None:
        rank = self.ranks[number]
        group = rank.part.groups[rank.program.group_slot[operation]]
        nth = rank.program.collective[operation]
        self._begun[group, nth] += 1
        members = self._job.groups[group].ranks
        if self._begun[group, nth] == len(members):
            for member in members:
                self._at(self._now_ps, member, self._calls.operation(group, member, nth), self._finish)

    def _finish(self, number: int, operation: int) -> None:
        rank = self.ranks[number]
        rank.finished[operation] = self._now_ps
        self.left -= 1
        self._release(number, rank.program.after_end[operation])
        stream = rank.program.stream[operation]
        if stream != NO_STREAM:
            rank.busy.discard(stream)
            self._choose(number, stream)

    def _release(self, number: int, following: list[int]) -> None:
        waiting = self.ranks[number].waiting
        for operation in following:
            waiting[operation] -= 1
            if not waiting[operation]:
                self._become_ready(number, operation)


def _receivers(job: Job) -> dict[tuple[int, int], tuple[int, int]]:
    """Return of each send that has one, by rank and operation, its receive. Raises JobError for those without."""
    transfers = transfers_of(job)
    if transfers.lone_sends or transfers.lone_receives:
        check_job(job)
    sends, receives = transfers.sends, transfers.receives
    return dict(
        zip(
            zip(sends.rank.tolist(), sends.operation.tolist(), strict=True),
            zip(receives.rank.tolist(), receives.operation.tolist(), strict=True),
            strict=True,
        )
    )
