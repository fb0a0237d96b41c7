"""Writes the operations of a rank: most follow each other, some run beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

from weft.jobs.parallelism import Parallelism
from weft.traffic.collectives import collective_named
from weft.traffic.jobs import CollectiveCall, Operations, OperationsBuilder


class GroupKind(Enum):
    """What the ranks of a group share."""

    TENSOR = "tensor"
    CONTEXT = "context"
    DATA = "data"
    EXPERT = "expert"
    EXPERT_ACROSS_HOSTS = "expert across hosts"
    EXPERT_WITHIN_HOST = "expert within host"
    EXPERT_DATA = "expert data"
    EMBEDDING = "embedding"

    @property
    def category(self) -> str:
        """Of its collectives, the kind of traffic: one of `weft.jobs.traffic_bytes.TRAINING_TRAFFIC`."""
        if self is GroupKind.EMBEDDING:
            return "pipeline"  # between its first and last stage
        return "data" if self is GroupKind.EXPERT_DATA else self.value.split()[0]


@dataclass(frozen=True)
class StagePeer:
    """Who stands in another pipeline stage where a rank stands in its own."""

    stage: int

    def rank(self, parallel: Parallelism, own: int) -> int:
        """Return the peer of a rank."""
        return parallel.stage_peer(own, self.stage)


@dataclass(frozen=True)
class ExpertPeer:
    """Who has a number among the ranks that share a rank's experts."""

    member: int

    def rank(self, parallel: Parallelism, own: int) -> int:
        """Return the peer of a rank."""
        return parallel.expert_group(own)[self.member]


Peer = StagePeer | ExpertPeer


class Stream(IntEnum):
    """Of a rank. Collectives have streams of their own, so that timelines show a row for each."""

    COMPUTE = 0
    TENSOR = 1
    CONTEXT = 2
    EXPERT = 3
    DATA = 4
    WEIGHTS = 5


class ProgramWriter:
    """Adds operations behind `cursor`, those that the next one follows.

    Computations that directly follow each other become one.

    Args:
        group_sizes: ranks of each kind of group that the program's ranks are in; collectives of others are left out.
        calls: places of all calls in `Job.calls`, of all programs of a job; new ones are added.
        algorithms: of collectives, by category; those of others are left to the group.
    """

    def __init__(
        self,
        group_sizes: Mapping[GroupKind, int],
        calls: dict[CollectiveCall, int],
        algorithms: Mapping[str, str] | None = None,
    ) -> None:
        self._sizes = group_sizes
        self._slots = {kind: slot for slot, kind in enumerate(group_sizes)}
        self._calls = calls
        self._algorithms = algorithms or {}
        self._reduced_in_network: dict[GroupKind, int] = {}
        self._builder = OperationsBuilder()
        self._cursor: tuple[int, ...] = ()
        self._pending: tuple[int, str, str] | None = None
        self._peers: dict[Peer, int] = {}
        self._exchanges = 0

    @property
    def cursor(self) -> tuple[int, ...]:
        """The operations that the next one follows."""
        self._flush()
        return self._cursor

    @property
    def peers(self) -> tuple[Peer, ...]:
        """Those that operations have named, in the order of their slots."""
        return tuple(self._peers)

    def wait_for(self, operations: Iterable[int | None]) -> None:
        """Have the next operation follow these, too, where there are any."""
        self._cursor = (*self.cursor, *(each for each in operations if each is not None))

    def compute(self, duration_ps: int, category: str, name: str) -> None:
        """Add a computation."""
        if self._pending is not None and self._pending[1:] == (category, name):
            self._pending = (self._pending[0] + duration_ps, category, name)
            return
        self._flush()
        if duration_ps:
            self._pending = (duration_ps, category, name)

    def collective(self, kind: GroupKind, collective: str, size_bytes: int, stream: Stream) -> None:
        """Add a collective, which the next operation follows."""
        operation = self.beside(kind, collective, size_bytes, stream)
        if operation is not None:
            self._cursor = (operation,)

    def beside(
        self,
        kind: GroupKind,
        collective: str,
        size_bytes: int,
        stream: Stream,
        *,
        after: Iterable[int | None] | None = None,
    ) -> int | None:
        """Add a collective that runs beside what follows; return its number, None in a group of one rank.

        Its size is rounded up to elements for every rank. It follows what `after` names, by default the cursor. In the
        network it also follows the group's collective before it, because these have to be in one order on all ranks.
        """
        self._flush()
        ranks = self._sizes.get(kind, 1)
        if ranks == 1 or not size_bytes:
            return None
        unit = ranks * CollectiveCall.dtype.element_bytes
        algorithm = self._algorithms.get(kind.category, "")
        call = CollectiveCall(collective, -(-size_bytes // unit) * unit, algorithm)
        in_network = bool(algorithm) and collective_named(collective).algorithm(algorithm).in_network
        before = [each for each in (self._cursor if after is None else after) if each is not None]
        if in_network and kind in self._reduced_in_network:
            before = list(dict.fromkeys((*before, self._reduced_in_network[kind])))
        operation = self._builder.collective(
            self._slots[kind],
            self._calls.setdefault(call, len(self._calls)),
            stream=stream,
            after=before,
            category=kind.category,
        )
        if in_network:
            self._reduced_in_network[kind] = operation
        return operation

    def send(self, peer: Peer, size_bytes: int, tag: int, category: str) -> None:
        """Add a send beside what follows."""
        self._builder.send(self._slot(peer), size_bytes, tag, after=self.cursor, category=category)

    def receive(self, peer: Peer, size_bytes: int, tag: int, category: str) -> None:
        """Add a receive, which the next operation follows; its message may have come before."""
        before = self.cursor
        received = self._builder.receive(self._slot(peer), size_bytes, tag, after=before, category=category)
        self._cursor = (received,)

    def exchange(self, sent: Mapping[Peer, int], received: Mapping[Peer, int], category: str) -> None:
        """Add messages of so many bytes, none where there are none; the next operation follows all of them.

        Ranks that have the same exchanges in the same order know them by number.
        """
        before, tag = self.cursor, self._exchanges
        self._exchanges += 1
        sends = [
            self._builder.send(self._slot(peer), size_bytes, tag, after=before, category=category)
            for peer, size_bytes in sent.items()
            if size_bytes
        ]
        receives = [
            self._builder.receive(self._slot(peer), size_bytes, tag, after=before, category=category)
            for peer, size_bytes in received.items()
            if size_bytes
        ]
        self._cursor = (*sends, *receives) or before

    def finish(self) -> Operations:
        """Return what was written."""
        self._flush()
        return self._builder.build()

    def _slot(self, peer: Peer) -> int:
        return self._peers.setdefault(peer, len(self._peers))

    def _flush(self) -> None:
        if self._pending is not None:
            duration_ps, category, name = self._pending
            self._pending = None
            operation = self._builder.compute(
                duration_ps, stream=Stream.COMPUTE, after=self._cursor, category=category, name=name
            )
            self._cursor = (operation,)
