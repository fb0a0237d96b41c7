"""Generators of collective schedules: (what, rank, rank count) in, that rank's dependency graph out.

Every generator is called alike on all ranks and needs no communication: what one rank writes is what its
peer waits for, because both derive the same chunks and immediates. One algorithm a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from weft.traffic.schedule_nodes import Channel, RankSchedule
from weft.traffic.schedules.all_to_all import direct_all_to_all, pairwise_all_to_all
from weft.traffic.schedules.halving_doubling import (
    doubling_all_gather,
    halving_doubling_all_reduce,
    halving_reduce_scatter,
)
from weft.traffic.schedules.hierarchical import hierarchical_all_reduce
from weft.traffic.schedules.in_network import in_network_all_reduce
from weft.traffic.schedules.ring import (
    ring_all_gather,
    ring_all_reduce,
    ring_broadcast,
    ring_reduce,
    ring_reduce_scatter,
)
from weft.traffic.schedules.spec import DEFAULT_PIECE_BYTES, MAX_RANKS, CollectiveSpec
from weft.traffic.schedules.tree import tree_all_reduce, tree_broadcast, tree_reduce

Generator = Callable[[CollectiveSpec, int], RankSchedule]

GENERATORS: dict[str, dict[str, Generator]] = {
    "allreduce": {
        "ring": ring_all_reduce,
        "tree": tree_all_reduce,
        "halving-doubling": halving_doubling_all_reduce,
        "hierarchical": hierarchical_all_reduce,
        "in-network": in_network_all_reduce,
    },
    "reducescatter": {"ring": ring_reduce_scatter, "halving-doubling": halving_reduce_scatter},
    "allgather": {"ring": ring_all_gather, "halving-doubling": doubling_all_gather},
    "alltoall": {"direct": direct_all_to_all, "pairwise": pairwise_all_to_all},
    "broadcast": {"ring": ring_broadcast, "tree": tree_broadcast},
    "reduce": {"ring": ring_reduce, "tree": tree_reduce},
}
"""Generators by collective and algorithm; the first algorithm of a collective runs on any fabric."""

COLLECTIVES = tuple(GENERATORS)
ALGORITHMS = tuple(dict.fromkeys(algorithm for each in GENERATORS.values() for algorithm in each))


def check_algorithm(collective: str, algorithm: str, spec: CollectiveSpec) -> None:
    """Raise ValueError for an unknown collective or algorithm, and for what the algorithm cannot do."""
    if collective not in GENERATORS:
        raise ValueError(f"unknown collective {collective!r} (valid: {', '.join(GENERATORS)})")
    if algorithm not in GENERATORS[collective]:
        valid = ", ".join(GENERATORS[collective])
        raise ValueError(f"{collective} has no algorithm {algorithm!r} (valid: {valid})")
    ranks = spec.rank_count
    if algorithm == "hierarchical" and spec.ranks_per_host == 1:
        raise ValueError("hosts of 1 rank have nothing to reduce inside (valid: 2 ranks a host or more)")
    if algorithm == "halving-doubling" and collective != "allreduce" and ranks & (ranks - 1):
        raise ValueError(f"{ranks} ranks are not each left with a chunk (valid: powers of two)")
    if collective == "alltoall" and spec.element_count % ranks:
        raise ValueError(f"{spec.element_count} elements for {ranks} ranks (valid: a multiple)")


def suitable_algorithms(collective: str, spec: CollectiveSpec) -> list[str]:
    """Return the algorithms of a collective that can do what the spec says."""
    suitable = []
    for algorithm in GENERATORS[collective]:
        with suppress(ValueError):
            check_algorithm(collective, algorithm, spec)
            suitable.append(algorithm)
    return suitable


def generate(collective: str, algorithm: str, spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Return the rank's schedule of a collective.

    Raises ValueError for an unknown collective or algorithm, a rank there is not, and what an algorithm cannot do.
    """
    check_algorithm(collective, algorithm, spec)
    if not 0 <= rank < spec.rank_count:
        raise ValueError(f"rank {rank} (valid: 0 to {spec.rank_count - 1})")
    return GENERATORS[collective][algorithm](spec, rank)


def peers_of(schedules: Sequence[RankSchedule]) -> list[tuple[int, Channel]]:
    """Return every (rank, channel) pair that the schedules of all ranks use, each once."""
    used = ((schedule.rank, channel) for schedule in schedules for channel in schedule.channels())
    return list(dict.fromkeys(used))


__all__ = [
    "ALGORITHMS",
    "COLLECTIVES",
    "DEFAULT_PIECE_BYTES",
    "GENERATORS",
    "MAX_RANKS",
    "CollectiveSpec",
    "Generator",
    "check_algorithm",
    "generate",
    "peers_of",
    "suitable_algorithms",
]
