"""Barrier: no rank goes on before all have come."""

from __future__ import annotations

from collections.abc import Sequence

from weft.traffic.collectives.definition import Algorithm, Array, Collective
from weft.traffic.schedules.dissemination import dissemination_barrier, dissemination_cost
from weft.traffic.schedules.in_network import in_network_barrier, in_network_barrier_cost
from weft.traffic.schedules.spec import CollectiveSpec


class Barrier(Collective):
    """Nothing but the certainty that everybody is here. Data stay as they are, one element of each rank."""

    name = "barrier"
    has_size = False
    algorithms = (
        Algorithm("dissemination", dissemination_barrier, has_lanes=False, cost=dissemination_cost),
        Algorithm("in-network", in_network_barrier, in_network=True, cost=in_network_barrier_cost),
    )

    def terms(self, spec: CollectiveSpec, inputs: Sequence[Array], rank: int) -> Sequence[Array]:
        """Return the rank's own data."""
        return [inputs[rank]]

    def bus_bandwidth_factor(self, ranks: int) -> float:
        """Return 0: no data move."""
        return 0.0

    def input_elements(self, size_elements: int, ranks: int) -> int:
        """Return 1 for any size: a barrier has none."""
        return 1
