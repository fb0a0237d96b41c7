"""Scatter: every rank ends with its own part of the root's data."""

from __future__ import annotations

from collections.abc import Sequence

from weft.traffic.collectives.definition import Algorithm, Array, Collective
from weft.traffic.schedules.all_to_all import direct_cost
from weft.traffic.schedules.gather_scatter import binomial_cost, binomial_scatter, direct_scatter
from weft.traffic.schedules.spec import CollectiveSpec


class Scatter(Collective):
    """A part of one rank's data for each."""

    name = "scatter"
    algorithms = (
        Algorithm("direct", direct_scatter, has_lanes=False, cost=direct_cost),
        Algorithm("binomial", binomial_scatter, has_lanes=False, cost=binomial_cost),
    )
    has_root = True
    is_parted = True

    def terms(self, spec: CollectiveSpec, inputs: Sequence[Array], rank: int) -> Sequence[Array]:
        """Return the root's data, of which the rank's chunk counts."""
        return [inputs[spec.root]]

    def result_part(self, spec: CollectiveSpec, rank: int) -> range:
        """Return the rank's chunk."""
        return spec.chunk(rank)

    def bus_bandwidth_factor(self, ranks: int) -> float:
        """Return (n-1)/n: the root's own part stays (nccl-tests, src/scatter.cu)."""
        return (ranks - 1) / ranks
