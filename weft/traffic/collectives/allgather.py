"""All-gather: every rank ends with all ranks' parts, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.traffic.collectives.conditions import host_switches, not_a_power_of_two
from weft.traffic.collectives.definition import Algorithm, Array, Collective
from weft.traffic.schedules.halving_doubling import doubling_all_gather, halving_cost
from weft.traffic.schedules.in_network import in_network_all_gather, in_network_move_cost
from weft.traffic.schedules.nvls import nvls_all_gather, nvls_pass_cost
from weft.traffic.schedules.pat import pat_all_gather, pat_cost
from weft.traffic.schedules.ring import ring_all_gather, ring_pass_cost
from weft.traffic.schedules.spec import CollectiveSpec

_IN_NETWORK = Algorithm("in-network", in_network_all_gather, in_network=True, cost=in_network_move_cost)


def joined_chunks(spec: CollectiveSpec, inputs: Sequence[Array]) -> Array:
    """Return the chunk of each rank from its own data, joined."""
    chunks = (spec.chunk(source) for source in range(spec.rank_count))
    return np.concatenate([each[own.start : own.stop] for each, own in zip(inputs, chunks, strict=True)])


class AllGather(Collective):
    """All parts for everybody. A rank's input is its own chunk, in its place."""

    name = "allgather"
    title = "all-gather"
    algorithms = (
        Algorithm("ring", ring_all_gather, cost=ring_pass_cost),
        Algorithm("halving-doubling", doubling_all_gather, not_a_power_of_two, cost=halving_cost),
        Algorithm("pat", pat_all_gather, has_lanes=False, cost=pat_cost),
        _IN_NETWORK,
        _IN_NETWORK.on_scale_up(Algorithm("nvls", nvls_all_gather, host_switches, cost=nvls_pass_cost)),
    )
    is_parted = True
    is_same_on_all_ranks = True

    def terms(self, spec: CollectiveSpec, inputs: Sequence[Array], rank: int) -> Sequence[Array]:
        """Return the ranks' chunks, joined."""
        return [joined_chunks(spec, inputs)]

    def bus_bandwidth_factor(self, ranks: int) -> float:
        """Return (n-1)/n: a rank has its own part already."""
        return (ranks - 1) / ranks

    def input_part(self, spec: CollectiveSpec, rank: int) -> range:
        """Return the rank's chunk."""
        return spec.chunk(rank)

    def element_count(self, input_elements: int, ranks: int) -> int:
        """Return the elements of all inputs."""
        return input_elements * ranks

    def input_elements(self, size_elements: int, ranks: int) -> int:
        """Return a rank's share of the size, which is the result's."""
        return size_elements // ranks

    def shaped(self, result: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the result with as many rows as all inputs have."""
        return result.reshape(-1, *shape[1:]) if result.size else result
