"""Computing times of a job's ranks, grouped by ranks that do the same, for the search for slow hosts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.controller.noise.stragglers import Computations
from weft.traffic.jobs import Job
from weft.traffic.jobs.breakdown import Times
from weft.traffic.jobs.operations import Kind, Operations


def computing_peers(job: Job, hosts: Sequence[str], times: Sequence[Times]) -> list[list[Computations]]:
    """Return what each rank has computed, in groups of ranks whose programs have the same operations in the same order.

    `hosts` are the names of its ranks' hosts, `times` those of their operations. Ranks that compute nothing are left
    out.
    """
    groups: dict[tuple[object, ...], list[Computations]] = {}
    for host, part, own in zip(hosts, job.parts, times, strict=True):
        operations = part.operations
        rows = operations.of_kind(Kind.COMPUTE)
        if not len(rows):
            continue
        took_ps = (own.finished_ps - own.started_ps)[rows]
        of_row = operations.category[rows]
        durations_ps = {
            operations.categories[number]: took_ps[of_row == number].tolist() for number in np.unique(of_row).tolist()
        }
        groups.setdefault(_program(operations), []).append(Computations(host, durations_ps))
    return list(groups.values())


def _program(operations: Operations) -> tuple[object, ...]:
    """Return what programs have in common if ranks do the same: everything but how long it takes, and with whom."""
    columns = (operations.kind, operations.category, operations.stream, operations.size_bytes)
    return (operations.categories, *(each.tobytes() for each in columns))
