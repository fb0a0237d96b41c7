"""Gather: the root ends with all ranks' parts, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from weft.traffic.collectives.allgather import joined_chunks
from weft.traffic.collectives.definition import Algorithm, Array, Collective
from weft.traffic.schedules.all_to_all import direct_cost
from weft.traffic.schedules.gather_scatter import binomial_cost, binomial_gather, direct_gather
from weft.traffic.schedules.spec import CollectiveSpec


class Gather(Collective):
    """All parts for one rank. A rank's input is its own chunk, in its place; only the root has a result."""

    name = "gather"
    algorithms = (
        Algorithm("direct", direct_gather, has_lanes=False, cost=direct_cost),
        Algorithm("binomial", binomial_gather, has_lanes=False, cost=binomial_cost),
    )
    has_root = True
    is_parted = True

    def terms(self, spec: CollectiveSpec, inputs: Sequence[Array], rank: int) -> Sequence[Array]:
        """Return the ranks' chunks, joined."""
        return [joined_chunks(spec, inputs)]

    def bus_bandwidth_factor(self, ranks: int) -> float:
        """Return (n-1)/n: the root has its own part already (nccl-tests, src/gather.cu)."""
        return (ranks - 1) / ranks

    def input_part(self, spec: CollectiveSpec, rank: int) -> range:
        """Return the rank's chunk."""
        return spec.chunk(rank)

    def result_part(self, spec: CollectiveSpec, rank: int) -> range:
        """Return all of the root's data, nothing of the others'."""
        return range(spec.element_count if rank == spec.root else 0)

    def element_count(self, input_elements: int, ranks: int) -> int:
        """Return the elements of all inputs."""
        return input_elements * ranks

    def input_elements(self, size_elements: int, ranks: int) -> int:
        """Return a rank's share of the size, which is the result's."""
        return size_elements // ranks

    def shaped(self, result: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the root's result with as many rows as all inputs have."""
        return result.reshape(-1, *shape[1:]) if result.size else result
