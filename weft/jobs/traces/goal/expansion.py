"""Expands collectives to messages, for formats without collectives: rings, and binomial trees from and to a root.

LogGOPSim's Schedgen generates the same patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from weft.traffic.jobs import CollectiveCall


@dataclass(frozen=True)
class Message:
    """One end of a message of a collective.

    Attributes:
        sends: whether the rank sends it.
        peer: group rank of the other end.
        size_bytes: size, at least 1.
        awaited: how many of the receives directly before it in the list it waits for.
    """

    sends: bool
    peer: int
    size_bytes: int
    awaited: int = 0


def _ring(steps: int, size_bytes: int, ranks: int, rank: int) -> Iterator[Message]:
    part_bytes = -(-size_bytes // ranks)
    for step in range(steps):
        yield Message(True, (rank + 1) % ranks, part_bytes, min(step, 1))
        yield Message(False, (rank - 1) % ranks, part_bytes)


def _all_reduce(call: CollectiveCall, ranks: int, rank: int) -> Iterator[Message]:
    return _ring(2 * (ranks - 1), call.size_bytes, ranks, rank)


def _half_of_it(call: CollectiveCall, ranks: int, rank: int) -> Iterator[Message]:
    return _ring(ranks - 1, call.size_bytes, ranks, rank)


def _all_to_all(call: CollectiveCall, ranks: int, rank: int) -> Iterator[Message]:
    part_bytes = -(-call.size_bytes // ranks)
    for distance in range(1, ranks):
        yield Message(True, (rank + distance) % ranks, part_bytes)
        yield Message(False, (rank - distance) % ranks, part_bytes)


def _broadcast(call: CollectiveCall, ranks: int, rank: int) -> Iterator[Message]:
    parent, children = _binomial(ranks, (rank - call.root) % ranks)
    if parent is not None:
        yield Message(False, (parent + call.root) % ranks, call.size_bytes)
    for child in children:
        yield Message(True, (child + call.root) % ranks, call.size_bytes, int(parent is not None))


def _reduce(call: CollectiveCall, ranks: int, rank: int) -> Iterator[Message]:
    parent, children = _binomial(ranks, (rank - call.root) % ranks)
    for child in reversed(children):
        yield Message(False, (child + call.root) % ranks, call.size_bytes)
    if parent is not None:
        yield Message(True, (parent + call.root) % ranks, call.size_bytes, len(children))


def _binomial(ranks: int, place: int) -> tuple[int | None, list[int]]:
    """Return parent and children of a node in the tree rooted at 0, the child with most descendants first."""
    lowest = place & -place if place else 1 << (ranks - 1).bit_length()
    distances = [1 << bit for bit in reversed(range(lowest.bit_length() - 1))]
    return (place - lowest if place else None), [place + each for each in distances if place + each < ranks]


EXPANSIONS: dict[str, Callable[[CollectiveCall, int, int], Iterator[Message]]] = {
    "allgather": _half_of_it,
    "allreduce": _all_reduce,
    "alltoall": _all_to_all,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "reducescatter": _half_of_it,
}
"""Messages of a group's rank in order, by collective. Messages between two ranks match in order."""
