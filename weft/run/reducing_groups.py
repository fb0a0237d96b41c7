"""Ranks that reduce together in the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.quantities.traffic_classes import DATA_CLASS
from weft.traffic.collectives import Algorithm
from weft.traffic.schedules import CollectiveSpec


@dataclass(frozen=True)
class ReducingGroup:
    """Ranks that have an aggregation job of their own, in order of its workers; None: all ranks of the fabric.

    `tenant` is to whom the job belongs, "" nobody. Its packets travel in `traffic_class`.
    `jobs` are how many one collective needs, which share the slots of switches.
    """

    ranks: tuple[int, ...] | None = None
    tenant: str = ""
    traffic_class: int = DATA_CLASS
    jobs: int = 1


ALL_RANKS = ReducingGroup()


def groups_of(spec: CollectiveSpec, algorithm: Algorithm) -> tuple[ReducingGroup, ...]:
    """Return for which ranks switches reduce in a collective of all: as many times each as a plane has trees."""
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


def jobs_of_ranks(
    groups: Sequence[ReducingGroup], jobs: Sequence[int], rank_count: int
) -> list[tuple[int, ...]]:
    """Return which jobs each rank is of, given those of the groups, in the same order."""
    joined = list(zip(groups, jobs, strict=True))
    return [
        tuple(job for group, job in joined if group.ranks is None or rank in group.ranks)
        for rank in range(rank_count)
    ]
