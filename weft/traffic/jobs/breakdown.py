"""Divides each rank's time, from its first operation to the end of the job, into computing and kinds of waiting.

A rank computes while any of its computations runs. All other time is divided by the operation that it waited for. The
computation that comes next (at the end, the rank's last operation) followed the one of its predecessors that was the
last to be done; that one followed another, and so on back to the beginning of the gap. While a collective or a receive
is the one waited for, its time counts

* as *exposed* communication of its category, from when the last rank of the group had begun, or the message had been
  sent;
* before that as a *bubble*, if it waits for a message, and as a *stall*, if it waits for other ranks of a group.

A rank that has done its part waits for the end of the job: a bubble, too. The rest is stalls: timers, and streams that
other operations keep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np

from weft.quantities.arrays import Integers
from weft.traffic.jobs.job import Job
from weft.traffic.jobs.matching import calls_of, transfers_of
from weft.traffic.jobs.operations import TRANSFERS, Kind, Operations

_NONE = -1


class Times(Protocol):
    """When each operation of a rank started and was done, in ps from the job's start."""

    @property
    def started_ps(self) -> Integers:
        """Start of each operation."""

    @property
    def finished_ps(self) -> Integers:
        """End of each operation."""


@dataclass
class Breakdown:
    """A rank's time, in ps. The sum of all is the job's duration.

    Attributes:
        compute_ps: by category. Computations that overlap count for the one that began first.
        exposed_ps: communication that no computation hid, by category.
        bubble_ps: without anything to do: for a message that is not sent yet, or for the end.
        stall_ps: for ranks of a group that have not begun a collective, for timers and streams.

    """

    compute_ps: Counter[str] = field(default_factory=Counter)
    exposed_ps: Counter[str] = field(default_factory=Counter)
    bubble_ps: int = 0
    stall_ps: int = 0

    @property
    def total_ps(self) -> int:
        """All of them."""
        return self.compute_ps.total() + self.exposed_ps.total() + self.bubble_ps + self.stall_ps


def breakdowns(job: Job, times: Sequence[Times]) -> list[Breakdown]:
    """Return each rank's breakdown of a job that has run to its end, given the times of its operations."""
    able_ps = _able_times(job, times)
    end_ps = max((int(each.finished_ps.max(initial=0)) for each in times), default=0)
    return [
        _RankBreakdown(part.operations, own, able).until(end_ps)
        for part, own, able in zip(job.parts, times, able_ps, strict=True)
    ]


class _RankBreakdown:
    """Follows a rank's gaps back to what they waited for."""

    def __init__(self, operations: Operations, times: Times, able_ps: Integers) -> None:
        self._operations = operations
        self._started = times.started_ps.tolist()
        self._finished = times.finished_ps.tolist()
        self._able = able_ps.tolist()
        self._critical = _critical_predecessors(operations, times).tolist()
        self._kinds = operations.kind.tolist()
        self._categories = [operations.categories[each] for each in operations.category.tolist()]
        self._found = Breakdown()
        rows = operations.of_kind(Kind.COMPUTE)
        order = np.lexsort((rows, times.started_ps[rows]))
        self._computations = rows[order].tolist()
        self._last = int(times.finished_ps.argmax()) if len(operations) else _NONE

    def until(self, end_ps: int) -> Breakdown:
        """Return the breakdown of a job that ends then."""
        now_ps = 0
        for operation in self._computations:
            start_ps = self._started[operation]
            if start_ps > now_ps:
                self._follow(self._critical[operation], now_ps, start_ps)
            if self._finished[operation] > now_ps:
                self._found.compute_ps[self._categories[operation]] += self._finished[operation] - max(now_ps, start_ps)
                now_ps = self._finished[operation]
        own_end_ps = self._finished[self._last] if self._last != _NONE else 0
        if own_end_ps > now_ps:
            self._follow(self._last, now_ps, own_end_ps)
        self._found.bubble_ps += end_ps - max(now_ps, own_end_ps)
        return self._found

    def _follow(self, operation: int, begin_ps: int, end_ps: int) -> None:
        """Divide a gap, of which the end waited for an operation."""
        while end_ps > begin_ps and operation != _NONE:
            done_ps = min(end_ps, max(begin_ps, self._finished[operation]))
            self._found.stall_ps += end_ps - done_ps
            # An operation is followed by others from its start on, too.
            since_ps = min(done_ps, max(begin_ps, self._started[operation]))
            able_ps = min(done_ps, max(since_ps, self._able[operation]))
            self._note(operation, able_ps - since_ps, done_ps - able_ps)
            end_ps, operation = since_ps, self._critical[operation]
        self._found.stall_ps += max(end_ps - begin_ps, 0)

    def _note(self, operation: int, before_ps: int, under_way_ps: int) -> None:
        kind = self._kinds[operation]
        if kind == Kind.RECEIVE:
            self._found.bubble_ps += before_ps
        else:
            self._found.stall_ps += before_ps
        if kind in (*TRANSFERS, Kind.COLLECTIVE):
            if under_way_ps:
                self._found.exposed_ps[self._categories[operation]] += under_way_ps
        else:
            self._found.stall_ps += under_way_ps


def _critical_predecessors(operations: Operations, times: Times) -> Integers:
    """Return which of an operation's predecessors was the last for which it waited; -1 where it has none."""
    found = np.full(len(operations), _NONE, np.int64)
    if not len(operations.after):
        return found
    over_ps = np.where(operations.after_start, times.started_ps[operations.after], times.finished_ps[operations.after])
    rows = np.repeat(np.arange(len(operations)), np.diff(operations.after_offsets))
    order = np.lexsort((over_ps, rows))
    # The last of each row is the latest.
    found[rows[order]] = operations.after[order]
    return found


def _able_times(job: Job, times: Sequence[Times]) -> list[Integers]:
    """Return when operations could be under way: receives when messages were sent, collectives when all began."""
    able = [each.started_ps.copy() for each in times]
    transfers = transfers_of(job)
    bases = np.cumsum([0, *(len(each) for each in able)])
    everything = np.concatenate(able) if able else np.zeros(0, np.int64)
    sent_ps = everything[bases[transfers.sends.rank] + transfers.sends.operation]
    everything[bases[transfers.receives.rank] + transfers.receives.operation] = sent_ps
    calls = calls_of(job)
    for number, group in enumerate(job.groups):
        rows = [bases[rank] + calls.operations(number, rank) for rank in group.ranks]
        began_ps = np.max([everything[each] for each in rows], axis=0)
        for each in rows:
            everything[each] = began_ps
    return [everything[begin:end] for begin, end in pairwise(bases)]
