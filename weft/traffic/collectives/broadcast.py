"""Broadcast: every rank ends with the root's data."""

from __future__ import annotations

from collections.abc import Sequence

from weft.traffic.collectives.definition import Algorithm, Array, Collective
from weft.traffic.schedules.in_network import in_network_broadcast, in_network_move_cost
from weft.traffic.schedules.ring import chain_cost, ring_broadcast
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.schedules.tree import tree_broadcast, tree_pass_cost


class Broadcast(Collective):
    """One rank's data, for everybody."""

    name = "broadcast"
    algorithms = (
        Algorithm("ring", ring_broadcast, cost=chain_cost),
        Algorithm("tree", tree_broadcast, cost=tree_pass_cost),
        Algorithm("in-network", in_network_broadcast, in_network=True, cost=in_network_move_cost),
    )
    has_root = True
    is_same_on_all_ranks = True

    def terms(self, spec: CollectiveSpec, inputs: Sequence[Array], rank: int) -> Sequence[Array]:
        """Return the root's data."""
        return [inputs[spec.root]]

    def bus_bandwidth_factor(self, ranks: int) -> float:
        """Return 1: all of it must reach each rank."""
        return 1.0
