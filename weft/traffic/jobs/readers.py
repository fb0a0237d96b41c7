"""Ranks that serve READs of a job: they need connections and memory, though they have no operations for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from weft.traffic.jobs.job import Job
from weft.traffic.jobs.operations import Kind, Operations


@dataclass(frozen=True)
class Readers:
    """The ranks that read a rank's memory, in order, and the size of their largest READ."""

    ranks: tuple[int, ...] = ()
    largest_bytes: int = 0


def readers_of(job: Job) -> dict[int, Readers]:
    """Return the readers of each rank that has any."""
    found: dict[int, Readers] = {}
    largest: dict[int, dict[int, int]] = {}
    for rank, part in enumerate(job.parts):
        if id(part.operations) not in largest:
            largest[id(part.operations)] = _largest_by_slot(part.operations)
        for slot, size_bytes in largest[id(part.operations)].items():
            known = found.get(part.peers[slot], Readers())
            found[part.peers[slot]] = replace(
                known, ranks=(*known.ranks, rank), largest_bytes=max(known.largest_bytes, size_bytes)
            )
    return found


def _largest_by_slot(operations: Operations) -> dict[int, int]:
    """Return the size of the largest READ of each peer slot that has any."""
    rows = operations.of_kind(Kind.READ)
    slots, sizes = operations.target[rows], operations.size_bytes[rows]
    return {slot: int(sizes[slots == slot].max()) for slot in np.unique(slots).tolist()}
