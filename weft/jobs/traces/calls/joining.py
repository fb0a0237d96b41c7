"""Joins the recorded calls of ranks to a job, and adds the part of ranks that were not recorded."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from weft.errors import translated
from weft.jobs.traces.assembling import MAX_RANKS, JobAssembler, RankAssembler, check_count, whole_call
from weft.jobs.traces.calls.recorded import EXCHANGE, PER_RANK, RECEIVE, SEND, Place, RecordedCall
from weft.jobs.traces.definition import Trace
from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.memory import STATEMENTS_BETWEEN_CHECKS, check_memory
from weft.quantities.readable import counted
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.jobs import NO_STREAM, Group, JobError, OperationsError

MOST_NAMED = 20
MOST_FOLLOWED = 64
"""As many operations of a group are followed by each of the next group; more are joined first."""
_OTHER_END = {SEND: RECEIVE, RECEIVE: SEND}


def trace_of_calls(
    path: Path,
    calls: Mapping[int, Sequence[RecordedCall]],
    communicators: Mapping[str, tuple[int, ...]],
    notes: Sequence[str] = (),
) -> Trace:
    """Return the job of the calls of each recorded rank, in order, in communicators of these ranks.

    Ranks without calls of their own take part in the collectives that the lowest recorded rank of their communicators
    calls, and in all messages to and from recorded ranks, as soon as dependencies allow it; a note says so.

    Raises TraceError, with both places, if ranks of a communicator call different collectives.
    """
    job = JobAssembler(path.stem)
    with translated(JobError, TraceError, place=path):
        for name, ranks in communicators.items():
            job.add_group(Group(name, ranks))
    rank_count = 1 + max((*(max(ranks) for ranks in communicators.values()), *calls), default=-1)
    if not any(calls.values()):
        raise TraceError("no calls", place=path)
    if rank_count > MAX_RANKS:
        raise TraceError(f"{rank_count} ranks", place=path, valid=f"up to {MAX_RANKS}")
    filling = _Filling(path, calls, communicators, rank_count)
    agreement = _Agreement()
    programs: dict[int, _Program] = {}
    equal: dict[tuple[str, ...], list[int]] = {}
    for rank in range(rank_count):
        # Of a large job often few ranks are recorded: work for each of the others would take longer than all the rest.
        shares = None if rank in calls else filling.only_shares_of(rank)
        if shares is not None:
            others = equal.setdefault(shares, [])
            others.append(rank)
            if others[0] != rank:
                programs[rank] = programs[others[0]]
                continue
        program = _Program(job, rank)
        if rank in calls:
            for call in calls[rank]:
                agreement.check(rank, call)
                program.add(call)
        else:
            for call in filling.calls_of(rank):
                program.add(call)
        job.add_rank(rank, program.assembler, str(path))
        programs[rank] = program
    for first, *others in equal.values():
        job.add_equal_ranks(others, first, str(path))
    with translated(JobError, TraceError, place=path):
        made = job.job()
    return Trace(
        made,
        locate=lambda rank, operation: str(programs[rank].places[operation]),
        notes=[*notes, *filling.notes()],
    )


class _Agreement:
    """Collectives of each communicator as its first rank called them; all other ranks must match."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, int]] = Counter()
        self._first: dict[tuple[str, int], tuple[str, Place]] = {}

    def check(self, rank: int, call: RecordedCall) -> None:
        """Check a rank's next call. Raises TraceError, with both places, if it differs."""
        if call.operation in (SEND, RECEIVE, EXCHANGE):
            return
        what = f"{call.operation} of {call.count} {call.datatype}"
        if call.root:
            what += f", root {call.root}"
        number = self._counts[call.communicator, rank]
        self._counts[call.communicator, rank] += 1
        first, place = self._first.setdefault((call.communicator, number), (what, call.place))
        if what != first:
            raise TraceError(f"{what}, where {place} has {first}", place=call.place, valid="the same of all ranks")


@dataclass
class _Program:
    """A rank's operations, with the place of each.

    `_last` has for each stream the last group with its operations and the ones that these follow, `_ended` recorded
    ends in order, each with its call's operations, `_of_calls` the operations of each call.
    """

    job: JobAssembler
    rank: int
    assembler: RankAssembler = field(default_factory=RankAssembler)
    places: list[Place] = field(default_factory=list)
    _last: dict[str, tuple[str, list[int], list[int]]] = field(default_factory=dict)
    _ended: list[tuple[int, int, list[int]]] = field(default_factory=list)
    _of_calls: list[list[int]] = field(default_factory=list)
    _dependency_count: int = 0

    def add(self, call: RecordedCall) -> None:
        """Add the operations of a call. Raises TraceError, with the call's place."""
        try:
            self._add(call)
        except (OperationsError, ValueError) as error:
            raise TraceError(error, place=call.place) from None
        before = len(self.places)
        self.places.extend([call.place] * (len(self.assembler.operations) - before))
        if before // STATEMENTS_BETWEEN_CHECKS != len(self.places) // STATEMENTS_BETWEEN_CHECKS:
            check_memory(self.job.operation_count + len(self.places), str(call.place))

    def _add(self, call: RecordedCall) -> None:
        builder = self.assembler.operations
        last_group, own, before = self._last.get(call.stream, ("", [], []))
        is_with_them = bool(call.group) and call.group == last_group
        awaited = before if is_with_them else self._joined(own)
        after = [*awaited, *chain.from_iterable(map(self._of_calls.__getitem__, call.follows))]
        if call.start_ps:
            after.append(builder.timer(call.start_ps))
        if call.ran_ps is not None:
            after.extend(self._gap(call.ran_ps[0]))
        after = list(dict.fromkeys(after))
        added = self._operations(call, after)
        self._dependency_count += len(after) * len(added)
        check_count(0, self._dependency_count, str(call.place))
        self._of_calls.append(self._joined(added))
        if is_with_them:
            own.extend(added)
        else:
            self._last[call.stream] = (call.group, list(added), awaited)
        if call.ran_ps is not None:
            insort(self._ended, (call.ran_ps[1], len(builder), self._of_calls[-1]))

    def _joined(self, operations: list[int]) -> list[int]:
        """Return an operation that follows many, or a few themselves, so that dependencies do not multiply."""
        if len(operations) <= MOST_FOLLOWED:
            return operations
        self._dependency_count += len(operations)
        return [self.assembler.operations.compute(0, stream=NO_STREAM, after=operations, name="join")]

    def _gap(self, begin_ps: int) -> list[int]:
        """Return a computation from the recorded end of the last call that had ended to the beginning of the next."""
        number = bisect_right(self._ended, begin_ps, key=lambda each: each[0])
        if not number:
            return []
        ended_ps, _, operations = self._ended[number - 1]
        if ended_ps == begin_ps:
            return operations
        gap = self.assembler.operations.compute(
            begin_ps - ended_ps, stream=NO_STREAM, after=operations, category="recorded gap"
        )
        return [gap]

    def _operations(self, call: RecordedCall, after: list[int]) -> list[int]:
        number = self.job.group_number(call.communicator)
        assert number is not None, "a group for each communicator"
        members = self.job.groups[number].ranks
        builder = self.assembler.operations
        if call.operation in (SEND, RECEIVE):
            peer = members[call.root]
            if peer == self.rank:
                raise TraceError(f"rank {self.rank} exchanges a message with itself", place=call.place)
            return [self._message(call.operation, peer, call.count * call.element_bytes, number, after)]
        if call.operation == EXCHANGE:
            added = [
                self._message(kind, peer, count * call.element_bytes, number, after)
                for kind, counts in ((SEND, call.sent), (RECEIVE, call.received))
                for peer, count in zip(members, counts, strict=True)
                if count and peer != self.rank
            ]
            return added or [builder.compute(0, stream=NO_STREAM, after=after, name=call.operation)]
        size_bytes = call.count * call.element_bytes * (len(members) if call.operation in PER_RANK else 1)
        root = call.root if COLLECTIVE_KINDS[call.operation].has_root else 0
        whole = whole_call(call.operation, size_bytes, len(members), root)
        if whole is None:
            return [builder.compute(0, stream=NO_STREAM, after=after, name=call.operation)]
        slot = self.assembler.group_slot(number)
        return [builder.collective(slot, self.job.call_number(whole), after=after, name=call.operation)]

    def _message(self, kind: str, peer: int, size_bytes: int, tag: int, after: list[int]) -> int:
        builder = self.assembler.operations
        add = builder.send if kind == SEND else builder.receive
        return add(self.assembler.peer_slot(peer), size_bytes, tag, after=after, name=kind)


class _Filling:
    """The part of ranks without calls in the calls of others."""

    def __init__(
        self,
        path: Path,
        calls: Mapping[int, Sequence[RecordedCall]],
        communicators: Mapping[str, tuple[int, ...]],
        rank_count: int,
    ) -> None:
        self._calls = calls
        self._communicators = communicators
        self._missing = [rank for rank in range(rank_count) if rank not in calls]
        self._places: dict[int, dict[str, int]] = {}
        """The place of each rank in its communicators with recorded ranks."""
        self._leaders: dict[str, int] = {}
        missing: dict[str, int] = {}
        for name, ranks in communicators.items():
            recorded = [rank for rank in ranks if rank in calls]
            if recorded:
                self._leaders[name] = min(recorded)
                missing[name] = len(ranks) - len(recorded)
                for place, rank in enumerate(ranks):
                    self._places.setdefault(rank, {})[name] = place
        self._check_count(path, missing)
        self._recorded = list(calls)
        self._of_all: dict[str, list[tuple[int, int]]] = {}
        """By communicator, the calls in which all ranks may have a part: positions in `_recorded`, and numbers."""
        self._of_one: dict[tuple[str, int], list[tuple[int, int]]] = {}
        """By communicator and place in it, the calls whose only other part is there."""
        self._exchanging: set[str] = set()
        """Communicators in which parts differ by rank."""
        for position, (rank, of_rank) in enumerate(calls.items()):
            for number, call in enumerate(of_rank):
                if call.operation in _OTHER_END:
                    self._of_one.setdefault((call.communicator, call.root), []).append((position, number))
                elif call.operation == EXCHANGE or self._is_shared(rank, call):
                    if call.operation == EXCHANGE:
                        self._exchanging.add(call.communicator)
                    self._of_all.setdefault(call.communicator, []).append((position, number))

    def _check_count(self, path: Path, missing: Mapping[str, int]) -> None:
        """Refuse too many operations before any is added; `missing` counts ranks without a record."""
        count = sum(
            missing[call.communicator]
            for rank, of_rank in self._calls.items()
            for call in of_rank
            if self._is_shared(rank, call)
        )
        check_count(count, 0, str(path))

    def _is_shared(self, rank: int, call: RecordedCall) -> bool:
        """Whether all ranks of the communicator make a recorded rank's call, and no lower rank recorded it, too."""
        is_message = call.operation in (SEND, RECEIVE, EXCHANGE)
        return not is_message and self._leaders[call.communicator] == rank

    def only_shares_of(self, rank: int) -> tuple[str, ...] | None:
        """Return the communicators with all of a rank's calls, if all ranks in them have the same part, else None."""
        places = self._places.get(rank, {})
        if not self._exchanging.isdisjoint(places) or any(each in self._of_one for each in places.items()):
            return None
        return tuple(name for name in places if name in self._of_all)

    def calls_of(self, rank: int) -> Iterator[RecordedCall]:
        """Yield the calls of a rank that was not recorded, in the order of each recorded rank."""
        places = self._places.get(rank, {})
        of_all = (self._of_all.get(name, ()) for name in places)
        of_one = (self._of_one.get(each, ()) for each in places.items())
        for position, number in sorted(chain.from_iterable(chain(of_all, of_one))):
            recorded = self._recorded[position]
            call = self._calls[recorded][number]
            ours = self._ours(recorded, call, places[call.communicator])
            if ours is not None:
                # Streams of different recorded ranks do not follow each other.
                yield replace(ours, stream=f"{recorded} {call.stream}", start_ps=0, ran_ps=None, follows=())

    def _ours(self, recorded: int, call: RecordedCall, place: int) -> RecordedCall | None:
        """Return the part of the communicator's rank `place` in a call of a recorded rank, None if it has none."""
        if self._is_shared(recorded, call):
            return call
        ranks = self._communicators[call.communicator]
        own = self._places[recorded][call.communicator]
        if call.operation in _OTHER_END:
            return replace(call, operation=_OTHER_END[call.operation], root=own)
        if call.sent[place] or call.received[place]:
            sent, received = [0] * len(ranks), [0] * len(ranks)
            sent[own], received[own] = call.received[place], call.sent[place]
            return replace(call, sent=tuple(sent), received=tuple(received))
        return None

    def notes(self) -> list[str]:
        """Return a sentence on the ranks that were not recorded, if any."""
        if not self._missing:
            return []
        shown = ", ".join(map(str, self._missing[:MOST_NAMED]))
        more = len(self._missing) - MOST_NAMED
        if more > 0:
            shown += f" and {more} more"
        return [
            f"{counted(len(self._missing), 'rank')} without a record ({shown}): assumed to take part in the calls of "
            "recorded ranks as soon as they can, and to do nothing else"
        ]
