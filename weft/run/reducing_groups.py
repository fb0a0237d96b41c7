"""Groups of ranks that reduce together in the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.quantities.traffic_classes import DATA_CLASS
from weft.traffic.collectives import Algorithm
from weft.traffic.schedules import CollectiveSpec


@dataclass(frozen=True)
class ReducingGroup:
    """Ranks with their own aggregation job, in order of its workers; None: all ranks of the fabric.

    `tenant` owns the job, "" for none. Its packets travel in `traffic_class`. `jobs` is the number of jobs of the
    collective, which share the switches' slots.
    """

    ranks: tuple[int, ...] | None = None
    tenant: str = ""
    traffic_class: int = DATA_CLASS
    jobs: int = 1


ALL_RANKS = ReducingGroup()


def groups_of(spec: CollectiveSpec, algorithm: Algorithm) -> tuple[ReducingGroup, ...]:
    """Return the reducing groups of a collective over all ranks; each occurs once for every tree of a plane."""
    if not algorithm.in_network:
        return ()
    rails: list[tuple[int, ...] | None] = [None]
    if algorithm.by_rail:
        hosts = range(spec.host_count if spec.host_count > 1 else 0)
        rails = [
            tuple(spec.rank_at(host * spec.ranks_per_host + local) for host in hosts)
            for local in range(spec.ranks_per_host if hosts else 0)
        ]
    jobs = len(rails) * spec.trees
    return tuple(ReducingGroup(rail, jobs=jobs) for rail in rails for _ in range(spec.trees))


def jobs_of_ranks(groups: Sequence[ReducingGroup], jobs: Sequence[int], rank_count: int) -> list[tuple[int, ...]]:
    """Return the jobs of each rank, given the job of each group."""
    joined = list(zip(groups, jobs, strict=True))
    return [
        tuple(job for group, job in joined if group.ranks is None or rank in group.ranks) for rank in range(rank_count)
    ]
