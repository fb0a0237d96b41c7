"""The traffic class of each operation of a job, and the slots in which the engine keeps classes apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.quantities.traffic_classes import DATA_CLASS
from weft.traffic.jobs.job import Job, JobError, RankPart
from weft.traffic.jobs.operations import TRANSFERS, Kind, Operations

MESSAGES = "messages"
"""Name in traffic classes for messages, and READs, without a category."""
KindNumber = Callable[[str], int]
"""Returns by which number ports count a kind of traffic."""
_UNSAID = -1
_MOST_SHOWN = 20


@dataclass(frozen=True, eq=False)
class Slots:
    """The slots of operations' peers and calls, each divided by the classes in which its operations travel.

    Attributes:
        operations: the operations with these slots.
        target: each operation's slot among these.
        peers: for each slot for peers, the operations' slot and the class.
        calls: the same for collectives' slots.
        kinds: the collective's name for each call of the operations.
    """

    operations: Operations
    target: NDArray[np.int32]
    peers: tuple[tuple[int, int], ...]
    calls: tuple[tuple[int, int], ...]
    kinds: tuple[str, ...]

    def collective_classes(self) -> Iterator[int]:
        """Yield the class of each collective, in order of the operations."""
        for slot in self.target[self.operations.of_kind(Kind.COLLECTIVE)].tolist():
            yield self.calls[slot][1]

    def engine_columns(self, number_of: KindNumber, *, calls_apart: bool = False) -> dict[str, NDArray[Any]]:
        """Return the columns that the engine's `JobOperations` is made of, by its arguments."""
        numbers = self._kind_numbers(number_of)
        return self.operations.engine_columns(self.target, numbers, calls_apart=calls_apart)

    def _kind_numbers(self, number_of: KindNumber) -> NDArray[np.uint8]:
        """Return by which number ports count what each operation sends: its category, or what it is."""
        operations = self.operations
        of_category = np.array([number_of(name) if name else 0 for name in operations.categories], np.uint8)
        numbers = of_category[operations.category]
        unnamed = np.array([not name for name in operations.categories], np.bool_)[operations.category]
        rows = np.flatnonzero(np.isin(operations.kind, TRANSFERS))
        rows = rows[unnamed[rows]]
        if len(rows):
            numbers[rows] = number_of(MESSAGES)
        rows = operations.of_kind(Kind.COLLECTIVE)
        rows = rows[unnamed[rows]]
        if len(rows):
            of_call = np.array([number_of(name) for name in self.kinds], np.uint8)
            numbers[rows] = of_call[operations.target[rows]]
        return numbers


class JobClasses:
    """The classes of a job's operations: by category, else by a collective's group or by its name.

    `Job.traffic_classes` may name any of these; what it names none of travels in the class of data. Messages without a
    category are called `MESSAGES`.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._named: Mapping[str, int] = job.traffic_classes
        self._slots: dict[tuple[int, tuple[int, ...]], Slots] = {}

    @cached_property
    def names(self) -> set[str]:
        """Categories that `Job.traffic_classes` may name."""
        job, named = self._job, set[str]()
        for operations in {id(part.operations): part.operations for part in job.parts}.values():
            sending = np.isin(operations.kind, (*TRANSFERS, Kind.COLLECTIVE))
            categories = np.unique(operations.category[sending]).tolist()
            named |= {operations.categories[each] for each in categories}
            named |= {job.calls[call].collective for _, call in operations.calls}
            if np.isin(operations.kind, TRANSFERS).any():
                named.add(MESSAGES)
        return (named | {group.name for group in job.groups}) - {""}

    def check(self, of_fabric: tuple[int, ...]) -> None:
        """Raise JobError for a name of nothing that the job sends, or a class that switches do not keep apart."""
        for name, number in self._named.items():
            if name not in self.names:
                raise JobError(f"traffic class {number} of {name!r}", valid=sorted(self.names)[:_MOST_SHOWN])
            if number not in of_fabric:
                raise JobError(
                    f"traffic class {number} of {name!r} (valid on this fabric: {', '.join(map(str, of_fabric))}; "
                    f"scheduling.classes: {sorted({*of_fabric, number})} has its switches keep that apart, too)"
                )

    def of_operations(self, rank: int) -> NDArray[np.int8]:
        """Return the class of each of a rank's operations."""
        operations = self._job.parts[rank].operations
        slots = self.slots(rank)
        classes = np.full(len(operations), DATA_CLASS, np.int8)
        for kinds, divided in ((TRANSFERS, slots.peers), ((Kind.COLLECTIVE,), slots.calls)):
            rows = np.flatnonzero(np.isin(operations.kind, kinds))
            if len(rows):
                classes[rows] = np.array([number for _, number in divided], np.int8)[slots.target[rows]]
        return classes

    def slots(self, rank: int) -> Slots:
        """Return a rank's slots: one object for all ranks that share operations and classes."""
        part = self._job.parts[rank]
        slots_of_calls = range(len(part.operations.calls)) if self._named else ()
        of_calls = tuple(self._of_call(part, slot) for slot in slots_of_calls)
        key = (id(part.operations), of_calls)
        if key not in self._slots:
            self._slots[key] = self._made(part.operations, of_calls)
        return self._slots[key]

    def _of_call(self, part: RankPart, slot: int) -> int:
        """Return the class of a call by its group or name."""
        group, call = part.operations.calls[slot]
        names = (self._job.groups[part.groups[group]].name, self._job.calls[call].collective)
        return next((self._named[name] for name in names if name in self._named), DATA_CLASS)

    def _made(self, operations: Operations, of_calls: tuple[int, ...]) -> Slots:
        kinds = tuple(self._job.calls[call].collective for _, call in operations.calls)
        if not self._named:
            peers = tuple((slot, DATA_CLASS) for slot in range(operations.peer_slots))
            calls = tuple((slot, DATA_CLASS) for slot in range(len(operations.calls)))
            return Slots(operations, operations.target, peers, calls, kinds)
        named = [self._named.get(name, _UNSAID) if name else _UNSAID for name in operations.categories]
        of_category = np.array(named, np.int8)[operations.category]
        target = operations.target.copy()
        of_message = np.full(operations.peer_slots, self._named.get(MESSAGES, DATA_CLASS), np.int8)
        transfers = np.flatnonzero(np.isin(operations.kind, TRANSFERS))
        peers = _divided(target, transfers, of_category, of_message)
        rows = operations.of_kind(Kind.COLLECTIVE)
        calls = _divided(target, rows, of_category, np.array(of_calls, np.int8))
        return Slots(operations, target, peers, calls, kinds)


def _divided(
    target: NDArray[np.int32],
    rows: NDArray[np.int64],
    of_category: NDArray[np.int8],
    of_slot: NDArray[np.int8],
) -> tuple[tuple[int, int], ...]:
    """Give some operations slots by slot and class; returns both of each new slot."""
    if not len(rows):
        return ()
    classes = np.where(of_category[rows] == _UNSAID, of_slot[target[rows]], of_category[rows])
    pairs = np.stack([target[rows], classes.astype(np.int32)], axis=1)
    found, numbers = np.unique(pairs, axis=0, return_inverse=True)
    target[rows] = numbers.reshape(-1)
    return tuple((int(slot), int(number)) for slot, number in found)
