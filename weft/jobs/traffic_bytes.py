"""What ranks of a job send, by category."""

from __future__ import annotations

from collections import Counter

import numpy as np

from weft.traffic.collectives import collective_named
from weft.traffic.jobs import Job, Kind
from weft.traffic.jobs.operations import bytes_by_category

TRAINING_TRAFFIC = ("tensor", "context", "pipeline", "data", "expert")
"""The categories of what ranks of a training job send."""


def sent_bytes(job: Job, rank: int) -> Counter[str]:
    """Return the bytes that a rank sends, by category.

    Of a collective this is its size times its bus bandwidth factor (nccl-tests, doc/PERFORMANCE.md): what every rank
    sends if all send alike and nothing twice.
    """
    part = job.parts[rank]
    operations = part.operations
    found = bytes_by_category(operations)
    rows = operations.of_kind(Kind.COLLECTIVE)
    pairs = np.stack([operations.category[rows], operations.target[rows]], axis=1)
    for (category, slot), count in zip(*np.unique(pairs, axis=0, return_counts=True), strict=True):
        group, number = operations.calls[slot]
        call = job.calls[number]
        ranks = len(job.groups[part.groups[group]].ranks)
        factor = collective_named(call.collective).bus_bandwidth_factor(ranks)
        found[operations.categories[category]] += int(count) * round(call.size_bytes * factor)
    return found
