"""Writes the operations of a rank: most are consecutive, some run concurrently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

from weft.jobs.parallelism import Parallelism
from weft.traffic.collectives import collective_named
from weft.traffic.jobs import CollectiveCall, Operations, OperationsBuilder


class GroupKind(Enum):
    """Kind of a communication group, by what its ranks share."""

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
        """Traffic category of its collectives, one of `weft.jobs.traffic_bytes.TRAINING_TRAFFIC`."""
        if self is GroupKind.EMBEDDING:
            return "pipeline"  # between its first and last stage
        return "data" if self is GroupKind.EXPERT_DATA else self.value.split()[0]


@dataclass(frozen=True)
class StagePeer:
    """The rank with the same position in another pipeline stage."""

    stage: int

    def rank(self, parallel: Parallelism, own: int) -> int:
        """Return the peer of a rank."""
        return parallel.stage_peer(own, self.stage)


@dataclass(frozen=True)
class ExpertPeer:
    """A rank by its number among the ranks that share experts."""

    member: int

    def rank(self, parallel: Parallelism, own: int) -> int:
        """Return the peer of a rank."""
        return parallel.expert_group(own)[self.member]


Peer = StagePeer | ExpertPeer


class Stream(IntEnum):
    """Streams of a rank. Collectives have separate streams, so that timelines show a row for each."""

    COMPUTE = 0
    TENSOR = 1
    CONTEXT = 2
    EXPERT = 3
    DATA = 4
    WEIGHTS = 5


class ProgramWriter:
    """Appends operations to a rank's program; each depends on the operations in `cursor`.

    Adjacent computations with the same category and name are merged.

    Args:
        group_sizes: ranks of each kind of group that the program's ranks are in; collectives of others are skipped.
        calls: index of each call in `Job.calls`, shared by all programs of a job; new calls are added.
        algorithms: algorithm of collectives by category; groups choose it for other categories.
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
        """The operations that the next operation follows."""
        self._flush()
        return self._cursor

    @property
    def peers(self) -> tuple[Peer, ...]:
        """Peers that operations have named, in the order of their slots."""
        return tuple(self._peers)

    def wait_for(self, operations: Iterable[int | None]) -> None:
        """Make the next operation also follow these, skipping None."""
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
        """Add a collective that the next operation follows."""
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
        """Add a collective that later operations do not wait for; return its number, None for no bytes or one rank.

        Its size is rounded up to whole elements for every rank. It follows `after`, by default the cursor. In-network
        collectives also follow the group's previous one, because all ranks must call them in the same order.
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
        """Add a send that later operations do not wait for."""
        self._builder.send(self._slot(peer), size_bytes, tag, after=self.cursor, category=category)

    def receive(self, peer: Peer, size_bytes: int, tag: int, category: str) -> None:
        """Add a receive that the next operation follows; its message may have arrived earlier."""
        before = self.cursor
        received = self._builder.receive(self._slot(peer), size_bytes, tag, after=before, category=category)
        self._cursor = (received,)

    def exchange(self, sent: Mapping[Peer, int], received: Mapping[Peer, int], category: str) -> None:
        """Add messages of these bytes, skipping 0; the next operation follows all of them.

        The tag is the exchange's number, so ranks must have the same exchanges in the same order.
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
        """Return the operations written."""
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
