"""The operations of a rank, or of many ranks that do the same: columns, one row per operation.

Ranks that run the same program on other peers and in other groups share one `Operations`: it names peers and groups by
*slots*, which a `RankPart` fills in. So a job of a thousand ranks is as small as its few different programs.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from weft.errors import Refusal
from weft.quantities.arrays import Integers

NO_STREAM = -1
"""Stream of an operation that starts as soon as its predecessors are done, whatever else the rank does."""
MAX_STREAMS = 4096
MAX_OPERATIONS = 20_000_000
MAX_SIZE_BYTES = 1 << 46
MAX_DURATION_PS = 1 << 62
MAX_TAG = (1 << 63) - 1
_COLUMNS = 8


class OperationsError(Refusal, ValueError):
    """Operations that cannot be run; the message names the first one by its number, its value and what is valid."""


class Kind(IntEnum):
    """Kind of an operation."""

    COMPUTE = 0
    """Keeps its stream busy for `duration_ps`."""
    TIMER = 1
    """Is done `duration_ps` after the job's start, or at once if that is past."""
    SEND = 2
    """Sends `size_bytes` to the peer in slot `target`; done when the peer's NIC has acknowledged them."""
    RECEIVE = 3
    """Is done when the matching send of the peer in slot `target` has arrived, be it before the operation starts."""
    COLLECTIVE = 4
    """The rank's part in call `target`; done when the rank has its result."""
    READ = 5
    """Reads `size_bytes` of the memory of the peer in slot `target`, without its part; done when they are there."""


TRANSFERS = (Kind.SEND, Kind.RECEIVE, Kind.READ)
"""Kinds that move `size_bytes` between the rank and the peer in slot `target`."""


@dataclass(frozen=True, eq=False)
class Operations:
    """Columns of operations; all arrays are read-only.

    Operation i follows the operations `after[after_offsets[i]:after_offsets[i + 1]]`: it may start when they are done,
    or, where `after_start` is set, when they have started (GOAL's `irequires`). Operations of one stream exclude each
    other: of those that may start, the one that could first does so, the lower number at the same time. A sequence of
    operations, such as a CUDA stream's, also follow each other.

    A send and a receive match if they name each other's ranks and the same tag: the first with the first, in the order
    of the operations' numbers.

    Attributes:
        kind: a `Kind`.
        stream: 0 and up, or NO_STREAM.
        duration_ps: of a computation or a timer, else 0.
        size_bytes: of a send, a receive or a READ, else 0.
        target: slot of the peer, or of the call; else 0.
        tag: of a send or a receive, else 0.
        category: place in `categories`.
        name: place in `names`.
        after_offsets: one more than operations.
        after: numbers of operations.
        after_start: as long as `after`.
        calls: of each slot for collectives, the slot of the group and the call's place in `Job.calls`. The n-th
            operation that names a group is the rank's part in the group's n-th collective.
        categories: what operations are for: "forward", "tensor", … ; results sum by it.
        names: of operations, for people; the first is "".
        peer_slots: how many slots for peers there are.
        group_slots: how many slots for groups there are.
    """

    kind: NDArray[np.uint8]
    stream: NDArray[np.int16]
    duration_ps: Integers
    size_bytes: Integers
    target: NDArray[np.int32]
    tag: Integers
    category: NDArray[np.int16]
    name: NDArray[np.int32]
    after_offsets: Integers
    after: NDArray[np.int32]
    after_start: NDArray[np.bool_]
    calls: tuple[tuple[int, int], ...] = ()
    categories: tuple[str, ...] = ("",)
    names: tuple[str, ...] = ("",)
    peer_slots: int = 0
    group_slots: int = 0

    def __len__(self) -> int:
        """Return how many operations there are."""
        return len(self.kind)

    def predecessors(self, operation: int) -> NDArray[np.int32]:
        """Return the numbers of the operations that one follows."""
        return self.after[self.after_offsets[operation] : self.after_offsets[operation + 1]]

    def of_kind(self, kind: Kind) -> NDArray[np.int64]:
        """Return the numbers of the operations of a kind."""
        return np.flatnonzero(self.kind == kind)

    def transfer_numbers(self, kind: Kind) -> Integers:
        """Return the number by which both ends know a transfer, of each operation of one of TRANSFERS, in order.

        Among the transfers to (or from) one peer slot it is the place in order of tag and then of number. Both ends
        derive it alike from their own operations, because matching ones have the same tags. READs have one end
        and no tags.
        """
        rows = self.of_kind(kind)
        if not len(rows):
            return np.zeros(0, np.int64)
        slots, tags = self.target[rows], self.tag[rows]
        order = np.lexsort((rows, tags, slots))
        ordered = slots[order]
        first = np.searchsorted(ordered, ordered, side="left")
        numbers = np.empty(len(rows), np.int64)
        numbers[order] = np.arange(len(rows)) - first
        return numbers

    def collective_numbers(self) -> Integers:
        """Return which of its group's collectives each operation of kind COLLECTIVE takes part in, from 0, in order."""
        rows = self.of_kind(Kind.COLLECTIVE)
        groups = np.array([group for group, _ in self.calls], np.int64)[self.target[rows]]
        order = np.argsort(groups, kind="stable")
        ordered = groups[order]
        numbers = np.empty(len(rows), np.int64)
        numbers[order] = np.arange(len(rows)) - np.searchsorted(ordered, ordered, side="left")
        return numbers

    def engine_columns(
        self, target: NDArray[np.int32], traffic_kind: NDArray[np.uint8], *, calls_apart: bool = False
    ) -> dict[str, NDArray[Any]]:
        """Return the columns that the engine's `JobOperations` is made of, by its arguments.

        `target` are the slots there (`weft.traffic.jobs.classes.Slots`), `traffic_kind` the numbers by which ports
        count. With `calls_apart` each collective has a slot of its own, in order.
        """
        if calls_apart:
            target, rows = target.copy(), self.of_kind(Kind.COLLECTIVE)
            target[rows] = np.arange(len(rows))
        number = np.zeros(len(self), np.int64)
        for kind in TRANSFERS:
            number[self.of_kind(kind)] = self.transfer_numbers(kind)
        number[self.of_kind(Kind.COLLECTIVE)] = self.collective_numbers()
        return {
            "kind": self.kind,
            "stream": self.stream,
            "duration_ps": self.duration_ps,
            "size_bytes": self.size_bytes,
            "target": target,
            "number": number,
            "traffic_kind": traffic_kind,
            "after_offsets": self.after_offsets,
            "after": self.after,
            "after_start": self.after_start,
        }


class OperationArguments(TypedDict, total=False):
    """Arguments that each method of `OperationsBuilder` takes for an operation that waits for others."""

    stream: int
    """A number, or NO_STREAM; by default 0 for computations, NO_STREAM for all others."""
    after: Iterable[int]
    """Operations that are done before it starts."""
    after_start: Iterable[int]
    """Operations that have started before it does."""
    category: str
    """Its purpose; results sum times and bytes by category."""
    name: str
    """Its name in traces."""


@dataclass
class OperationsBuilder:
    """Adds operations one by one. Each method returns the operation's number.

    `after` and `after_start` are numbers of operations, also of ones that are added later: the operation may start when
    those are done, or have started. `stream` is a number, or NO_STREAM.
    """

    _columns: array[int] = field(default_factory=lambda: array("q"))
    """Eight values of each operation."""
    _edges: array[int] = field(default_factory=lambda: array("q"))
    """Three values of each dependency: the operation, what it follows, and whether its start is enough."""
    _calls: dict[tuple[int, int], int] = field(default_factory=dict)
    _categories: dict[str, int] = field(default_factory=lambda: {"": 0})
    _names: dict[str, int] = field(default_factory=lambda: {"": 0})

    def __len__(self) -> int:
        """Return how many operations there are so far."""
        return len(self._columns) // _COLUMNS

    def compute(self, duration_ps: int, **given: Unpack[OperationArguments]) -> int:
        """Add a computation, which keeps its stream, by default stream 0, busy for so long."""
        given.setdefault("stream", 0)
        return self._add(Kind.COMPUTE, _of_duration(duration_ps), **given)

    def timer(self, at_ps: int, *, category: str = "", name: str = "") -> int:
        """Add what is done so long after the job's start."""
        return self._add(Kind.TIMER, _of_duration(at_ps), category=category, name=name)

    def send(self, peer_slot: int, size_bytes: int, tag: int = 0, **given: Unpack[OperationArguments]) -> int:
        """Add a send to the peer in a slot."""
        return self._add(Kind.SEND, 0, _of_size(size_bytes), _of_slot(peer_slot), _of_tag(tag), **given)

    def receive(self, peer_slot: int, size_bytes: int, tag: int = 0, **given: Unpack[OperationArguments]) -> int:
        """Add a receive from the peer in a slot."""
        return self._add(Kind.RECEIVE, 0, _of_size(size_bytes), _of_slot(peer_slot), _of_tag(tag), **given)

    def read(self, peer_slot: int, size_bytes: int, **given: Unpack[OperationArguments]) -> int:
        """Add an RDMA READ of the memory of the peer in a slot."""
        return self._add(Kind.READ, 0, _of_size(size_bytes), _of_slot(peer_slot), **given)

    def collective(self, group_slot: int, call: int, **given: Unpack[OperationArguments]) -> int:
        """Add the rank's part in a collective of the group in a slot; `call` is its place in `Job.calls`."""
        slot = self._calls.setdefault((_of_slot(group_slot), _of_slot(call)), len(self._calls))
        return self._add(Kind.COLLECTIVE, target=slot, **given)

    def add_after(self, operation: int, after: Iterable[int], *, start: bool = False) -> None:
        """Have an operation follow others, too."""
        for other in after:
            self._edges.extend((operation, other, start))

    def add_edges(self, operations: Integers, after: Integers, start: bool = False) -> None:
        """Have operations follow others, too: each the one at its place in `after`."""
        edges = np.stack([operations, after, np.full(len(operations), start, np.int64)], axis=1)
        self._edges.frombytes(np.ascontiguousarray(edges, np.int64).tobytes())

    def _add(
        self,
        kind: Kind,
        duration_ps: int = 0,
        size_bytes: int = 0,
        target: int = 0,
        tag: int = 0,
        *,
        stream: int = NO_STREAM,
        after: Iterable[int] = (),
        after_start: Iterable[int] = (),
        category: str = "",
        name: str = "",
    ) -> int:
        if not NO_STREAM <= stream < MAX_STREAMS:
            raise OperationsError(f"stream {stream}", valid=f"{NO_STREAM} to {MAX_STREAMS - 1}")
        number = len(self)
        if number >= MAX_OPERATIONS:
            raise OperationsError(f"more than {MAX_OPERATIONS} operations of a rank")
        categories = self._categories.setdefault(category, len(self._categories))
        names = self._names.setdefault(name, len(self._names))
        self._columns.extend((kind, stream, duration_ps, size_bytes, target, tag, categories, names))
        self.add_after(number, after)
        self.add_after(number, after_start, start=True)
        return number

    def build(self) -> Operations:
        """Return the operations. Raises OperationsError if one follows an operation that there is not."""
        columns = _as_integers(self._columns).reshape(-1, _COLUMNS).T
        offsets, after, starts = self._sorted_edges()
        rows_of_peers = np.isin(columns[0], TRANSFERS)
        operations = Operations(
            kind=columns[0].astype(np.uint8),
            stream=columns[1].astype(np.int16),
            duration_ps=columns[2].copy(),
            size_bytes=columns[3].copy(),
            target=columns[4].astype(np.int32),
            tag=columns[5].copy(),
            category=columns[6].astype(np.int16),
            name=columns[7].astype(np.int32),
            after_offsets=offsets,
            after=after,
            after_start=starts,
            calls=tuple(self._calls),
            categories=tuple(self._categories),
            names=tuple(self._names),
            peer_slots=int(columns[4][rows_of_peers].max(initial=-1)) + 1,
            group_slots=max((group for group, _ in self._calls), default=-1) + 1,
        )
        for column in vars(operations).values():
            if isinstance(column, np.ndarray):
                column.flags.writeable = False
        return operations

    def _sorted_edges(self) -> tuple[Integers, NDArray[np.int32], NDArray[np.bool_]]:
        """Return dependencies by operation, as `Operations` has them: those on an end before those on a start."""
        operations, after, starts = _as_integers(self._edges).reshape(-1, 3).T
        count = len(self)
        wrong = (operations < 0) | (operations >= count) | (after < 0) | (after >= count)
        for bad in np.flatnonzero(wrong)[:1]:
            raise OperationsError(
                f"operation {operations[bad]} follows operation {after[bad]}", valid=f"0 to {count - 1}"
            )
        order = np.lexsort((starts, operations))
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(operations, minlength=count), out=offsets[1:])
        return offsets, after[order].astype(np.int32), starts[order].astype(np.bool_)


def _as_integers(values: array[int]) -> Integers:
    """Return an array's numbers, which are not copied."""
    return np.frombuffer(values, np.int64) if values else np.zeros(0, np.int64)


def exact_sum(values: Integers) -> int:
    """Return the sum of numbers that are not negative; it may have more than 64 bits."""
    low = (1 << 32) - 1
    return (int((values >> 32).sum()) << 32) + int((values & low).sum())


def bytes_by_category(operations: Operations, kind: Kind = Kind.SEND) -> Counter[str]:
    """Return the bytes of all sends (or receives) of each category."""
    rows = operations.of_kind(kind)
    categories, sizes = operations.category[rows], operations.size_bytes[rows]
    sums = {
        operations.categories[each]: exact_sum(sizes[categories == each]) for each in np.unique(categories).tolist()
    }
    return Counter({name: total for name, total in sums.items() if total})


def _of_duration(duration_ps: int) -> int:
    if not 0 <= duration_ps <= MAX_DURATION_PS:
        raise OperationsError(f"a duration of {duration_ps} ps", valid=f"0 to {MAX_DURATION_PS}")
    return duration_ps


def _of_size(size_bytes: int) -> int:
    if not 0 <= size_bytes <= MAX_SIZE_BYTES:
        raise OperationsError(f"a message of {size_bytes} B", valid=f"0 to {MAX_SIZE_BYTES}")
    return size_bytes


def _of_tag(tag: int) -> int:
    if not 0 <= tag <= MAX_TAG:
        raise OperationsError(f"tag {tag}", valid=f"0 to {MAX_TAG}")
    return tag


def _of_slot(slot: int) -> int:
    if not 0 <= slot < 1 << 31:
        raise OperationsError(f"slot {slot}", valid=f"0 to {(1 << 31) - 1}")
    return slot
