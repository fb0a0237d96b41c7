"""All-reduce: every rank ends with the reduction of all ranks' data."""

from __future__ import annotations

from collections.abc import Sequence

from weft.traffic.collectives.conditions import one_rank_a_host
from weft.traffic.collectives.definition import Algorithm, Array, Collective
from weft.traffic.schedules.halving_doubling import halving_doubling_all_reduce
from weft.traffic.schedules.hierarchical import hierarchical_all_reduce
from weft.traffic.schedules.in_network import in_network_all_reduce
from weft.traffic.schedules.ring import ring_all_reduce
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.schedules.tree import tree_all_reduce


class AllReduce(Collective):
    """Everybody's sum, maximum or minimum, for everybody."""

    name = "allreduce"
    title = "all-reduce"
    algorithms = (
        Algorithm("ring", ring_all_reduce),
        Algorithm("tree", tree_all_reduce),
        Algorithm("halving-doubling", halving_doubling_all_reduce),
        Algorithm("hierarchical", hierarchical_all_reduce, one_rank_a_host),
        Algorithm("in-network", in_network_all_reduce, in_network=True),
    )
    reduces = True
    is_same_on_all_ranks = True

    def terms(self, spec: CollectiveSpec, inputs: Sequence[Array], rank: int) -> Sequence[Array]:
        """Return everything."""
        return inputs

    def bus_bandwidth_factor(self, ranks: int) -> float:
        """Return 2(n-1)/n: all but a rank's own part must reach it, and reduced parts leave it again."""
        return 2 * (ranks - 1) / ranks
