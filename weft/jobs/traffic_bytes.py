"""Bytes that the ranks of a job send, by category."""

from __future__ import annotations

from collections import Counter

import numpy as np

from weft.traffic.collectives import collective_named
from weft.traffic.jobs import CollectiveCall, Job, Kind
from weft.traffic.jobs.operations import bytes_by_category

TRAINING_TRAFFIC = ("tensor", "context", "pipeline", "data", "expert")
"""Categories of a training job's traffic."""


def sent_bytes(job: Job, rank: int) -> Counter[str]:
    """Return the bytes that a rank sends, by category.

    A host-based collective counts with its size times its bus bandwidth factor (nccl-tests, doc/PERFORMANCE.md): the
    bytes of each rank if all send the same amount and nothing twice. In-network, a rank sends its input once.
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
        found[operations.categories[category]] += int(count) * _sent_of_call(call, ranks)
    return found


def _sent_of_call(call: CollectiveCall, ranks: int) -> int:
    collective = collective_named(call.collective)
    if call.algorithm and collective.algorithm(call.algorithm).in_network:
        element_bytes = call.dtype.element_bytes
        return collective.input_elements(call.size_bytes // element_bytes, ranks) * element_bytes
    return round(call.size_bytes * collective.bus_bandwidth_factor(ranks))
