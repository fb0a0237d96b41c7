"""Barriers as messages between hosts: what a barrier in the network is compared with.

Messages are WRITEs with immediate of one byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.traffic.jobs import Job, OperationsBuilder, RankPart, RankTimes

Integers = NDArray[np.int64]
MESSAGE_BYTES = 1
_BARRIER = "barrier"


@dataclass(frozen=True, eq=False)
class HostBarrierJob:
    """Barriers one after the other.

    Attributes:
        algorithm: a name of `HOST_BARRIERS`.
        job: of its messages.
        ends: of each rank, the operations with which each barrier ends.

    """

    algorithm: str
    job: Job
    ends: Sequence[Sequence[int]]

    def rounds_ps(self, times: Sequence[RankTimes]) -> tuple[Integers, Integers]:
        """Return when each rank came to each barrier, and when it went on: arrays of ranks and rounds."""
        went = np.stack([each.finished_ps[list(ends)] for each, ends in zip(times, self.ends, strict=True)])
        came = np.concatenate([np.zeros((len(went), 1), np.int64), went[:, :-1]], axis=1)
        return came, went


def dissemination_steps(rank: int, ranks: int) -> list[tuple[int | None, int | None]]:
    """Return whom a rank notifies and for whom it waits in each step (Hensgen, Finkel and Manber 1988)."""
    distances = [1 << step for step in range((ranks - 1).bit_length())]
    return [((rank + distance) % ranks, (rank - distance) % ranks) for distance in distances]


def ring_steps(rank: int, ranks: int) -> list[tuple[int | None, int | None]]:
    """Return those of a token that goes round twice: it collects all ranks, then releases them."""
    before, after = (rank - 1) % ranks, (rank + 1) % ranks
    if rank == 0:
        return [(after, None), (None, before), (after, None)]
    return [(None, before), (after, None), (None, before), (after if after else None, None)]


HOST_BARRIERS: dict[str, Callable[[int, int], list[tuple[int | None, int | None]]]] = {
    "dissemination": dissemination_steps,
    "ring": ring_steps,
}
"""By name: what a rank does in a barrier, step by step. In a step it sends, then waits for what it receives."""


def host_barrier_job(algorithm: str, ranks: int, rounds: int) -> HostBarrierJob:
    """Return the job of some ranks, two or more."""
    parts, ends = [], []
    for rank in range(ranks):
        steps = HOST_BARRIERS[algorithm](rank, ranks)
        builder = OperationsBuilder()
        ends.append(_add_rounds(builder, rank, ranks, steps, rounds))
        parts.append(RankPart(builder.build(), tuple((rank + slot) % ranks for slot in range(1, ranks))))
    return HostBarrierJob(algorithm, Job(f"{rounds} barriers, {algorithm}", tuple(parts)), ends)


def _add_rounds(
    builder: OperationsBuilder,
    rank: int,
    ranks: int,
    steps: Sequence[tuple[int | None, int | None]],
    rounds: int,
) -> list[int]:
    """Add all rounds of a rank; returns the operation with which it goes on after each."""
    ends: list[int] = []
    after: tuple[int, ...] = ()
    for _ in range(rounds):
        for to, source in steps:
            if to is not None:
                builder.send((to - rank - 1) % ranks, MESSAGE_BYTES, after=after, category=_BARRIER)
            if source is not None:
                slot = (source - rank - 1) % ranks
                after = (builder.receive(slot, MESSAGE_BYTES, after=after, category=_BARRIER),)
        ends.append(after[0])
    return ends
