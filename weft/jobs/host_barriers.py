"""Host-based barriers, made of messages: the baseline for in-network barriers.

Messages are WRITEs with immediate of one byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from weft.quantities.arrays import Integers
from weft.traffic.jobs import Job, OperationsBuilder, RankPart, RankTimes

MESSAGE_BYTES = 1
_BARRIER = "barrier"


@dataclass(frozen=True, eq=False)
class HostBarrierJob:
    """Consecutive barriers.

    Attributes:
        algorithm: a name of `HOST_BARRIERS`.
        job: the messages of all barriers.
        ends: for each rank, the operation that ends each barrier.

    """

    algorithm: str
    job: Job
    ends: Sequence[Sequence[int]]

    def rounds_ps(self, times: Sequence[RankTimes]) -> tuple[Integers, Integers]:
        """Return when each rank entered and when it left each barrier, in ps: arrays of shape (ranks, rounds)."""
        went = np.stack([each.finished_ps[list(ends)] for each, ends in zip(times, self.ends, strict=True)])
        came = np.concatenate([np.zeros((len(went), 1), np.int64), went[:, :-1]], axis=1)
        return came, went


def dissemination_steps(rank: int, ranks: int) -> list[tuple[int | None, int | None]]:
    """Return the rank notified and the rank awaited in each step (Hensgen, Finkel and Manber 1988)."""
    distances = [1 << step for step in range((ranks - 1).bit_length())]
    return [((rank + distance) % ranks, (rank - distance) % ranks) for distance in distances]


def ring_steps(rank: int, ranks: int) -> list[tuple[int | None, int | None]]:
    """Return the steps of a token that circulates twice: it collects all ranks, then releases them."""
    before, after = (rank - 1) % ranks, (rank + 1) % ranks
    if rank == 0:
        return [(after, None), (None, before), (after, None)]
    return [(None, before), (after, None), (None, before), (after if after else None, None)]


HOST_BARRIERS: dict[str, Callable[[int, int], list[tuple[int | None, int | None]]]] = {
    "dissemination": dissemination_steps,
    "ring": ring_steps,
}
"""Steps of a rank in a barrier, by algorithm. In a step the rank sends, then waits for the message that it receives."""


def host_barrier_job(algorithm: str, ranks: int, rounds: int) -> HostBarrierJob:
    """Return the job of `rounds` barriers among two or more ranks."""
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
    """Add all rounds of a rank; returns the operation that ends each round."""
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
