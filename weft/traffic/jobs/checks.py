"""Whether a job can come to an end: what its ranks send and receive, call together, and wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from weft.quantities.traffic_classes import DATA_CLASSES
from weft.traffic.collectives import collective_named
from weft.traffic.jobs.classes import JobClasses
from weft.traffic.jobs.deadlocks import Deadlock, deadlock_of
from weft.traffic.jobs.job import CollectiveCall, Job, JobError
from weft.traffic.jobs.matching import Calls, Transfers, calls_of, transfers_of
from weft.traffic.jobs.operations import Kind

MOST_PROBLEMS = 10
Locate = Callable[[int, int], str]
"""Says where an operation of a rank was read, for people: "all_reduce.3.et: node 17"."""


def check_job(job: Job, locate: Locate | None = None) -> None:
    """Check that a job can come to an end; raise JobError, with up to ten problems a line each, if it cannot."""
    found = list(islice(problems(job, locate), MOST_PROBLEMS + 1))
    if len(found) > MOST_PROBLEMS:
        found[-1] = "and more"
    if found:
        raise JobError("\n".join(found))


def problems(job: Job, locate: Locate | None = None) -> Iterator[str]:
    """Yield the problems that keep a job from ending; a deadlock only if sends, receives and calls match.

    A send needs no receive to be done. A collective is done on a rank when all ranks of its group have begun it: a
    program must not rely on less (MPI 4.0, section 6.14). Streams of unordered operations can make a job wait
    for ever in an order of events that only a run shows.
    """
    where = _Names(job, locate)
    transfers, calls = transfers_of(job), calls_of(job)
    matched = True
    found = (*_transfer_problems(transfers, where), *_call_problems(job, calls, where))
    for problem in (*found, *_class_problems(job, transfers, calls, where)):
        matched = False
        yield problem
    if matched and (deadlock := deadlock_of(job, transfers, calls)):
        yield _shown_deadlock(deadlock, where)


class _Names:
    """Names of operations in messages."""

    def __init__(self, job: Job, locate: Locate | None) -> None:
        self._job = job
        self._locate = locate

    def place(self, rank: int, operation: int) -> str:
        """Return the place of an operation."""
        if self._locate is not None:
            return f"rank {rank}, {self._locate(rank, operation)}"
        operations = self._job.parts[rank].operations
        name = operations.names[operations.name[operation]]
        return f"rank {rank}, operation {operation}" + (f" {name!r}" if name else "")

    def what(self, rank: int, operation: int) -> str:
        """Return the place of an operation, and what it does."""
        part = self._job.parts[rank]
        operations, target = part.operations, int(part.operations.target[operation])
        kind = Kind(operations.kind[operation])
        doing = kind.name.lower()
        if kind in (Kind.SEND, Kind.RECEIVE):
            preposition = "to" if kind == Kind.SEND else "from"
            doing += (
                f" of {operations.size_bytes[operation]} B {preposition} rank {part.peers[target]}, "
                f"tag {operations.tag[operation]}"
            )
        elif kind == Kind.READ:
            doing += f" of {operations.size_bytes[operation]} B of rank {part.peers[target]}"
        elif kind == Kind.COLLECTIVE:
            slot, call = operations.calls[target]
            doing = f"{self._job.calls[call].name} in {self._job.groups[part.groups[slot]].name!r}"
        return f"{self.place(rank, operation)} ({doing})"


def _transfer_problems(transfers: Transfers, where: _Names) -> Iterator[str]:
    for side, other in ((transfers.lone_sends, "receives it"), (transfers.lone_receives, "sends it")):
        for rank, operation, peer in side:
            yield f"{where.what(rank, operation)}: no operation of rank {peer} {other}"
    sends, receives = transfers.sends, transfers.receives
    for number in np.flatnonzero(sends.size_bytes != receives.size_bytes).tolist():
        yield (
            f"{where.what(*sends.place(number))}: received as {receives.size_bytes[number]} B by "
            f"{where.place(*receives.place(number))}"
        )


def _call_problems(job: Job, calls: Calls, where: _Names) -> Iterator[str]:
    for number, group in enumerate(job.groups):
        members = group.ranks
        for rank in members[1:]:
            problem = _difference(job, calls, number, members[0], rank, where)
            if problem:
                yield f"group {group.name!r}: {problem}"
        for number_of_call in np.unique(calls.sequence(number, members[0])).tolist():
            call = job.calls[number_of_call]
            if not 0 <= call.root < len(members):
                yield f"group {group.name!r}: {_shown(call)}, whose root is not 0 to {len(members) - 1}"


def _difference(job: Job, calls: Calls, group: int, first: int, second: int, where: _Names) -> str:
    """Return where two members' calls differ, "" where they do not."""
    ours, theirs = calls.sequence(group, first), calls.sequence(group, second)
    if ours is theirs:
        return ""
    shared = min(len(ours), len(theirs))
    for number in np.flatnonzero(ours[:shared] != theirs[:shared])[:1].tolist():
        if job.calls[ours[number]] != job.calls[theirs[number]]:
            return (
                f"collective {number} is {_shown(job.calls[ours[number]])} for "
                f"{where.place(first, calls.operation(group, first, number))}, but "
                f"{_shown(job.calls[theirs[number]])} for "
                f"{where.place(second, calls.operation(group, second, number))}"
            )
    if len(ours) != len(theirs):
        return f"rank {first} calls {len(ours)} collectives, rank {second} {len(theirs)}"
    return ""


def _class_problems(job: Job, transfers: Transfers, calls: Calls, where: _Names) -> Iterator[str]:
    """Yield which ends of a message, and which members of a collective, take it for another class."""
    wrong = {name: each for name, each in job.traffic_classes.items() if each not in DATA_CLASSES}
    for name, number in wrong.items():
        yield f"traffic class {number} of {name!r} (valid: {DATA_CLASSES[0]} to {DATA_CLASSES[-1]})"
    if wrong or not job.traffic_classes:
        return
    of_job = JobClasses(job)
    classes = [of_job.of_operations(rank) for rank in range(len(job.parts))]
    starts = np.cumsum([0, *map(len, classes)])
    joined = np.concatenate(classes) if classes else np.zeros(0, np.int8)
    sends, receives = transfers.sends, transfers.receives
    sent = joined[starts[sends.rank] + sends.operation]
    received = joined[starts[receives.rank] + receives.operation]
    for number in np.flatnonzero(sent != received).tolist():
        yield (
            f"{where.what(*sends.place(number))}: sent in traffic class {sent[number]}, received in class "
            f"{received[number]} by {where.place(*receives.place(number))}"
        )
    for number, group in enumerate(job.groups):
        first = group.ranks[0]
        ours = classes[first][calls.operations(number, first)]
        for rank in group.ranks[1:]:
            theirs = classes[rank][calls.operations(number, rank)]
            shared = min(len(ours), len(theirs))
            for place in np.flatnonzero(ours[:shared] != theirs[:shared])[:1].tolist():
                yield (
                    f"group {group.name!r}: collective {place} is in traffic class {ours[place]} for "
                    f"{where.place(first, calls.operation(number, first, place))}, but in class {theirs[place]} for "
                    f"{where.place(rank, calls.operation(number, rank, place))}"
                )


def _shown(call: CollectiveCall) -> str:
    root = f" (root {call.root})" if collective_named(call.collective).has_root else ""
    return f"{call.collective} of {call.size_bytes} B{root}"


def _shown_deadlock(deadlock: Deadlock, where: _Names) -> str:
    steps: Sequence[tuple[int, int]] = deadlock.cycle
    shown = [where.what(*step) for step in steps[:MOST_PROBLEMS]]
    if len(steps) > MOST_PROBLEMS:
        shown.append(f"{len(steps) - MOST_PROBLEMS} more")
    if len(steps) == 1:
        return f"{shown[0]} waits for itself"
    alone = len({rank for rank, _ in steps}) == 1
    what = "operations of one rank wait for each other" if alone else "ranks wait for each other"
    return f"{what}: {', which waits for '.join([*shown, 'the first'])}"
