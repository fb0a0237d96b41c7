"""Which send belongs to which receive, and which operations of a group's ranks to which of its collectives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.quantities.arrays import Integers
from weft.traffic.jobs.job import Job
from weft.traffic.jobs.operations import Kind, Operations

MOST_LONE = 20


@dataclass(frozen=True, eq=False)
class Ends:
    """One end of each transfer, in the order of sender, receiver, tag and the operations' numbers."""

    source: Integers
    destination: Integers
    tag: Integers
    rank: Integers
    operation: Integers
    size_bytes: Integers

    def place(self, number: int) -> tuple[int, int]:
        """Return the rank and the operation."""
        return int(self.rank[number]), int(self.operation[number])

    def taken(self, which: NDArray[np.bool_] | Integers) -> Ends:
        """Return some of them."""
        return Ends(**{name: column[which] for name, column in vars(self).items()})


@dataclass(frozen=True, eq=False)
class Transfers:
    """The matching sends and receives, row by row, and those without a match: rank, operation, peer."""

    sends: Ends
    receives: Ends
    lone_sends: list[tuple[int, int, int]]
    lone_receives: list[tuple[int, int, int]]


def transfers_of(job: Job) -> Transfers:
    """Return all transfers of a job. Lists of those without a match end after twenty."""
    sends, receives = _ends(job, Kind.SEND), _ends(job, Kind.RECEIVE)
    if _alike(sends, receives):
        return Transfers(sends, receives, [], [])
    send_keys, receive_keys = _keys(sends, receives)
    of_sends, of_receives = np.isin(send_keys, receive_keys), np.isin(receive_keys, send_keys)
    lone_sends, lone_receives = np.flatnonzero(~of_sends), np.flatnonzero(~of_receives)
    return Transfers(
        sends.taken(of_sends),
        receives.taken(of_receives),
        [(*sends.place(each), int(sends.destination[each])) for each in lone_sends[:MOST_LONE]],
        [(*receives.place(each), int(receives.source[each])) for each in lone_receives[:MOST_LONE]],
    )


def _ends(job: Job, kind: Kind) -> Ends:
    rows: dict[int, Integers] = {}
    ranks, operations, peers, tags, sizes = [], [], [], [], []
    for rank, part in enumerate(job.parts):
        own = rows.setdefault(id(part.operations), part.operations.of_kind(kind))
        ranks.append(np.full(len(own), rank, np.int64))
        operations.append(own)
        peers.append(np.array(part.peers, np.int64)[part.operations.target[own]] if len(own) else own)
        tags.append(part.operations.tag[own])
        sizes.append(part.operations.size_bytes[own])
    columns = [_joined(parts) for parts in (ranks, operations, peers, tags, sizes)]
    own_rank, operation, peer, tag, size = columns
    source, destination = (own_rank, peer) if kind == Kind.SEND else (peer, own_rank)
    # Stable: those of equal keys stay in the order of their numbers.
    order = np.lexsort((tag, destination, source))
    return Ends(source, destination, tag, own_rank, operation, size).taken(order)


def _joined(parts: list[Integers]) -> Integers:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _alike(sends: Ends, receives: Ends) -> bool:
    return all(np.array_equal(getattr(sends, key), getattr(receives, key)) for key in ("source", "destination", "tag"))


def _keys(sends: Ends, receives: Ends) -> tuple[Integers, Integers]:
    """Return a number of each transfer, which only its two ends share."""
    columns = np.concatenate(
        [np.stack([ends.source, ends.destination, ends.tag, _places(ends)], axis=1) for ends in (sends, receives)]
    )
    _, numbers = np.unique(columns, axis=0, return_inverse=True)
    numbers = numbers.reshape(-1)
    return numbers[: len(sends.source)], numbers[len(sends.source) :]


def _places(ends: Ends) -> Integers:
    """Return each transfer's place among transfers with equal sender, receiver and tag."""
    count = len(ends.source)
    if not count:
        return np.zeros(0, np.int64)
    changes = np.ones(count, np.bool_)
    changes[1:] = (np.diff(ends.source) != 0) | (np.diff(ends.destination) != 0) | (np.diff(ends.tag) != 0)
    first = np.flatnonzero(changes)
    places: Integers = np.arange(count) - first[np.cumsum(changes) - 1]
    return places


class Calls:
    """The collectives of every group, as each of its ranks calls them."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._slots = [{group: slot for slot, group in enumerate(part.groups)} for part in job.parts]
        self._rows: dict[int, dict[int, tuple[Integers, Integers]]] = {}
        for part in job.parts:
            if id(part.operations) not in self._rows:
                self._rows[id(part.operations)] = _rows_by_slot(part.operations)

    def sequence(self, group: int, rank: int) -> Integers:
        """Return the places in `Job.calls` of what a rank calls in a group, in order."""
        return self._of(group, rank)[0]

    def operations(self, group: int, rank: int) -> Integers:
        """Return the numbers of a rank's operations in a group's collectives, in order."""
        return self._of(group, rank)[1]

    def operation(self, group: int, rank: int, number: int) -> int:
        """Return the number of a rank's operation in a group's n-th collective."""
        return int(self.operations(group, rank)[number])

    def _of(self, group: int, rank: int) -> tuple[Integers, Integers]:
        slot = self._slots[rank].get(group, -1)
        return self._rows[id(self._job.parts[rank].operations)].get(slot, _NOTHING)


_NOTHING = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def calls_of(job: Job) -> Calls:
    """Return all collectives of a job."""
    return Calls(job)


def _rows_by_slot(operations: Operations) -> dict[int, tuple[Integers, Integers]]:
    """Return the calls and the numbers of the operations that name the group in each slot."""
    rows = operations.of_kind(Kind.COLLECTIVE)
    if not len(rows):
        return {}
    pairs = np.array(operations.calls, np.int64)[operations.target[rows]]
    slots, calls = pairs[:, 0], pairs[:, 1].copy()
    return {slot: (calls[slots == slot], rows[slots == slot]) for slot in np.unique(slots).tolist()}
