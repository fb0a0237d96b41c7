"""Reduce-scatter: every rank ends with its own part of the reduction of all ranks' data."""

from __future__ import annotations

from collections.abc import Sequence

from weft.traffic.collectives.conditions import host_switches, not_a_power_of_two
from weft.traffic.collectives.definition import Algorithm, Array, Collective
from weft.traffic.schedules.halving_doubling import halving_cost, halving_reduce_scatter
from weft.traffic.schedules.in_network import in_network_cost, in_network_reduce_scatter
from weft.traffic.schedules.nvls import nvls_pass_cost, nvls_reduce_scatter
from weft.traffic.schedules.pat import pat_cost, pat_reduce_scatter
from weft.traffic.schedules.ring import ring_pass_cost, ring_reduce_scatter
from weft.traffic.schedules.spec import CollectiveSpec

_IN_NETWORK = Algorithm("in-network", in_network_reduce_scatter, in_network=True, cost=in_network_cost)


class ReduceScatter(Collective):
    """A part of the sum, maximum or minimum for each."""

    name = "reducescatter"
    title = "reduce-scatter"
    algorithms = (
        Algorithm("ring", ring_reduce_scatter, cost=ring_pass_cost),
        Algorithm("halving-doubling", halving_reduce_scatter, not_a_power_of_two, cost=halving_cost),
        Algorithm("pat", pat_reduce_scatter, has_lanes=False, cost=pat_cost),
        _IN_NETWORK,
        _IN_NETWORK.on_scale_up(Algorithm("nvls", nvls_reduce_scatter, host_switches, cost=nvls_pass_cost)),
    )
    reduces = True
    is_parted = True

    def terms(self, spec: CollectiveSpec, inputs: Sequence[Array], rank: int) -> Sequence[Array]:
        """Return everything, of which the rank's chunk counts."""
        return inputs

    def result_part(self, spec: CollectiveSpec, rank: int) -> range:
        """Return the rank's chunk."""
        return spec.chunk(rank)

    def bus_bandwidth_factor(self, ranks: int) -> float:
        """Return (n-1)/n: of the data of each rank its own part stays."""
        return (ranks - 1) / ranks
