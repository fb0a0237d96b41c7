"""Reduce: the root ends with the reduction of all ranks' data."""

from __future__ import annotations

from collections.abc import Sequence

from weft.traffic.collectives.definition import Algorithm, Array, Collective
from weft.traffic.schedules.in_network import in_network_cost, in_network_reduce
from weft.traffic.schedules.ring import chain_cost, ring_reduce
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.schedules.tree import tree_pass_cost, tree_reduce


class Reduce(Collective):
    """Everybody's sum, maximum or minimum, for one rank. The others have no result."""

    name = "reduce"
    algorithms = (
        Algorithm("ring", ring_reduce, cost=chain_cost),
        Algorithm("tree", tree_reduce, cost=tree_pass_cost),
        Algorithm("in-network", in_network_reduce, in_network=True, cost=in_network_cost),
    )
    reduces = True
    has_root = True

    def terms(self, spec: CollectiveSpec, inputs: Sequence[Array], rank: int) -> Sequence[Array]:
        """Return everything."""
        return inputs

    def result_part(self, spec: CollectiveSpec, rank: int) -> range:
        """Return all of the root's data, nothing of the others'."""
        return range(spec.element_count if rank == spec.root else 0)

    def bus_bandwidth_factor(self, ranks: int) -> float:
        """Return 1: all of the data must leave each rank."""
        return 1.0
