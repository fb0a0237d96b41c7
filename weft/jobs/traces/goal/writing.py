"""Writes a job as GOAL text.

Times are rounded to nanoseconds. GOAL lacks some kinds of operations: collectives become messages, timers run on a
processor that counts the time, and operations without a stream run on a separate processor.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.goal.expansion import EXPANSIONS
from weft.quantities.units import PS_PER_NS
from weft.traffic.jobs import NO_STREAM, Job, Kind, Operations

MAX_PROCESSORS = 256
"""LogGOPSim keeps a processor's number in a byte."""
MAX_TAGS = (1 << 32) - 1
"""LogGOPSim's last tag is a wildcard."""


def text_of(job: Job) -> Iterator[str]:
    """Yield the lines. Raises TraceError for collectives, streams and tags that GOAL cannot express."""
    tags = _Tags(job)
    yield f"num_ranks {len(job.parts)}\n"
    for rank in range(len(job.parts)):
        yield f"\nrank {rank} {{\n"
        yield from _RankText(job, rank, tags).lines()
        yield "}\n"


class _Tags:
    """Maps the job's tags to GOAL tags, in order, and gives each collective of a group another one."""

    def __init__(self, job: Job) -> None:
        programs = {id(part.operations): part.operations for part in job.parts}.values()
        used = [each.tag[np.isin(each.kind, (Kind.SEND, Kind.RECEIVE))] for each in programs]
        self._used = np.unique(np.concatenate(used)) if used else np.zeros(0, np.int64)
        # Tags that fit are kept.
        self._is_kept = not len(self._used) or int(self._used[-1]) < MAX_TAGS // 2
        first = (int(self._used[-1]) + 1 if len(self._used) else 0) if self._is_kept else len(self._used)
        self._collectives = first
        self._groups = len(job.groups)

    def of(self, tag: int) -> int:
        """Return the tag of a send or a receive."""
        return tag if self._is_kept else int(np.searchsorted(self._used, tag))

    def of_collective(self, group: int, number: int) -> int:
        """Return the tag of the messages of a group's n-th collective. Raises TraceError if no tag is left."""
        tag = self._collectives + number * self._groups + group
        if tag >= MAX_TAGS:
            raise TraceError(f"collective {number} of group {group} has no tag left", valid=f"up to {MAX_TAGS - 1}")
        return tag


class _RankText:
    def __init__(self, job: Job, rank: int, tags: _Tags) -> None:
        self._job = job
        self._rank = rank
        self._part = job.parts[rank]
        self._tags = tags
        operations = self._part.operations
        self._free = int(operations.stream.max(initial=NO_STREAM)) + 1
        if self._free + 1 >= MAX_PROCESSORS:
            raise TraceError(f"rank {rank} has stream {self._free - 1} (valid in GOAL: 0 to {MAX_PROCESSORS - 3})")
        self._timer_before: dict[int, int] = {}
        self._numbers = np.zeros(len(operations), np.int64)
        self._numbers[operations.of_kind(Kind.COLLECTIVE)] = operations.collective_numbers()

    def lines(self) -> Iterator[str]:
        """Yield the operations, each followed by its dependencies; dependencies on later operations come last.

        txt2bin accepts only labels that it has already read.
        """
        operations = self._part.operations
        timers = self._timers(operations)
        late: list[str] = []
        for operation in range(len(operations)):
            kind = Kind(operations.kind[operation])
            if kind == Kind.COLLECTIVE:
                yield from self._collective(operation)
            else:
                said = timers[operation] if kind == Kind.TIMER else self._simple(kind, operation)
                yield f"l{operation}: {said}\n"
            for other, line in self._dependencies(operation):
                if other < operation:
                    yield line
                else:
                    late.append(line)
        yield from late

    def _cpu(self, operation: int) -> int:
        stream = int(self._part.operations.stream[operation])
        return self._free if stream == NO_STREAM else stream

    def _ns(self, duration_ps: float) -> int:
        return round(duration_ps / PS_PER_NS)

    def _simple(self, kind: Kind, operation: int) -> str:
        operations, cpu = self._part.operations, self._cpu(operation)
        if kind == Kind.COMPUTE:
            return f"calc {self._ns(int(operations.duration_ps[operation]) * self._part.compute_scale)} cpu {cpu}"
        # LogGOPSim does not count the first byte.
        size_bytes = max(1, int(operations.size_bytes[operation]))
        peer, tag = (
            self._part.peers[operations.target[operation]],
            self._tags.of(int(operations.tag[operation])),
        )
        verb, preposition = ("send", "to") if kind == Kind.SEND else ("recv", "from")
        return f"{verb} {size_bytes}b {preposition} {peer} tag {tag} cpu {cpu}"

    def _timers(self, operations: Operations) -> dict[int, str]:
        """Return the statement of each timer: it waits for the rest of its time after the previous timer."""
        found, reached_ns, before = {}, 0, -1
        rows = operations.of_kind(Kind.TIMER)
        for operation in rows[np.argsort(operations.duration_ps[rows], kind="stable")].tolist():
            at_ns = self._ns(int(operations.duration_ps[operation]))
            found[operation] = f"calc {at_ns - reached_ns} cpu {self._free + 1}"
            if before >= 0:
                self._timer_before[operation] = before
            before, reached_ns = operation, at_ns
        return found

    def _collective(self, operation: int) -> Iterator[str]:
        """Yield a collective's messages between two computations of no time, which begin and end it."""
        operations, cpu = self._part.operations, self._cpu(operation)
        slot, number = operations.calls[operations.target[operation]]
        group, call = self._part.groups[slot], self._job.calls[number]
        if call.collective not in EXPANSIONS:
            raise TraceError(
                f"rank {self._rank}, operation {operation}: {call.name} cannot be said in GOAL",
                valid=EXPANSIONS,
            )
        ranks = self._job.groups[group].ranks
        tag = self._tags.of_collective(group, int(self._numbers[operation]))
        yield f"l{operation}b: calc 0 cpu {cpu}\n"
        ends, received = [], [f"l{operation}b"]
        for index, message in enumerate(EXPANSIONS[call.collective](call, len(ranks), ranks.index(self._rank))):
            verb, preposition = ("send", "to") if message.sends else ("recv", "from")
            label = f"l{operation}m{index}"
            yield f"{label}: {verb} {message.size_bytes}b {preposition} {ranks[message.peer]} tag {tag} cpu {cpu}\n"
            for awaited in received[-message.awaited :] if message.awaited else received[:1]:
                yield f"{label} requires {awaited}\n"
            ends.append(label)
            if not message.sends:
                received.append(label)
        yield f"l{operation}: calc 0 cpu {cpu}\n"
        for label in ends or [f"l{operation}b"]:
            yield f"l{operation} requires {label}\n"

    def _dependencies(self, operation: int) -> Iterator[tuple[int, str]]:
        """Yield each operation that an operation follows, with the line for the dependency."""
        operations, own = self._part.operations, self._beginning(operation)
        if operation in self._timer_before:
            before = self._timer_before[operation]
            yield before, f"{own} requires l{before}\n"
        begin = operations.after_offsets[operation]
        for place, other in enumerate(operations.predecessors(operation).tolist()):
            if operations.after_start[begin + place]:
                yield other, f"{own} irequires {self._beginning(other)}\n"
            else:
                yield other, f"{own} requires l{other}\n"

    def _beginning(self, operation: int) -> str:
        is_collective = self._part.operations.kind[operation] == Kind.COLLECTIVE
        return f"l{operation}b" if is_collective else f"l{operation}"
