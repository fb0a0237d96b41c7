"""All-reduce: every rank ends with the reduction of all ranks' data."""

from __future__ import annotations

from collections.abc import Sequence

from weft.traffic.collectives.conditions import host_switches, host_switches_and_network, one_rank_a_host
from weft.traffic.collectives.definition import Algorithm, Array, Collective
from weft.traffic.schedules.halving_doubling import halving_doubling_all_reduce, halving_doubling_cost
from weft.traffic.schedules.hierarchical import hierarchical_all_reduce, hierarchical_cost
from weft.traffic.schedules.hierarchical_in_network import (
    hierarchical_in_network_all_reduce,
    hierarchical_in_network_cost,
)
from weft.traffic.schedules.in_network import in_network_all_reduce, in_network_cost
from weft.traffic.schedules.nvls import nvls_all_reduce, nvls_all_reduce_cost
from weft.traffic.schedules.nvls_in_network import nvls_in_network_all_reduce, nvls_in_network_cost
from weft.traffic.schedules.nvls_tree import nvls_tree_all_reduce, nvls_tree_cost
from weft.traffic.schedules.recursive_doubling import recursive_doubling_all_reduce, recursive_doubling_cost
from weft.traffic.schedules.ring import ring_all_reduce, ring_all_reduce_cost
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.schedules.tree import tree_all_reduce, tree_all_reduce_cost

_IN_NETWORK = Algorithm("in-network", in_network_all_reduce, in_network=True, cost=in_network_cost)


class AllReduce(Collective):
    """Everybody's sum, maximum or minimum, for everybody."""

    name = "allreduce"
    title = "all-reduce"
    algorithms = (
        Algorithm("ring", ring_all_reduce, cost=ring_all_reduce_cost),
        Algorithm("tree", tree_all_reduce, cost=tree_all_reduce_cost),
        Algorithm("halving-doubling", halving_doubling_all_reduce, cost=halving_doubling_cost),
        Algorithm("recursive-doubling", recursive_doubling_all_reduce, has_lanes=False, cost=recursive_doubling_cost),
        Algorithm("hierarchical", hierarchical_all_reduce, one_rank_a_host, cost=hierarchical_cost),
        _IN_NETWORK,
        _IN_NETWORK.on_scale_up(Algorithm("nvls", nvls_all_reduce, host_switches, cost=nvls_all_reduce_cost)),
        Algorithm(
            "hierarchical-in-network",
            hierarchical_in_network_all_reduce,
            one_rank_a_host,
            in_network=True,
            by_rail=True,
            cost=hierarchical_in_network_cost,
        ),
        Algorithm("nvls-tree", nvls_tree_all_reduce, host_switches_and_network, cost=nvls_tree_cost),
        Algorithm(
            "nvls-in-network",
            nvls_in_network_all_reduce,
            host_switches_and_network,
            in_network=True,
            by_rail=True,
            cost=nvls_in_network_cost,
        ),
    )
    reduces = True
    is_same_on_all_ranks = True

    def terms(self, spec: CollectiveSpec, inputs: Sequence[Array], rank: int) -> Sequence[Array]:
        """Return everything."""
        return inputs

    def bus_bandwidth_factor(self, ranks: int) -> float:
        """Return 2(n-1)/n: all but a rank's own part must reach it, and reduced parts leave it again."""
        return 2 * (ranks - 1) / ranks
