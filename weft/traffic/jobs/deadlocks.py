"""Finds operations of a job that wait for each other, by starting all that can start.

No operation takes time here, and streams do not exclude each other, so an operation that never starts cannot start in
any run. The work is proportional to the operations and dependencies of all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.traffic.jobs.job import Job
from weft.traffic.jobs.matching import Calls, Ends, Transfers
from weft.traffic.jobs.operations import Kind, Operations

_STARTED, _DONE, _ARRIVED = 1, 2, 4
_ANY = None
"""Any edge, waiting for a start or for an end."""
_SEND, _RECEIVE, _COLLECTIVE = int(Kind.SEND), int(Kind.RECEIVE), int(Kind.COLLECTIVE)


@dataclass(frozen=True)
class Deadlock:
    """Ranks and operations; each waits for the next, the last for the first."""

    cycle: tuple[tuple[int, int], ...]


def deadlock_of(job: Job, transfers: Transfers, calls: Calls) -> Deadlock | None:
    """Return a deadlock of a job, or None if it can end. All its transfers and collectives must match."""
    progress = _Progress(job, transfers, calls)
    progress.run()
    blocked = progress.first_blocked()
    return None if blocked is None else Deadlock(progress.cycle_from(blocked))


class _Program:
    """Operations, and what follows each."""

    def __init__(self, operations: Operations) -> None:
        count = len(operations)
        rows = np.repeat(np.arange(count, dtype=np.int32), np.diff(operations.after_offsets))
        order = np.argsort(operations.after, kind="stable")
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(operations.after, minlength=count), out=offsets[1:])
        self.following_offsets = offsets.data
        self.following = rows[order].data
        self.on_start = operations.after_start[order].data
        self.awaited = np.diff(operations.after_offsets).astype(np.int32)
        self.kind = operations.kind.data
        self.target = operations.target.data
        self.group_slots = [slot for slot, _ in operations.calls]
        numbers = np.zeros(count, np.int32)
        numbers[operations.of_kind(Kind.COLLECTIVE)] = operations.collective_numbers()
        self.collective_numbers = numbers.data
        self.has_start_edges = bool(operations.after_start.any())


class _Progress:
    def __init__(self, job: Job, transfers: Transfers, calls: Calls) -> None:
        self._job = job
        self._calls = calls
        programs = {id(part.operations): part.operations for part in job.parts}
        made = {key: _Program(operations) for key, operations in programs.items()}
        self._programs = [made[id(part.operations)] for part in job.parts]
        self._states = [bytearray(len(part.operations)) for part in job.parts]
        self._awaited = [program.awaited.copy().data for program in self._programs]
        self._ready = [np.flatnonzero(program.awaited == 0).tolist() for program in self._programs]
        self._ranks = list(range(len(job.parts)))
        self._running = -1
        bases = np.concatenate([[0], np.cumsum([len(part.operations) for part in job.parts])]).tolist()
        self._receiver = _OtherEnds(bases, transfers.sends, transfers.receives)
        self._sender = _OtherEnds(bases, transfers.receives, transfers.sends)
        self._begun: dict[tuple[int, int], int] = {}

    def run(self) -> None:
        """Start all that can start."""
        while self._ranks:
            self._running = self._ranks.pop()
            self._run_rank(self._running)

    def _run_rank(self, rank: int) -> None:
        program, states, ready = self._programs[rank], self._states[rank], self._ready[rank]
        kinds = program.kind
        while ready:
            operation = ready.pop()
            kind = kinds[operation]
            if kind == _RECEIVE:
                self._wait(rank, operation)
                if states[operation] & _ARRIVED:
                    self._finish(rank, operation)
            elif kind == _COLLECTIVE:
                self._wait(rank, operation)
                self._begin_collective(rank, operation)
            else:
                states[operation] = _STARTED | _DONE
                self._release(rank, operation, _ANY)
                if kind == _SEND:
                    self._arrive(*self._receiver.of(rank, operation))

    def _wait(self, rank: int, operation: int) -> None:
        """Start what may be done only later."""
        self._states[rank][operation] |= _STARTED
        if self._programs[rank].has_start_edges:
            self._release(rank, operation, True)

    def _finish(self, rank: int, operation: int) -> None:
        self._states[rank][operation] |= _DONE
        self._release(rank, operation, False if self._programs[rank].has_start_edges else _ANY)

    def _arrive(self, rank: int, operation: int) -> None:
        states = self._states[rank]
        states[operation] |= _ARRIVED
        if states[operation] & _STARTED:
            self._finish(rank, operation)

    def _begin_collective(self, rank: int, operation: int) -> None:
        group, number = self._instance(rank, operation)
        begun = self._begun.pop((group, number), 0) + 1
        members = self._job.groups[group].ranks
        if begun < len(members):
            self._begun[group, number] = begun
            return
        for member in members:
            self._finish(member, self._calls.operation(group, member, number))

    def _release(self, rank: int, operation: int, edges: bool | None) -> None:
        """Note that an operation has started, or is done, or both."""
        program, awaited, ready = self._programs[rank], self._awaited[rank], self._ready[rank]
        offsets = program.following_offsets
        for edge in range(offsets[operation], offsets[operation + 1]):
            if edges is not _ANY and program.on_start[edge] != edges:
                continue
            following = program.following[edge]
            left = awaited[following] - 1
            awaited[following] = left
            if not left:
                if not ready and rank != self._running:
                    self._ranks.append(rank)
                ready.append(following)

    def _instance(self, rank: int, operation: int) -> tuple[int, int]:
        """Return the group of a collective, and its number there."""
        part, program = self._job.parts[rank], self._programs[rank]
        slot = program.group_slots[program.target[operation]]
        return part.groups[slot], program.collective_numbers[operation]

    def first_blocked(self) -> tuple[int, int] | None:
        """Return the first operation that is not done."""
        for rank, states in enumerate(self._states):
            left = np.flatnonzero((np.frombuffer(states, np.uint8) & _DONE) == 0)
            if len(left):
                return rank, int(left[0])
        return None

    def cycle_from(self, blocked: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        """Follow what each operation waits for, from one that is not done, until one comes again."""
        places: dict[tuple[int, int], int] = {}
        path: list[tuple[int, int]] = []
        step = blocked
        while step not in places:
            places[step] = len(path)
            path.append(step)
            step = self._awaited_by(*step)
        return tuple(path[places[step] :])

    def _awaited_by(self, rank: int, operation: int) -> tuple[int, int]:
        """Return one operation for which another waits, which is not done."""
        part, states = self._job.parts[rank], self._states[rank]
        operations = part.operations
        if not states[operation] & _STARTED:
            begin = operations.after_offsets[operation]
            for place, other in enumerate(operations.predecessors(operation).tolist()):
                wanted = _STARTED if operations.after_start[begin + place] else _DONE
                if not states[other] & wanted:
                    return rank, other
        if operations.kind[operation] == Kind.RECEIVE:
            return self._sender.of(rank, operation)
        group, number = self._instance(rank, operation)
        for member in self._job.groups[group].ranks:
            other = self._calls.operation(group, member, number)
            if not self._states[member][other] & _STARTED:
                return member, other
        raise AssertionError("an operation that is not done waits for another")


class _OtherEnds:
    """Finds the operation at the other end of a transfer."""

    def __init__(self, bases: Sequence[int], near: Ends, far: Ends) -> None:
        self._bases = bases
        numbers = np.zeros(bases[-1], np.int32)
        numbers[np.array(bases[:-1], np.int64)[near.rank] + near.operation] = np.arange(len(near.rank))
        self._numbers = numbers.data
        self._ranks, self._operations = far.rank.data, far.operation.data

    def of(self, rank: int, operation: int) -> tuple[int, int]:
        """Return the rank and the operation at the other end."""
        number = self._numbers[self._bases[rank] + operation]
        return self._ranks[number], self._operations[number]
