"""All-to-all: chunk j of rank i becomes chunk i of rank j."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.traffic.collectives.conditions import one_rank_a_host
from weft.traffic.collectives.definition import Algorithm, Array, Collective
from weft.traffic.schedules.all_to_all import (
    direct_all_to_all,
    direct_cost,
    pairwise_all_to_all,
    pairwise_cost,
)
from weft.traffic.schedules.hierarchical_all_to_all import (
    hierarchical_all_to_all,
    hierarchical_all_to_all_cost,
)
from weft.traffic.schedules.spec import CollectiveSpec


class AllToAll(Collective):
    """Something of everybody for each."""

    name = "alltoall"
    title = "all-to-all"
    algorithms = (
        Algorithm("direct", direct_all_to_all, cost=direct_cost),
        Algorithm("pairwise", pairwise_all_to_all, cost=pairwise_cost),
        Algorithm(
            "hierarchical",
            hierarchical_all_to_all,
            one_rank_a_host,
            has_lanes=False,
            cost=hierarchical_all_to_all_cost,
        ),
    )
    is_parted = True

    def terms(self, spec: CollectiveSpec, inputs: Sequence[Array], rank: int) -> Sequence[Array]:
        """Return every rank's chunk for this rank, joined."""
        own = spec.chunk(rank)
        return [np.concatenate([each[own.start : own.stop] for each in inputs])]

    def bus_bandwidth_factor(self, ranks: int) -> float:
        """Return (n-1)/n: a rank's chunk for itself stays."""
        return (ranks - 1) / ranks

    def unsuitable(self, spec: CollectiveSpec) -> str:
        """Return an error if chunks differ in size, since they change places; "" if not."""
        if spec.element_count % spec.rank_count == 0:
            return ""
        return f"{spec.element_count} elements for {spec.rank_count} ranks (valid: a multiple)"
