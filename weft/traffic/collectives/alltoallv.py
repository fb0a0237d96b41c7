"""All-to-all-v: every rank has something of a size of its own for each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from weft.quantities.arrays import Integers
from weft.traffic.collectives.conditions import one_rank_a_host
from weft.traffic.collectives.definition import Algorithm, Array, Collective
from weft.traffic.pair_sizes import PairSizes, between_ranks, largest_sum
from weft.traffic.schedules.all_to_all_v import (
    direct_all_to_all_v,
    direct_cost,
    hierarchical_all_to_all_v,
    hierarchical_cost,
    pairwise_all_to_all_v,
    pairwise_cost,
)
from weft.traffic.schedules.spec import CollectiveSpec


def _algorithms(sizes: PairSizes) -> tuple[Algorithm, ...]:
    return (
        Algorithm("direct", partial(direct_all_to_all_v, sizes), has_lanes=False, cost=partial(direct_cost, sizes)),
        Algorithm(
            "pairwise", partial(pairwise_all_to_all_v, sizes), has_lanes=False, cost=partial(pairwise_cost, sizes)
        ),
        Algorithm(
            "hierarchical",
            partial(hierarchical_all_to_all_v, sizes),
            one_rank_a_host,
            has_lanes=False,
            cost=partial(hierarchical_cost, sizes),
        ),
    )


class AllToAllV(Collective):
    """Something of everybody for each, of sizes that `PairSizes` says.

    The data of a rank have room for the largest sum that a rank sends or receives, which is the size. In front of them
    are its input, in order of the receivers, and its result, in order of the senders. A subclass with other `sizes` is
    another collective.
    """

    name = "alltoallv"
    title = "all-to-all-v"
    sizes: ClassVar[PairSizes] = PairSizes()
    """In proportion: the size of the data scales them."""
    algorithms = _algorithms(sizes)

    def __init_subclass__(cls) -> None:
        """Have the algorithms of a subclass exchange what it says."""
        super().__init_subclass__()
        cls.algorithms = _algorithms(cls.sizes)

    def with_parameters(self, parameters: str) -> Collective:
        """Return the collective of other sizes."""
        return _of_sizes(type(self), parameters)

    def terms(self, spec: CollectiveSpec, inputs: Sequence[Array], rank: int) -> Sequence[Array]:
        """Return what all ranks have for this one, joined, and zeros."""
        sizes = self.sizes.elements(spec)
        ends = np.cumsum(sizes[:, : rank + 1], axis=1)[:, -1].tolist()
        parts = [each[end - size : end] for each, end, size in zip(inputs, ends, sizes[:, rank].tolist(), strict=True)]
        result = np.zeros(spec.element_count, inputs[rank].dtype)
        joined = np.concatenate(parts)
        result[: joined.size] = joined
        return [result]

    def bus_bandwidth_factor(self, ranks: int) -> float:
        """Return the largest sum of a rank without what stays, over that with it: (n-1)/n of equal sizes."""
        weights = self.sizes.weights(ranks)
        return largest_sum(between_ranks(weights)) / largest_sum(weights)

    def result_part(self, spec: CollectiveSpec, rank: int) -> range:
        """Return what comes to the rank."""
        return range(int(self.sizes.elements(spec)[:, rank].sum()))

    def pair_bytes(self, spec: CollectiveSpec) -> Integers:
        """Return the bytes from each rank to each."""
        return self.sizes.elements(spec) * spec.element_bytes

    def shaped(self, result: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return a rank's result as it is, flat."""
        return result

    def unsuitable(self, spec: CollectiveSpec) -> str:
        """Return an error if the sizes are of another number of ranks; "" if not."""
        ranks = self.sizes.rank_count
        if ranks in (None, spec.rank_count):
            return ""
        return f"sizes of {ranks} ranks for {spec.rank_count} (valid: a row and a column for each)"


@lru_cache(maxsize=8)
def _of_sizes(kind: type[AllToAllV], parameters: str) -> AllToAllV:
    found: AllToAllV = type(kind.__name__, (kind,), {"sizes": PairSizes.of(parameters)})()
    found.reference = f"{kind.name}:{parameters}"
    return found
