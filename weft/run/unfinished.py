"""Describes the unfinished operations of a failed job."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.traffic.jobs import NEVER_PS, Job, Kind, RankTimes

MOST_RANKS = 8


def unfinished(job: Job, times: Sequence[RankTimes]) -> str:
    """Return, in words, the unfinished operation of each rank that started first; "" if there is none."""
    found = []
    for rank, each in enumerate(times):
        rows = np.flatnonzero((each.started_ps != NEVER_PS) & (each.finished_ps == NEVER_PS))
        if len(rows):
            first = int(rows[np.argmin(each.started_ps[rows])])
            found.append(f"rank {rank} at {_described(job, rank, first)}")
    rest = [f"{len(found) - MOST_RANKS} more"] if len(found) > MOST_RANKS else []
    return ", ".join(found[:MOST_RANKS] + rest)


def _described(job: Job, rank: int, operation: int) -> str:
    part, operations = job.parts[rank], job.parts[rank].operations
    kind, target = Kind(operations.kind[operation]), int(operations.target[operation])
    name = operations.names[operations.name[operation]]
    text = f"operation {operation}" + (f" {name!r}" if name else "") + f" ({kind.name.lower()}"
    if kind in (Kind.SEND, Kind.RECEIVE):
        direction = "to" if kind is Kind.SEND else "from"
        text += f" of {operations.size_bytes[operation]} B {direction} rank {part.peers[target]}"
    elif kind is Kind.READ:
        text += f" of {operations.size_bytes[operation]} B of rank {part.peers[target]}"
    elif kind is Kind.COLLECTIVE:
        group_slot, call = operations.calls[target]
        group = job.groups[part.groups[group_slot]].name
        text += f" {job.calls[call].name} of {job.calls[call].size_bytes} B in group {group!r}"
    return f"{text})"
