"""Groups of a job for which the network reduces, and whether each rank calls their collectives in one order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.traffic.jobs.operations import Operations

_NONE = -1


class JobReduction(NamedTuple):
    """A group with collectives in a traffic class that the network reduces: its number, and its ranks of the fabric."""

    group: int
    traffic_class: int
    ranks: tuple[int, ...]


def first_unordered(operations: Operations, collectives: Sequence[int]) -> tuple[int, int] | None:
    """Return two collectives of which the second may begin before the first is done; None if there are none such.

    Workers of an aggregation job share one stream of messages, so all must post its reductions in one order
    (docs/spec/aggregation.md, "Messages"). Only dependencies among the rank's own operations count.

    Args:
        operations: of a rank, without a cycle of dependencies.
        collectives: numbers of operations, in the order in which they are to be done.
    """
    number_of = {operation: number for number, operation in enumerate(collectives)}
    rows = np.repeat(np.arange(len(operations)), np.diff(operations.after_offsets))
    order = np.argsort(operations.after, kind="stable")
    followers, on_start = rows[order].tolist(), operations.after_start[order].tolist()
    ends = np.cumsum(np.bincount(operations.after, minlength=len(operations))).tolist()
    awaited = np.diff(operations.after_offsets).tolist()
    # Of each operation, the last of the collectives that is certainly done before it begins.
    done = [_NONE] * len(operations)
    ready = [operation for operation, count in enumerate(awaited) if not count]
    while ready:
        operation = ready.pop()
        number = number_of.get(operation)
        if number is not None and done[operation] < number - 1:
            return collectives[number - 1], operation
        for place in range(ends[operation - 1] if operation else 0, ends[operation]):
            follower = followers[place]
            known = done[operation] if number is None or on_start[place] else number
            done[follower] = max(done[follower], known)
            awaited[follower] -= 1
            if not awaited[follower]:
                ready.append(follower)
    return None
