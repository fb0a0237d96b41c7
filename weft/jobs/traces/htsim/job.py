"""Turns a connection matrix with triggers into a job: a send and a receive for each connection."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from weft.errors import translated
from weft.jobs.traces.assembling import JobAssembler, RankAssembler
from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.htsim.matrix import BARRIER, MULTISHOT, ONESHOT, Connection, Matrix
from weft.jobs.traces.memory import STATEMENTS_BETWEEN_CHECKS, check_memory
from weft.traffic.jobs import Job, JobError
from weft.traffic.jobs.operations import NO_STREAM

CATEGORY, SIGNALS = "flows", "triggers"
"""Categories of the connections' messages, and of those that tell other hosts of triggers."""
_MOST_LISTED = 10


@dataclass
class _Links:
    """A trigger's activations, as ranks and operations, with their connections; and the connections it starts."""

    activations: list[tuple[int, int]] = field(default_factory=list)
    activators: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)


class MatrixJob:
    """Makes the job of a matrix. Operations of a rank are numbered in the order of the lines."""

    def __init__(self, name: str, matrix: Matrix) -> None:
        self._name = name
        self._matrix = matrix
        self._ranks = [RankAssembler() for _ in range(matrix.nodes)]
        self._lines = [array("q") for _ in range(matrix.nodes)]
        self._sends: list[int] = []
        self._links: defaultdict[int, _Links] = defaultdict(_Links)
        self._signals = 0
        self.notes: list[str] = []

    def job(self) -> Job:
        """Return the job. Raises TraceError, with file and line, for triggers that cannot be run."""
        for number, connection in enumerate(self._matrix.connections):
            if number % STATEMENTS_BETWEEN_CHECKS == 0:
                check_memory(2 * number, self._matrix.place(connection.line))
            self._add_connection(number, connection)
        for identifier in self._links:
            if identifier not in self._matrix.triggers:
                self._refuse_unknown(identifier)
        for identifier, links in sorted(self._links.items()):
            self._add_trigger(identifier, links)
        if self._signals:
            self.notes.append(
                f"messages of 0 bytes that tell other hosts of triggers, which htsim does in no time: {self._signals}"
            )
        assembler = JobAssembler(self._name)
        for rank, each in enumerate(self._ranks):
            assembler.add_rank(rank, each, self._matrix.source)
        with translated(JobError, TraceError, place=self._matrix.source):
            return assembler.job()

    def place(self, rank: int, operation: int) -> str:
        """Return the file and the line of an operation."""
        return self._matrix.place(self._lines[rank][operation])

    def _added(self, rank: int, operation: int, line: int) -> int:
        self._lines[rank].append(line)
        return operation

    def _add_connection(self, number: int, connection: Connection) -> None:
        source, destination = self._ranks[connection.source], self._ranks[connection.destination]
        line, name = connection.line, f"flow {connection.identifier}" if connection.identifier else ""
        after = []
        if connection.start_ps:
            timer = source.operations.timer(connection.start_ps, category=CATEGORY)
            after = [self._added(connection.source, timer, line)]
        sent = self._added(
            connection.source,
            source.operations.send(
                source.peer_slot(connection.destination),
                connection.size_bytes,
                number,
                after=after,
                category=CATEGORY,
                name=name,
            ),
            line,
        )
        received = self._added(
            connection.destination,
            destination.operations.receive(
                destination.peer_slot(connection.source), connection.size_bytes, number, category=CATEGORY, name=name
            ),
            line,
        )
        self._sends.append(sent)
        if connection.trigger:
            self._links[connection.trigger].targets.append(number)
        for trigger, activation in (
            (connection.send_done, (connection.source, sent)),
            (connection.receive_done, (connection.destination, received)),
        ):
            if trigger:
                self._links[trigger].activations.append(activation)
                self._links[trigger].activators.append(number)

    def _refuse_unknown(self, identifier: int) -> None:
        links = self._links[identifier]
        first = min([*links.targets, *links.activators])
        listed = ", ".join(map(str, sorted(self._matrix.triggers)[:_MOST_LISTED])) or "none is listed"
        more = ", …" if len(self._matrix.triggers) > _MOST_LISTED else ""
        raise TraceError(
            f"there is no trigger {identifier}",
            place=self._matrix.place(self._matrix.connections[first].line),
            valid=f"{listed}{more}",
        )

    def _add_trigger(self, identifier: int, links: _Links) -> None:
        trigger = self._matrix.triggers[identifier]
        place = self._matrix.place(trigger.line)
        what = f"trigger {identifier} of kind {trigger.kind}"
        if not links.targets:
            raise TraceError(f"{what} starts no connection", place=place, valid="one or more")
        if trigger.kind == MULTISHOT:
            self._add_multishot(what, place, links)
            return
        needed = trigger.count if trigger.kind == BARRIER else 1
        if len(links.activations) != needed:
            raise TraceError(f"{what} is fired by {len(links.activations)} connections", place=place, valid=f"{needed}")
        self._order(links.activations, links.targets, trigger.line)

    def _add_multishot(self, what: str, place: str, links: _Links) -> None:
        """Have the n-th activation start the n-th connection, where the order of activations is known beforehand."""
        targets = set(links.targets)
        first = [number for number in links.activators if number not in targets]
        order = [*first, *links.targets[:-1]]
        by_activator = dict(zip(links.activators, links.activations, strict=True))
        if len(first) != 1 or len(by_activator) < len(links.activators):
            raise TraceError(
                f"{what} is fired by {len(links.activations)} connections, of which only a run would show the order",
                place=place,
                valid=f"one, or each started by the trigger in turn; or {ONESHOT} triggers",
            )
        for activator, target in zip(order, links.targets, strict=True):
            if activator not in by_activator:
                late = self._matrix.connections[target].line
                raise TraceError(f"{what} never starts the connection of line {late}", place=place)
            self._order([by_activator[activator]], [target], self._matrix.connections[target].line)

    def _order(self, activations: Sequence[tuple[int, int]], targets: Sequence[int], line: int) -> None:
        """Have connections start after activations. Those of other hosts take messages, through one host if many."""
        by_rank: defaultdict[int, list[int]] = defaultdict(list)
        for rank, operation in activations:
            by_rank[rank].append(operation)
        by_source: defaultdict[int, list[int]] = defaultdict(list)
        for number in targets:
            by_source[self._matrix.connections[number].source].append(self._sends[number])
        meeting = next((rank for rank in by_source if rank in by_rank), next(iter(by_source)))
        if len(by_rank) == 1:
            meeting = next(iter(by_rank))
        ready = list(by_rank[meeting]) if meeting in by_rank else []
        ready += [self._signal(rank, meeting, done, line) for rank, done in by_rank.items() if rank != meeting]
        if len(ready) > 1:
            joined = self._ranks[meeting].operations.compute(0, stream=NO_STREAM, after=ready, category=SIGNALS)
            ready = [self._added(meeting, joined, line)]
        for rank, sends in by_source.items():
            after = ready if rank == meeting else [self._signal(meeting, rank, ready, line)]
            for send in sends:
                self._ranks[rank].operations.add_after(send, after)

    def _signal(self, rank: int, other: int, after: Iterable[int], line: int) -> int:
        """Have a rank send 0 bytes to another after operations; return the number of the other's receive."""
        tag = len(self._matrix.connections) + self._signals
        self._signals += 1
        sender, receiver = self._ranks[rank], self._ranks[other]
        sent = sender.operations.send(sender.peer_slot(other), 0, tag, after=after, category=SIGNALS)
        self._added(rank, sent, line)
        received = receiver.operations.receive(receiver.peer_slot(rank), 0, tag, category=SIGNALS)
        return self._added(other, received, line)
